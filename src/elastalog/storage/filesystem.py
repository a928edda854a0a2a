"""The seam through which a store touches the disk: every write, fsync, rename and removal, each with its failpoints.

Tests put a subclass in its place whose operations fail, as those of full or read-only disks do, or are written down,
to know what a power failure could leave.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from elastalog.storage import failpoints


class FileSystem:
    """The real one. Raises OSError; the caller says what that means."""

    def create(self, path: Path, data: bytes, purpose: str) -> None:
        """Writes a new file, or one that nothing refers to yet, and flushes it to the disk."""
        descriptor = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._put(descriptor, data, purpose)
            self.flush(descriptor, purpose)
        finally:
            os.close(descriptor)

    def replace(self, path: Path, data: bytes, purpose: str) -> None:
        """Puts a file in the place of another, at one instant, for good."""
        temporary = path.with_name(path.name + ".new")
        self.create(temporary, data, purpose)
        failpoints.reach(f"{purpose}.rename.before")
        self._rename(temporary, path)
        failpoints.reach(f"{purpose}.rename.after")
        self.flush_folder(path.parent)

    def open_to_append(self, path: Path) -> int:
        """A descriptor at the end of an existing file."""
        return self._open(path, os.O_WRONLY | os.O_APPEND)

    def append(self, descriptor: int, data: bytes, purpose: str) -> None:
        """Appends to a file and flushes it to the disk."""
        self._put(descriptor, data, purpose)
        self.flush(descriptor, purpose)

    def truncate(self, descriptor: int, size: int, purpose: str) -> None:
        """Cuts a file off, for good."""
        failpoints.reach(f"{purpose}.truncate.before")
        self._truncate(descriptor, size)
        failpoints.reach(f"{purpose}.truncate.after")
        self.flush(descriptor, purpose)

    def flush(self, descriptor: int, purpose: str) -> None:
        """Waits until what was written is on the disk."""
        failpoints.reach(f"{purpose}.fsync.before")
        self._fsync(descriptor)
        failpoints.reach(f"{purpose}.fsync.after")

    def flush_folder(self, path: Path) -> None:
        """Waits until the names in a folder are on the disk."""
        descriptor = self._open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.flush(descriptor, "folder")
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Removes a file that nothing refers to."""
        failpoints.reach("garbage.remove.before")
        self._unlink(path)
        failpoints.reach("garbage.remove.after")

    def adopt(self, path: Path) -> None:
        """A new file was written otherwise, and flushed: it is one of the store's."""

    def release(self) -> None:
        """The store is closed."""

    def make_folder(self, path: Path) -> None:
        """Makes a folder with those above it, for good; one that is there stays."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            self._make(folder)
            self.flush_folder(folder.absolute().parent)
        if not path.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def _put(self, descriptor: int, data: bytes, purpose: str) -> None:
        failpoints.reach(f"{purpose}.write.before")
        middle = len(data) // 2 if failpoints.is_active() else len(data)
        self._write_all(descriptor, data[:middle])
        failpoints.reach(f"{purpose}.write.middle")
        self._write_all(descriptor, data[middle:])
        failpoints.reach(f"{purpose}.write.after")

    def _write_all(self, descriptor: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._write(descriptor, left) :]

    # --- what tests replace ----------------------------------------------------------------------------------------

    def _open(self, path: Path, flags: int) -> int:
        return os.open(path, flags, 0o644)

    def _write(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data)

    def _truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def _fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def _rename(self, path: Path, to: Path) -> None:
        os.replace(path, to)

    def _unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def _make(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
