"""What changed between epochs, from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from elastalog.backends.protocol import GONE, StateChanges
from elastalog.backends.rows import distinct_in_order
from elastalog.late import dataclass
from elastalog.storage.entries import JournalRecord, LogEntry

What = Literal["appeared", "disappeared", "moved"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What an epoch did to a fact: it appeared, disappeared, or moved to another level; `was` and `level` are -1
    where absent."""

    entry: LogEntry
    what: What
    was: int
    level: int

    @property
    def epoch(self) -> int:
        return self.entry.epoch


def net_changes(records: Iterable[JournalRecord]) -> dict[str, StateChanges]:
    """What a row of epochs did together, by relation: facts that are present at one end only, or at another level."""
    parts: dict[str, list[StateChanges]] = {}
    for record in records:
        for name, changes in record.changes.items():
            parts.setdefault(name, []).append(changes)
    joined = {name: _joined(changes) for name, changes in parts.items()}
    return {name: changes for name, changes in joined.items() if len(changes)}


def _joined(parts: list[StateChanges]) -> StateChanges:
    words = np.concatenate([part.words for part in parts])
    was = np.concatenate([part.was for part in parts])
    level = np.concatenate([part.level for part in parts])
    count = np.concatenate([part.count for part in parts])
    first, fact = distinct_in_order(words)
    last = np.empty(len(first), np.int64)
    last[fact] = np.arange(len(words))  # numpy assigns in order: the last stays
    is_other = was[first] != level[last]
    first, last = first[is_other], last[is_other]
    return StateChanges(words[first], was[first], level[last], count[last])


def turns(records: Iterable[JournalRecord], relation: str, words: np.ndarray) -> tuple[Turn, ...]:
    """The epochs in which a fact changed, oldest first."""
    found: list[Turn] = []
    for record in records:
        changes = record.changes.get(relation)
        if changes is None:
            continue
        for row in np.flatnonzero((changes.words == words).all(axis=1)):
            was, level = int(changes.was[row]), int(changes.level[row])
            if was != level:
                found.append(Turn(record.entry, _what(was, level), was, level))
    return tuple(found)


def _what(was: int, level: int) -> What:
    return "appeared" if was == GONE else "disappeared" if level == GONE else "moved"


def visible(changes: Mapping[str, StateChanges], declared: Iterable[str]) -> dict[str, StateChanges]:
    """Those of declared relations, in order of declaration."""
    return {name: changes[name] for name in declared if name in changes}
