"""The seam through which a store touches an address: every file is also an object, every record of a journal one of its
own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from elastalog.folders.remote import UnreachableError
from elastalog.late import dataclass
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.objects.client import Objects, Taken
from elastalog.storage.objects.lease import Lease, overtaken
from elastalog.storage.objects.pointer import Pointer


@dataclass(slots=True)
class _Journal:
    """A journal that is written: how many objects continue its file."""

    name: str
    pieces: int


class ObjectFiles(FileSystem):
    """The copy of a store in a folder, and its objects at an address. What is put there counts; the folder is what this
    process reads. Raises OSError, as any file system does, and ElastalogError when another writer has overtaken."""

    def __init__(self, objects: Objects, folder: Path, token: str, lease: Lease, pointer: Pointer) -> None:
        self._objects = objects
        self.folder = folder
        self._token = token.encode()
        self._lease = lease
        self._pointer = pointer
        self._pieces: dict[str, int] = {}
        self._open_journals: dict[int, _Journal] = {}
        self._is_unsure = False

    def know(self, pieces: Mapping[str, int]) -> None:
        """How many objects continue the journals that were found."""
        self._pieces.update(pieces)

    def create(self, path: Path, data: bytes, purpose: str) -> None:
        super().create(path, data, purpose)
        self._put_object(path, data)

    def adopt(self, path: Path) -> None:
        self._put_object(path, path.read_bytes())

    def _put_object(self, path: Path, data: bytes) -> None:
        name = self._name(path)
        try:
            self._objects.create(name, data)
        except Taken:
            # Not ours, so it must not be removed as ours either.
            path.unlink(missing_ok=True)
            raise OSError(f"there is another `{name}` at the address, left by a writer before") from None

    def replace(self, path: Path, data: bytes, purpose: str) -> None:
        self._pointer.move(data)
        temporary = path.with_name(path.name + ".new")
        super().create(temporary, data, purpose)
        os.replace(temporary, path)

    def open_to_append(self, path: Path) -> int:
        descriptor = super().open_to_append(path)
        name = self._name(path)
        self._open_journals[descriptor] = _Journal(name, self._pieces.get(name, 0))
        return descriptor

    def append(self, descriptor: int, data: bytes, purpose: str) -> None:
        journal = self._open_journals[descriptor]
        # From here on it is not known whether others will find the record, until it is.
        self._is_unsure = True
        if self._lease.is_lost:
            raise overtaken(self._objects.address)
        self._put_record(piece_name(journal.name, journal.pieces + 1), self._token + data)
        if not self._pointer.is_ours:
            raise overtaken(self._objects.address)
        super().append(descriptor, data, purpose)
        journal.pieces += 1
        self._pieces[journal.name] = journal.pieces
        self._is_unsure = False

    def _put_record(self, name: str, content: bytes) -> None:
        try:
            self._objects.create(name, content)
        except Taken:
            # By a writer that was overtaken by this one, and does not know it yet; or by one that has overtaken it.
            found = self._objects.get(name)
            if found is None or not self._pointer.is_ours:
                raise overtaken(self._objects.address) from None
            try:
                self._objects.replace(name, content, found.tag)
            except Taken:
                raise overtaken(self._objects.address) from None

    def truncate(self, descriptor: int, size: int, purpose: str) -> None:
        if self._is_unsure:
            raise OSError("what was put at the address cannot be taken back")
        super().truncate(descriptor, size, purpose)

    def remove(self, path: Path) -> None:
        super().remove(path)
        name = self._name(path)
        try:
            self._objects.remove(name, *(piece_name(name, i + 1) for i in range(self._pieces.pop(name, 0))))
        except UnreachableError as error:
            raise OSError(str(error)) from None

    def release(self) -> None:
        self._lease.release()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def piece_name(journal: str, number: int) -> str:
    """The object that continues a journal for the so-manieth time."""
    return f"{journal}.{number}"
