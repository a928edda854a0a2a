"""Checking every file of a store against its checksum."""

from __future__ import annotations

from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.storage import faults
from elastalog.storage.checked_files import read_checked
from elastalog.storage.journal import JournalReader
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE, Manifest, read_manifest


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
    for file in files:
        try:
            read_checked(root, file)
        except ElastalogError as error:
            found += error.diagnostics
    found += _check_last_journal(root, manifest)
    return found, len(files) + 4


def _check_last_journal(root: Path, manifest: Manifest) -> list[Diagnostic]:
    last = manifest.journals[-1]
    try:
        reader = JournalReader(root, last.name, manifest.store, last.epoch)
        for _ in reader:
            pass
    except ElastalogError as error:
        return list(error.diagnostics)
    if reader.size > reader.end:
        return [faults.discarded(reader.path, reader.size - reader.end, reader.epoch)]
    return []
