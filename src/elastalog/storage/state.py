"""What a store holds at one epoch, ready to be put into a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elastalog.backends.protocol import StateChanges
from elastalog.late import dataclass
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage import columns, faults
from elastalog.storage.checked_files import FileEntry, read_checked
from elastalog.storage.entries import JournalRecord
from elastalog.storage.manifest import Manifest, Snapshot
from elastalog.storage.program_change import ProgramChange


@dataclass(frozen=True, slots=True)
class StoredState:
    """A snapshot, the records after it, and what the strategy had learnt by then."""

    root: Path
    manifest: Manifest
    snapshot: Snapshot
    records: Sequence[JournalRecord]
    learnt: dict[str, Any]

    @property
    def epoch(self) -> int:
        return self.records[-1].entry.epoch if self.records else self.snapshot.epoch

    @property
    def _program(self) -> ProgramChange | None:
        """The last change of the program since the snapshot."""
        return next((record.program for record in reversed(self.records) if record.program is not None), None)

    @property
    def layout(self) -> Mapping[str, tuple[str, ...]]:
        """The base types of every relation."""
        changed = self._program
        return self.manifest.layout_of(self.snapshot) if changed is None else changed.layout

    def program_text(self) -> str:
        """The program, checked."""
        changed = self._program
        if changed is not None:
            return changed.text
        return read_checked(self.root, self.manifest.program_of(self.snapshot)).decode()

    @property
    def program_name(self) -> str:
        """Where the program is to be found: its file, or, if no snapshot has been written since it last changed, in
        words."""
        for record in reversed(self.records):
            if record.program is not None:
                return f"{self.root} (program since epoch {record.entry.epoch})"
        return str(self.root / self.manifest.program_of(self.snapshot).name)

    def relation(self, name: str) -> tuple[FactWords, list[StateChanges]]:
        """The facts of a relation in the snapshot, checked, and its changes since, in order; under whatever name it was
        known."""
        width = len(self.layout[name])
        file, changes = self.file_and_changes(name)
        return FactWords.nothing(width) if file is None else columns.read_facts(self.root, file, width), changes

    def file_and_changes(self, name: str) -> tuple[FileEntry | None, list[StateChanges]]:
        """The file of a relation in the snapshot, None if there was none, and its changes since."""
        known: str | None = name
        changes: list[StateChanges] = []
        for record in reversed(self.records):
            if known is not None:
                if known in record.changes:
                    changes.append(record.changes[known])
                if record.program is not None:
                    known = record.program.origin(known)
        return None if known is None else self.snapshot.relations[known], changes[::-1]

    def relations(self) -> Iterator[tuple[str, FactWords, list[StateChanges]]]:
        """All relations; of a large store the next is read while the caller works on one."""
        names = list(self.layout)
        if self.snapshot.bytes < columns.LARGE:
            yield from ((name, *self.relation(name)) for name in names)
            return
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self.relation, names[0])
            for name, following in zip(names, (*names[1:], None), strict=True):
                facts, changes = coming.result()
                if following is not None:
                    coming = reader.submit(self.relation, following)
                yield name, facts, changes

    @contextmanager
    def filling(self, dictionary: Dictionary | None) -> Iterator[None]:
        """Fills a dictionary, if one is given, by the end of the block; of a large store meanwhile."""
        if dictionary is None or self.snapshot.bytes < columns.LARGE:
            if dictionary is not None:
                self.fill(dictionary)
            yield
            return
        with ThreadPoolExecutor(1) as reader:
            filled = reader.submit(self.fill, dictionary)
            yield
            filled.result()

    def fill(self, dictionary: Dictionary) -> None:
        """Gives an empty dictionary the stored one's entries, under the same ids."""
        assert len(dictionary.symbols) == 0
        assert len(dictionary.wide) == 0
        for segment in self.manifest.symbols:
            dictionary.symbols.extend(columns.read_texts(self.root, segment.file))
        for segment in self.manifest.patterns:
            dictionary.wide.extend(columns.read_patterns(self.root, segment.file))
        texts: list[str] = []
        for record in self.records:
            known = len(dictionary.symbols) + len(texts) - record.first_symbol
            wide = len(dictionary.wide) - record.first_pattern
            if known < 0 or wide < 0:
                raise faults.damaged(self.root, f"epoch {record.entry.epoch} uses symbols that are not stored")
            texts += record.symbols[known:]
            dictionary.wide.extend(record.patterns[wide:])
        dictionary.symbols.extend(texts)
