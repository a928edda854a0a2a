"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block ends well, and leaves no trace when it does not.
    Folders on the way are made."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        out = open(temporary, "xb")  # noqa: SIM115 - closed below, before the rename
    except OSError as error:
        raise ElastalogError([_not_writable(path, error)]) from None
    try:
        with out:
            yield out
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ElastalogError([_not_writable(path, error)]) from None
        raise


def _not_writable(path: Path, error: OSError) -> Diagnostic:
    return Diagnostic(
        code="E0517",
        message=f"cannot write `{path}`: {error.strerror or error}",
        help="check the output folder (-D), its permissions and the space left",
        location=str(path),
    )
