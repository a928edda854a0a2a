"""What reading files may take: the limits of the session that reads hold from the first byte on.

A small file can stand for gigabytes: packed, or written as the same value a billion times over. So files are read piece
by piece, and between pieces time, memory and the proportion to the size of the file are looked at.
"""

from __future__ import annotations

import io
import os
import re
import reprlib
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached, finding
from elastalog.diagnostics.quota import most_of_memory
from elastalog.late import dataclass

MOST_OF_A_PATH = 400
MOST_EXPANSION = 200
"""How many times its size a file may take when it is unpacked, unless the user allows more."""

ALWAYS_ALLOWED = 64 << 20
"""Bytes that any file may take."""

PIECE = 4 << 20
_PLAIN_PIECE = 256 << 20
"""The piece of a file that is not packed: its size is known beforehand, and pieces have to be put together."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of reading files: time and memory, how many times its size a file may take, and the threads."""

    watch: Watch = field(default_factory=lambda: Watch(memory=most_of_memory()))
    expansion: int = MOST_EXPANSION
    jobs: int = 1

    def check(self) -> None:
        """Raises LimitReached if time or memory have run out."""
        self.watch.check()

    def require(self, size: int) -> None:
        """Raises LimitReached if there is no room for `size` bytes."""
        self.watch.require(size)

    def check_expansion(self, file: str, size: int, unpacked: int) -> None:
        """Raises LimitReached if what was read of a file is out of proportion to its size."""
        if unpacked > max(ALWAYS_ALLOWED, self.expansion * size):
            raise LimitReached.of("E0524", location=file, file=file, expansion=self.expansion, size=size)


_ALLOWED: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def allowance() -> Allowance:
    """What the reading in progress may take."""
    return _ALLOWED.get() or Allowance()


@contextmanager
def reading_within(allowed: Allowance) -> Iterator[None]:
    """Sets the allowance of all reading during the block."""
    token = _ALLOWED.set(allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def read_bounded(path: Path, is_gzip: bool) -> bytes:
    """The contents of a file, unpacked. Raises OSError, EOFError or zlib.error if it cannot be read, LimitReached if it
    is too large."""
    with path.open("rb") as file:
        found = path.stat()
        if is_gzip:
            return _gathered(_unpacked(file), (str(path), found.st_size))
        if not stat.S_ISREG(found.st_mode):
            return _gathered(_pieces(file))
        allowance().require(found.st_size)
        return _gathered(_pieces(file, min(found.st_size + 1, _PLAIN_PIECE)))


def file_bytes(path: Path, is_gzip: bool) -> bytes:
    """The contents of a file, unpacked; a diagnostic if it cannot be read."""
    try:
        return read_bounded(path, is_gzip)
    except (OSError, EOFError, ValueError, zlib.error) as error:  # a path with a zero is a ValueError
        raise ElastalogError([unreadable(path, error, is_gzip)]) from None


def is_packed(path: Path) -> bool:
    """Whether a file begins as gzip does: no text in UTF-8 has these bytes. A pipe does not count, since it can only
    be read once."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except (OSError, ValueError):
        return False  # reading it will tell why


def unreadable(path: Path, error: Exception, is_gzip: bool = False) -> Diagnostic:
    """Says that a file cannot be read, and why."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    advice = "check that the file is whole gzip" if is_gzip else "check the path and its permissions"
    if is_json_text(path):
        advice = "this looks like JSON: give the path of a file, or the rows, which `json.loads` makes of the text"
    told = path if len(str(path)) < MOST_OF_A_PATH else reprlib.repr(str(path))
    return finding("E0515", location=told, path=told, reason=reason, advice=advice)


def is_json_text(place: object) -> bool:
    """Whether what should be a path looks like a list or object of JSON."""
    is_alike = isinstance(place, str | Path) and re.fullmatch(r"\s*(\[.*\]|\{.*\})\s*", str(place), re.DOTALL)
    return bool(is_alike) and not os.path.exists(str(place))


def unpacked(data: bytes, file: str) -> bytes:
    """What gzip has packed. Raises OSError, EOFError or zlib.error when it is not whole, LimitReached when it is too
    much."""
    return _gathered(_unpacked(io.BytesIO(data)), (file, len(data)))


def read_stream(stream: BinaryIO) -> bytes:
    """All that comes from a stream. Raises LimitReached when it is too much."""
    return _gathered(_pieces(stream))


def _gathered(pieces: Iterator[bytes], packed: tuple[str, int] | None = None) -> bytes:
    """Joins pieces, while the limits hold. `packed`: the file that they were packed in, and its size."""
    allowed = allowance()
    found: list[bytes] = []
    total = 0
    for piece in pieces:
        found.append(piece)
        total += len(piece)
        allowed.check()
        if packed is not None:
            allowed.check_expansion(*packed, total)
    allowed.require(total)
    return b"".join(found)


def _pieces(file: BinaryIO, size: int = PIECE) -> Iterator[bytes]:
    while piece := file.read(size):
        yield piece


def _unpacked(packed: BinaryIO) -> Iterator[bytes]:
    from gzip import GzipFile  # most files are not packed

    return _pieces(GzipFile(fileobj=packed))  # type: ignore[arg-type]
