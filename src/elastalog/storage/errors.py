"""The diagnostics of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elastalog.diagnostics.diagnostic import ElastalogError, error


class StoreDamaged(ElastalogError):
    """A file of a store is not what was written."""


def damaged(path: Path, reason: str, advice: str | None = None) -> StoreDamaged:
    return StoreDamaged.of("E0805", location=path, path=path.name, reason=reason, advice=advice)


def missing(path: Path) -> StoreDamaged:
    return StoreDamaged.of("E0806", location=path, path=path.name)


def without_pointer(path: Path) -> StoreDamaged:
    return StoreDamaged.of("E0806.pointer", location=path, path=path.name)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Errors of the system in the block are those of a file of a store that cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        raise ElastalogError.of("E0807", location=path, path=path.name, reason_of=reason_of(error)) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Errors of the system in the block are those of a store that cannot be written."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from None


def not_written(path: Path, error: OSError) -> ElastalogError:
    return ElastalogError.of("E0808", location=path, reason_of=reason_of(error))


def needs_reopening(path: Path) -> ElastalogError:
    return error("E0809", location=path)


class EpochToCome(ElastalogError):
    """There is no such epoch yet."""


def epoch_unknown(path: Path | None, epoch: int, first: int, last: int, *, is_part: bool = False) -> ElastalogError:
    """The error that a store does not have an epoch; without a path, that a session without a store does not.
    `is_part`: later epochs may be kept too, but are not looked at."""
    of_store = "E0813.part" if is_part else "E0813.future" if epoch > last else "E0813"
    key = "E0813.session" if path is None else of_store
    kind = EpochToCome if epoch > last else ElastalogError
    return kind.of(key, location=path, epoch=epoch, first=first, last=last)


def read_only(what: str) -> ElastalogError:
    return error("E0814", what=what)


def no_history() -> ElastalogError:
    return error("E0815.no_history")


def reason_of(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
