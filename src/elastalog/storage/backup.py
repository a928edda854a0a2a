"""A copy of a store while it is in use: another store, at the last epoch that was committed when it was begun."""

from __future__ import annotations

from pathlib import Path

from elastalog.storage import faults
from elastalog.storage.checked_files import read_bytes
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.journal import JournalReader
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE, LOCK, POINTER, read_manifest
from elastalog.storage.store import refuse_existing


def back_up(root: Path, to: Path, files: FileSystem | None = None) -> int:
    """Copies a store, with all epochs that it keeps, into a folder that is not there or is empty. A writer may go on
    meanwhile. Returns the epoch of the copy, which is on the disk and is a store once this returns; before, it is
    none. `files`: through which it is written."""
    files = files or FileSystem()
    if to.resolve().is_relative_to(root.resolve()):
        raise faults.inside_store(to, root)
    refuse_existing(to)
    with reading(root / FORMAT_FILE):  # a writer removes no file as long as this lasts
        manifest = read_manifest(root)
        pointer = read_bytes(root / POINTER)
        last = manifest.journals[-1]
        reader = JournalReader(root, last.name, manifest.store, last.epoch)
        for _ in reader:
            pass  # until the last complete record: a writer may be in the middle of another
        try:
            files.make_folder(to)
            for name in sorted(manifest.names() - {POINTER, LOCK}):
                data = read_bytes(root / name)
                target = to / name
                files.make_folder(target.parent)
                files.create(target, data[: reader.end] if name == last.name else data, "backup")
            for folder in {to, *((to / name).parent for name in manifest.names())}:
                files.flush_folder(folder)
            files.flush_folder(to.absolute().parent)
            files.replace(to / POINTER, pointer, "pointer")
        except OSError as error:
            raise faults.not_written(to, error) from None
        return max(reader.epoch, manifest.snapshots[-1].epoch)
