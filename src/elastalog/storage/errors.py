"""The diagnostics of the store."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError

COPY = "restore the store from a copy, or make it anew with `elastalog init`"


class StoreDamaged(ElastalogError):
    """A file of a store is not what was written."""


def no_store(path: Path, reason: str) -> ElastalogError:
    advice = "make one with `elastalog init STORE PROGRAM -F FACTS`"
    return _error("E0801", f"`{path}` is not a store: {reason}", path, advice)


def already_there(path: Path) -> ElastalogError:
    return _error("E0802", f"`{path}` already exists", path, "choose a folder that is new or empty")


def inside_store(path: Path, store: Path) -> ElastalogError:
    message = f"`{path}` is in the folder of the store `{store}`, which belongs to the store alone"
    return _error("E0802", message, path, "choose a folder elsewhere")


def newer_format(path: Path, version: int, known: int) -> ElastalogError:
    message = f"the store has format {version}, this version of Elastalog knows formats up to {known}"
    advice = "open it with the version that wrote it or a later one: `pip install --upgrade elastalog`"
    return _error("E0803", message, path, advice)


def locked(path: Path, holder: str) -> ElastalogError:
    return _error(
        "E0804",
        f"the store is being written by {holder}",
        path,
        "wait until it has finished (a session, until its `close`), or read with `Store(…, read_only=True)`",
    )


def no_locks(path: Path, error: OSError) -> ElastalogError:
    return _error(
        "E0829",
        f"the file system of the store has no locks: {reason_of(error)}",
        path,
        "keep the store on a local disk, or mount the network's with locks (NFS: without `nolock`); reading needs none",
    )


def damaged(path: Path, reason: str, advice: str = COPY) -> StoreDamaged:
    diagnostic = Diagnostic("E0805", f"`{path.name}` is damaged: {reason}", help=advice, location=str(path))
    return StoreDamaged([diagnostic])


def missing(path: Path) -> StoreDamaged:
    diagnostic = Diagnostic("E0806", f"`{path.name}` is missing", help=COPY, location=str(path))
    return StoreDamaged([diagnostic])


def not_readable(path: Path, error: OSError) -> ElastalogError:
    return _error(
        "E0807", f"`{path.name}` cannot be read: {reason_of(error)}", path, "check the permissions and the disk"
    )


def not_written(path: Path, error: OSError) -> ElastalogError:
    return _error(
        "E0808",
        f"the store cannot be written: {reason_of(error)}",
        path,
        "check the permissions and the space left; the previous epoch stands",
    )


def needs_reopening(path: Path) -> ElastalogError:
    message = "the store cannot be written any more in this session: an earlier write could not be undone"
    return _error("E0809", message, path, "close the session and open the store again")


def lock_removed(path: Path) -> ElastalogError:
    message = "the store cannot be written any more in this session: its lock has been removed, or all of it"
    return _error("E0809", message, path, "close the session and open the store again, if it is there")


def other_program(path: Path) -> ElastalogError:
    message = "the store was made for another program"
    return _error(
        "E0810", message, path, "open it without a program, upgrade it with `elastalog upgrade`, or make another store"
    )


def other_option(path: Path, option: str, stored: object, given: object) -> ElastalogError:
    message = f"the store keeps {option} = `{stored}`, not `{given}`"
    return _error("E0811", message, path, f"leave {option} out, or make another store")


def other_functor(path: Path, name: str) -> ElastalogError:
    message = f"the store was written with another function for functor `@{name}`"
    return _error("E0840", message, path, "give the function it was written with, or make the store anew")


def other_layout(path: Path) -> ElastalogError:
    message = "the store was written by a version of Elastalog that evaluates its program differently"
    return _error("E0812", message, path, "export the facts with the older version, and make the store anew")


def kept_as_classes(path: Path, relation: str) -> ElastalogError:
    message = f"the store keeps `{relation}` as equivalence classes, so that its files do not hold its pairs"
    return _error("E0662", message, path, f'open the store, and hand the relation over: `db["{relation}"].to_spark()`')


def epoch_unknown(path: Path | None, epoch: int, first: int, last: int, *, is_part: bool = False) -> ElastalogError:
    """Of a store, or, without a path, of a session that has none. `is_part`: later epochs may be kept too, but
    are not looked at."""
    if path is None:
        message = f"there is no epoch {epoch}: the session has had epochs {first} to {last}"
        return ElastalogError.of("E0813", message, "`db.log()` has an entry for each of them")
    if is_part:
        message = f"there is no epoch {epoch} here: this session looks at epochs {first} to {last} of its store"
        return _error("E0813", message, path, "ask a session of a later epoch, or the one that writes the store")
    message = f"there is no epoch {epoch}: the store keeps epochs {first} to {last}"
    return _error("E0813", message, path, "see `elastalog log`; older epochs go when `retention` is reached")


def before_all(when: datetime, first: int, began: datetime) -> ElastalogError:
    known = f"the first that is known, {first}, was at {began:%Y-%m-%d %H:%M:%S} UTC"
    message = f"there was no epoch at {when:%Y-%m-%d %H:%M:%S}: {known}"
    return ElastalogError.of("E0813", message, "`db.log()` has the time of every epoch")


def no_reader() -> ElastalogError:
    advice = "open the store with `Store(…, read_only=True)`; a session that writes has the latest epoch anyway"
    message = "only a reader of the latest epoch of a store can follow it"
    return ElastalogError.of("E0815", message, advice)


def read_only(what: str) -> ElastalogError:
    return ElastalogError.of("E0814", f"the session is read-only: {what}", "open the store for writing")


def closed() -> ElastalogError:
    return ElastalogError.of("E0814", "the session is closed: it cannot be updated", "update it before `close`")


def other_process(path: Path) -> ElastalogError:
    message = "the session belongs to the process that opened it, and this one was forked from that"
    return _error("E0819", message, path, "open the store again in this process: one process at a time writes it")


def other_update(key: str) -> ElastalogError:
    message = f"the key `{key[:100]}` came with another update of this source before"
    return ElastalogError.of("E0932", message, "give every update a key of its own")


def no_history() -> ElastalogError:
    message = "the session has no store, so earlier epochs are gone"
    return ElastalogError.of("E0815", message, "open it with `store=PATH`")


def discarded(path: Path, size: int, epoch: int) -> Diagnostic:
    """Not an error: what recovery found after a crash."""
    advice = "apply the last update again; with `source` and `batch` that is safe in any case"
    return _unfinished(path, size, "was discarded", epoch, advice)


def left_out(path: Path, size: int, epoch: int) -> Diagnostic:
    """The end of a journal that is left out by a reader, which repairs nothing."""
    advice = "open the store for writing to remove it, and apply the last update again"
    return _unfinished(path, size, "is left out", epoch, advice)


def _unfinished(path: Path, size: int, what: str, epoch: int, advice: str) -> Diagnostic:
    return Diagnostic(
        "E0816",
        f"an unfinished write of {size:,} bytes {what}; the store is at epoch {epoch}",
        notes=("the process that wrote it ended before the epoch was committed",),
        help=advice,
        severity="warning",
        location=str(path),
    )


def reason_of(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _error(code: str, message: str, path: Path, advice: str) -> ElastalogError:
    return ElastalogError.of(code, message, advice, location=path)
