"""The files of a relation at one epoch, set aside for readers that come back to them later, such as Spark jobs.

Whatever the store's own files look like, what is set aside is Parquet:

| file | columns |
|---|---|
| facts | `0`, `1`, … (the words), `@level`, `@count`, all int32 |
| changes | the same: the last state of every fact that the journal names, `@level` -1 where it is gone |
| symbols | `text`, in order of their ids |
| patterns | `pattern` (int64), in order of their ids |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elastalog.backends.rows import last_states
from elastalog.diagnostics.diagnostic import error
from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at, put
from elastalog.relations.facts import FactWords
from elastalog.storage import errors
from elastalog.storage.entries import JournalRecord
from elastalog.storage.filesystem import FileEntry, read_checked, require_digest
from elastalog.storage.history import equivalences_in
from elastalog.storage.manifest import Segment
from elastalog.storage.state import StoredState, facts_bytes, patterns_bytes, texts_bytes


@dataclass(frozen=True, slots=True)
class Numbered:
    """Entries of the dictionary in a file, with ids from `first` on."""

    first: int
    path: str


@dataclass(frozen=True, slots=True)
class RelationParts:
    """Where the facts of a relation lie, and the dictionary that its words refer to, as far as it can be needed."""

    facts: str
    changes: str | None
    symbols: tuple[Numbered, ...]
    patterns: tuple[Numbered, ...]


def set_aside(state: StoredState, relation: str, folder: str) -> RelationParts:
    """Puts the files of a relation into a folder, each checked: links where that is possible, so that a writer of the
    store may go on and remove its own. The journal's part is written there; of the rest nothing is read into memory,
    unless the folder is at an address."""
    if relation in equivalences_in(state.layout):
        raise error("E0662", location=state.root, relation=relation)
    bases = state.layout[relation]
    stored = state.snapshot.relations.get(relation)
    if stored is None:  # declared since the snapshot
        facts = _write(inside(folder, "facts.parquet"), facts_bytes(FactWords.nothing(len(bases))))
    else:
        facts = _kept(state.root, stored, folder)
    changes = [record.changes[relation] for record in state.records if relation in record.changes]
    return RelationParts(
        facts,
        _write(inside(folder, "changes.parquet"), facts_bytes(last_states(changes))) if changes else None,
        _symbols(state, folder) if "symbol" in bases else (),
        _patterns(state, folder) if set(bases) - {"symbol"} else (),
    )


def _symbols(state: StoredState, folder: str) -> tuple[Numbered, ...]:
    stored, known = _segments(state, state.manifest.symbols, folder)
    texts: list[str] = []
    for record in state.records:
        texts += record.symbols[_already(state, record, known + len(texts) - record.first_symbol) :]
    if texts:
        stored.append(Numbered(known, _write(inside(folder, "symbols.parquet"), texts_bytes(texts))))
    return tuple(stored)


def _patterns(state: StoredState, folder: str) -> tuple[Numbered, ...]:
    stored, known = _segments(state, state.manifest.patterns, folder)
    found = [np.empty(0, np.int64)]
    total = known
    for record in state.records:
        found.append(record.patterns[_already(state, record, total - record.first_pattern) :])
        total += len(found[-1])
    if total > known:
        data = patterns_bytes(np.concatenate(found))
        stored.append(Numbered(known, _write(inside(folder, "patterns.parquet"), data)))
    return tuple(stored)


def _already(state: StoredState, record: JournalRecord, number: int) -> int:
    """How many of the entries that a record adds are known already."""
    if number < 0:
        raise errors.damaged(state.root, f"epoch {record.entry.epoch} uses symbols that are not stored")
    return number


def _segments(state: StoredState, segments: Sequence[Segment], folder: str) -> tuple[list[Numbered], int]:
    kept = [Numbered(segment.first, _kept(state.root, segment.file, folder)) for segment in segments]
    return kept, segments[-1].last if segments else 0


def _kept(root: Path, entry: FileEntry, folder: str) -> str:
    source, kept = root / entry.name, inside(folder, Path(entry.name).name)
    if is_address(folder):
        return _write(kept, read_checked(root, entry))
    if not os.path.exists(kept):
        try:
            files_at(kept).copy(str(source), kept)
        except FileNotFoundError:
            raise errors.missing(source) from None
        except OSError as error:
            raise errors.not_readable(source, error) from None
    require_digest(Path(kept), entry, source)
    return kept


def _write(location: str, data: bytes) -> str:
    put(location, data)
    return location
