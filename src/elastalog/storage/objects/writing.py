"""Opening a store at an address for writing, and putting a copy of a store there.

`ObjectFiles` is the seam through which the store touches the address: every file is also an object, every record of a
journal one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.folders.addresses import is_address, without_secrets
from elastalog.folders.local import folder_of_this_process
from elastalog.folders.remote import UnreachableError
from elastalog.storage.fetching import TOKEN, fetch_store
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.manifest import FORMAT_FILE, POINTER, Manifest, read_manifest
from elastalog.storage.objects.client import Objects, Taken, cannot_write
from elastalog.storage.objects.lease import LEASE, Lease, Pointer, overtaken
from elastalog.storage.snapshots import is_ours
from elastalog.storage.store import PROGRAM, refuse_existing


class ObjectFiles(FileSystem):
    """The copy of a store in a folder, and its objects at an address. What is put there counts; the folder is what this
    process reads. `is_new`: there was no store yet. Raises OSError, as any file system does, and ElastalogError when
    another writer has overtaken."""

    def __init__(self, objects: Objects, folder: Path, token: str, lease: Lease, pointer: Pointer) -> None:
        self._objects = objects
        self.folder = folder
        self._token = token.encode()
        self._lease = lease
        self._pointer = pointer
        self.is_new = not pointer.is_there
        self._pieces: dict[str, int] = {}
        """How many objects continue each journal."""
        self._open_journals: dict[int, str] = {}
        self._is_unsure = False

    def know(self, pieces: Mapping[str, int]) -> None:
        """Sets how many objects continue the journals that were found."""
        self._pieces.update(pieces)

    def create(self, path: Path, data: bytes) -> None:
        super().create(path, data)
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

    def replace(self, path: Path, data: bytes) -> None:
        self._pointer.move(data)
        temporary = path.with_name(path.name + ".new")
        super().create(temporary, data)
        os.replace(temporary, path)

    def open_to_append(self, path: Path) -> int:
        descriptor = super().open_to_append(path)
        self._open_journals[descriptor] = self._name(path)
        return descriptor

    def append(self, descriptor: int, data: bytes) -> None:
        journal = self._open_journals[descriptor]
        number = self._pieces.get(journal, 0) + 1
        # From here on it is not known whether others will find the record, until it is.
        self._is_unsure = True
        if self._lease.is_lost:
            raise overtaken(self._objects.address)
        self._put_record(piece_name(journal, number), self._token + data)
        if not self._pointer.is_ours:
            raise overtaken(self._objects.address)
        super().append(descriptor, data)
        self._pieces[journal] = number
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

    def truncate(self, descriptor: int, size: int) -> None:
        if self._is_unsure:
            raise OSError("what was put at the address cannot be taken back")
        super().truncate(descriptor, size)

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
    """The object that holds the n-th continuation of a journal."""
    return f"{journal}.{number}"


def writable_copy(address: str) -> ObjectFiles:
    """Takes the lease of a store, or of the place for one, until `release()`. Raises ElastalogError when another writer
    has it, or when it cannot be taken."""
    if address.startswith(("http:", "https:")):
        raise error("E0875.service", location=address, address=address)
    token = token_hex(TOKEN // 2)
    objects = Objects(address)
    lease = Lease(objects, token)
    try:
        pointer = Pointer(objects, token)
        fetched = fetch_store(address) if pointer.is_there else None
        folder = folder_of_this_process() if fetched is None else fetched.folder
        files = ObjectFiles(objects, folder, token, lease, pointer)
        manifest = None if fetched is None else read_manifest(folder)
        if fetched is not None and manifest is not None:
            files.know(fetched.pieces)
            pointer.settle(fetched.pieces.get(manifest.journals[-1].name, 0))
        _remove_left(objects, lease, manifest)
    except BaseException:
        lease.release()
        raise
    return files


def _remove_left(objects: Objects, lease: Lease, manifest: Manifest | None) -> None:
    """Removes what earlier writers have left behind, which would be in the way of files of the same name; everything of
    a writer that has not made its store. Raises ElastalogError if something other than a store is there."""
    found = [name for name in objects.names() if not name.startswith(LEASE)]
    if manifest is None:
        if POINTER in found:  # one wrong answer must not cost a store
            raise cannot_write(objects.address, f"`{POINTER}` was not found, and is there", "open the store again")
        if found and FORMAT_FILE not in found:
            raise already_there(objects.address)
        left = [name for name in found if name in (FORMAT_FILE, PROGRAM) or is_ours(_base(name))]
    else:
        needed = manifest.names()
        left = [name for name in found if _base(name) not in needed and is_ours(_base(name))]
    for name in left:
        if not lease.is_lost:
            objects.remove(name)


def _base(name: str) -> str:
    """The file that an object continues, if it continues a journal; otherwise its own name."""
    file, _, number = name.rpartition(".")
    return file if number.isdigit() and file.endswith(".log") else name


def already_there(address: str) -> ElastalogError:
    """The error that a store, or something else, is where a store was to be made."""
    place = without_secrets(address)
    message, advice = f"`{place}` already exists", "choose an address where there is nothing"
    return error("E0802.already_there", location=place, message=message, advice=advice)


def refuse_existing_at(place: str | os.PathLike[str]) -> None:
    """Raises ElastalogError unless a store can be made at a place, a folder or an address."""
    if not is_address(place):
        refuse_existing(Path(place))
    elif is_store_at(str(place)):
        raise already_there(str(place))


def is_store_at(address: str) -> bool:
    """Whether there is a store at an address."""
    return Objects(address).tag(POINTER) is not None


def copied_to(address: str, back_up: Callable[[Path, FileSystem], int]) -> int:
    """Has a store backed up into an address where there is none. Returns the epoch of the copy."""
    files = writable_copy(address)
    try:
        if not files.is_new:
            raise already_there(address)
        return back_up(files.folder, files)
    finally:
        files.release()
