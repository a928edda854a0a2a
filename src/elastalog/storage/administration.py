"""What is done to a store without a session: its log is read, every file is checked against its checksum, and it is
copied while it is in use. The copy is another store, at the last epoch that was committed when it was begun."""

from __future__ import annotations

import os
from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.storage import errors
from elastalog.storage.entries import LogEntry
from elastalog.storage.filesystem import FileSystem, read_bytes, read_checked
from elastalog.storage.journal import JournalReader
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE, LOCK, POINTER, Manifest, read_manifest
from elastalog.storage.store import Store, refuse_existing


def back_up(root: Path, to: Path, files: FileSystem | None = None) -> int:
    """Copies a store, with all epochs that it keeps, into a folder that is not there or is empty. A writer may go on
    meanwhile. Returns the epoch of the copy, which is on the disk and is a store once this returns; before, it is
    none. `files`: through which it is written."""
    files = files or FileSystem()
    if to.resolve().is_relative_to(root.resolve()):
        raise ElastalogError.of("E0802.inside_store", location=to, path=to, store=root)
    refuse_existing(to)
    with reading(root / FORMAT_FILE):  # a writer removes no file as long as this lasts
        manifest = read_manifest(root)
        pointer = read_bytes(root / POINTER)
        reader = _read_to_the_end(root, manifest)
        with errors.writing(to):
            files.make_folder(to)
            for name in sorted(manifest.names() - {POINTER, LOCK}):
                data = read_bytes(root / name)
                target = to / name
                files.make_folder(target.parent)
                files.create(target, data[: reader.end] if root / name == reader.path else data)
            for folder in {to, *((to / name).parent for name in manifest.names())}:
                files.flush_folder(folder)
            files.flush_folder(to.absolute().parent)
            files.replace(to / POINTER, pointer)
        return max(reader.epoch, manifest.snapshots[-1].epoch)


def check_files(root: Path) -> tuple[list[Diagnostic], int]:
    """What is wrong with the files of a store, and how many were looked at. Nothing is changed."""
    with reading(root / FORMAT_FILE):
        return _check_files(root)


def _check_files(root: Path) -> tuple[list[Diagnostic], int]:
    try:
        manifest = read_manifest(root)
    except ElastalogError as error:
        return list(error.diagnostics), 1
    found: list[Diagnostic] = []
    files = list(manifest.files())
    for file in (*files, None):
        try:
            if file is not None:
                read_checked(root, file)
            else:
                found += _read_to_the_end(root, manifest).unfinished()
        except ElastalogError as error:
            found += error.diagnostics
    return found, len(files) + 4


def _read_to_the_end(root: Path, manifest: Manifest) -> JournalReader:
    """A reader of the last journal, which has gone through it until the last complete record: a writer may be in the
    middle of another."""
    last = manifest.journals[-1]
    reader = JournalReader(root, last.name, manifest.store, last.epoch)
    for _ in reader:
        pass
    return reader


def read_log(path: str | os.PathLike[str]) -> tuple[LogEntry, ...]:
    """The entries of all epochs kept, oldest first."""
    root = Path(path)
    with reading(root / FORMAT_FILE):
        return Store.open(root, read_only=True).log()
