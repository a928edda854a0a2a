"""The seam through which a store touches the disk: writes, fsyncs, renames and removals; and files that are written
once and never changed, with their checksums. Only relations that are copied from files of tasks go around it, since
tasks write them (see `snapshots`).

Tests end a process before, in the middle of and after each operation, and put a subclass in its place whose operations
fail, as those of full or read-only disks do, or are written down, to know what a power failure could leave.

Descriptors belong to the process that opened them. A forked child inherits every descriptor, and with it the lock on
the file: closed by the parent, a store would stay locked for as long as the child lives. So the child closes its copies
before it does anything else, which leaves the parent's lock alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from collections.abc import Callable
from hashlib import file_digest, sha256
from pathlib import Path

from elastalog.late import dataclass
from elastalog.storage import errors


class FileSystem:
    """The real one. Raises OSError; the caller says what that means."""

    def create(self, path: Path, data: bytes) -> None:
        """Writes a new file, or one that nothing refers to yet, and flushes it to the disk."""
        descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._write_all(descriptor, data)
            self._fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, path: Path, data: bytes) -> None:
        """Replaces a file by another at one instant, and flushes that to the disk."""
        temporary = path.with_name(path.name + ".new")
        self.create(temporary, data)
        self._rename(temporary, path)
        self.flush_folder(path.parent)

    def open_to_append(self, path: Path) -> int:
        """A descriptor at the end of an existing file."""
        return self._open(path, os.O_WRONLY | os.O_APPEND)

    def append(self, descriptor: int, data: bytes) -> None:
        """Appends to a file and flushes it to the disk."""
        self._write_all(descriptor, data)
        self._fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cuts a file off, and flushes that to the disk."""
        self._truncate(descriptor, size)
        self._fsync(descriptor)

    def flush_folder(self, path: Path) -> None:
        """Waits until the names in a folder are on the disk."""
        descriptor = self._open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Removes a file that nothing refers to."""
        path.unlink(missing_ok=True)

    def adopt(self, path: Path) -> None:
        """A new file was written otherwise, and flushed: it is one of the store's."""

    def release(self) -> None:
        """The store is closed."""

    def make_folder(self, path: Path) -> None:
        """Makes a folder with those above it, and flushes that to the disk, unless it exists."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            self._make(folder)
            self.flush_folder(folder.absolute().parent)
        if not path.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    # --- what tests replace ----------------------------------------------------------------------------------------

    def _open(self, path: Path, flags: int) -> int:
        return os.open(path, flags, 0o644)

    def _write_all(self, descriptor: int, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            left = left[self._write(descriptor, left) :]

    def _write(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data)

    def _truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def _fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def _rename(self, path: Path, to: Path) -> None:
        os.replace(path, to)

    def _make(self, path: Path) -> None:
        path.mkdir(exist_ok=True)


# --- descriptors -----------------------------------------------------------------------------------------------------


class OwnDescriptor:
    """An open file. `number` is None once it is closed, and from the beginning in a forked child."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, opening: Callable[[], int]) -> None:
        with _OPENING:  # no other thread forks between the opening and the list
            self.number: int | None = opening()
            _OPEN.add(self)

    def close(self) -> None:
        """Closes the file. Calling it again is no error."""
        number, self.number = self.number, None
        if number is not None:
            with contextlib.suppress(OSError):
                os.close(number)


_OPENING = threading.RLock()
_OPEN: weakref.WeakSet[OwnDescriptor] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for descriptor in list(_OPEN):
        descriptor.close()
    _OPENING.release()


os.register_at_fork(before=_OPENING.acquire, after_in_parent=_OPENING.release, after_in_child=_after_fork_in_child)


# --- files with checksums --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, by its path within the store, its size and SHA-256."""

    name: str
    bytes: int
    sha256: str


def write_checked(files: FileSystem, root: Path, name: str, data: bytes) -> FileEntry:
    """Writes a file, flushed to the disk."""
    files.create(root / name, data)
    return FileEntry(name, len(data), sha256(data).hexdigest())


def read_checked(root: Path, entry: FileEntry) -> bytes:
    """The content of a file, after its checksum. Raises StoreDamaged when it is not what was written."""
    path = root / entry.name
    data = read_bytes(path)
    if len(data) != entry.bytes:
        raise errors.damaged(path, f"it has {len(data):,} bytes instead of {entry.bytes:,}")
    if sha256(data).hexdigest() != entry.sha256:
        raise errors.damaged(path, "its checksum does not match")
    return data


def require_digest(path: Path, entry: FileEntry, source: Path) -> None:
    """Raises StoreDamaged unless a file has its checksum, without holding it in memory. `source`: where it is from."""
    with errors.reading(source), path.open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != entry.sha256:
            raise errors.damaged(source, "its checksum does not match")


def read_bytes(path: Path) -> bytes:
    """The content of a file of a store."""
    with errors.reading(path):
        return path.read_bytes()
