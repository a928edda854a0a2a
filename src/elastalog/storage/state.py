"""What a store holds at one epoch, ready to be put into a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elastalog.backends.protocol import StateChanges
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage import columns, faults
from elastalog.storage.entries import JournalRecord
from elastalog.storage.manifest import Manifest, Snapshot


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

    def relation(self, name: str) -> tuple[FactWords, list[StateChanges]]:
        """The facts of a relation in the snapshot, checked, and its changes since, in order."""
        facts = columns.read_facts(self.root, self.snapshot.relations[name], len(self.manifest.layout[name]))
        return facts, [record.changes[name] for record in self.records if name in record.changes]

    def relations(self) -> Iterator[tuple[str, FactWords, list[StateChanges]]]:
        """All relations; of a large store the next is read while the caller works on one."""
        names = list(self.manifest.layout)
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

    def fill(self, dictionary: Dictionary) -> None:
        """Gives an empty dictionary the stored one's entries, under the same ids."""
        assert len(dictionary.symbols) == 0
        assert len(dictionary.wide) == 0
        for segment in self.manifest.symbols:
            dictionary.symbols.extend(columns.read_texts(self.root, segment.file))
        for segment in self.manifest.patterns:
            dictionary.wide.extend(columns.read_patterns(self.root, segment.file))
        for record in self.records:
            known, wide = len(dictionary.symbols) - record.first_symbol, len(dictionary.wide) - record.first_pattern
            if known < 0 or wide < 0:
                raise faults.damaged(self.root, f"epoch {record.entry.epoch} uses symbols that are not stored")
            dictionary.symbols.extend(record.symbols[known:])
            dictionary.wide.extend(record.patterns[wide:])
