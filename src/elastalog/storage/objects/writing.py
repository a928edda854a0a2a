"""Opening a store at an address for writing."""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.folders.addresses import is_address, without_secrets
from elastalog.folders.local import folder_of_this_process
from elastalog.late import dataclass
from elastalog.storage.fetching import TOKEN, fetch_store
from elastalog.storage.garbage import is_ours
from elastalog.storage.manifest import FORMAT_FILE, POINTER, Manifest, read_manifest
from elastalog.storage.objects.client import Objects, cannot_write
from elastalog.storage.objects.filesystem import ObjectFiles
from elastalog.storage.objects.lease import LEASE, Lease
from elastalog.storage.objects.pointer import Pointer
from elastalog.storage.store import PROGRAM, refuse_existing


@dataclass(frozen=True, slots=True)
class Copy:
    """The folder with the copy of a store at an address, which its writer reads, and the files that it writes.
    `is_new`: there is no store yet."""

    folder: Path
    files: ObjectFiles
    is_new: bool


def writable_copy(address: str) -> Copy:
    """Takes the lease of a store, or of the place for one, until `files.release()`. Raises ElastalogError when another
    writer has it, or when none can be had."""
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
    return Copy(folder, files, fetched is None)


def _remove_left(objects: Objects, lease: Lease, manifest: Manifest | None) -> None:
    """Removes what writers before have left behind, which would be in the way of files of the same name; of one that
    has not made its store, all. Raises ElastalogError if there is no store, but something else."""
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
    """The file that an object of a journal continues; any other as it is."""
    file, _, number = name.rpartition(".")
    return file if number.isdigit() and file.endswith(".log") else name


def already_there(address: str) -> ElastalogError:
    """There is something else, or a store, where one was to be made."""
    place = without_secrets(address)
    message, advice = f"`{place}` already exists", "choose an address where there is nothing"
    return ElastalogError([Diagnostic("E0802", message, help=advice, location=place)])


def refuse_existing_at(place: str | os.PathLike[str]) -> None:
    """Raises ElastalogError unless a store can be made at a place, a folder or an address."""
    if not is_address(place):
        refuse_existing(Path(place))
    elif is_store_at(str(place)):
        raise already_there(str(place))


def is_store_at(address: str) -> bool:
    """Whether there is a store at an address."""
    return Objects(address).tag(POINTER) is not None
