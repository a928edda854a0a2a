"""What a store has of a relation at one epoch, set aside for readers that come back to it later, such as Spark jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at, put
from elastalog.storage import errors
from elastalog.storage.filesystem import FileEntry, read_bytes, read_checked, require_digest
from elastalog.storage.manifest import FORMAT_FILE, POINTER, pointer_to
from elastalog.storage.snapshots import DICTIONARY, FACTS, journals_after
from elastalog.storage.state import StoredState


def set_aside(state: StoredState, relation: str, folder: str) -> None:
    """Makes a store of its own in a folder, of the relation alone: of links where that is possible, so that a writer of
    the store may go on and remove its own. Files are checked, but for that of the relation; nothing is read into memory
    unless the folder is at an address. Of the dictionary only what can be needed is there."""
    file, _ = state.file_and_changes(relation)
    bases = set(state.layout[relation])
    manifest, snapshot = state.manifest, state.snapshot
    kept = replace(snapshot, relations={name: entry for name, entry in snapshot.relations.items() if entry == file})
    manifest = replace(manifest, snapshots=(kept,), journals=journals_after(manifest, snapshot.epoch))
    segments = (*(manifest.symbols if "symbol" in bases else ()), *(manifest.patterns if bases - {"symbol"} else ()))
    programs = {entry for entry in (manifest.program, snapshot.program, snapshot.made_for) if entry is not None}
    for name in (FACTS, DICTIONARY):
        files_at(folder).make_folder(inside(folder, name))
    for entry in (*programs, *(segment.file for segment in segments)):
        _keep(state.root, entry.name, folder, entry)
    for name in (FORMAT_FILE, *(journal.name for journal in manifest.journals), *([file.name] if file else [])):
        _keep(state.root, name, folder)
    data = manifest.encode()
    put(inside(folder, manifest.name), data)
    put(inside(folder, POINTER), pointer_to(manifest, data))


def _keep(root: Path, name: str, folder: str, entry: FileEntry | None = None) -> None:
    source, kept = root / name, inside(folder, name)
    if is_address(folder):
        put(kept, read_bytes(source) if entry is None else read_checked(root, entry))
        return
    try:
        files_at(kept).copy(str(source), kept)
    except FileNotFoundError:
        raise errors.missing(source) from None
    except OSError as error:
        raise errors.not_readable(source, error) from None
    if entry is not None:
        require_digest(Path(kept), entry, source)
