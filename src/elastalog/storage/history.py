"""What changed between epochs, from the journal.

Equivalences are kept as classes: what the files of a store hold of them are the pairs that generate them, and the
members of each class with its representative. What came and went between epochs is read off the classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from elastalog.backends.protocol import GONE, Matrix, StateChanges
from elastalog.backends.rows import first_and_last, merged
from elastalog.late import dataclass
from elastalog.planning.logical import classes_of
from elastalog.relations.pairs import Pairs
from elastalog.storage.entries import JournalRecord, LogEntry

if TYPE_CHECKING:
    from elastalog.storage.state import StoredState
    from elastalog.storage.store import Store

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

    def __repr__(self) -> str:
        level = f" from level {self.was} to {self.level}" if self.what == "moved" else ""
        return f"<{self.what}{level} in epoch {self.epoch}, {self.entry.time:%Y-%m-%d %H:%M:%S}>"


def net_changes(records: Iterable[JournalRecord]) -> dict[str, StateChanges]:
    """What successive epochs did together, by relation: facts that are present at one end only, or at another level."""
    parts: dict[str, list[StateChanges]] = {}
    for record in records:
        for name, changes in record.changes.items():
            parts.setdefault(name, []).append(changes)
    joined = {name: _joined(changes) for name, changes in parts.items()}
    return {name: changes for name, changes in joined.items() if len(changes)}


def _joined(parts: list[StateChanges]) -> StateChanges:
    every = StateChanges.joined(parts, parts[0].words.shape[1])
    first, last = first_and_last(every.words)
    is_other = every.was[first] != every.level[last]
    return replace(every.taken(last[is_other]), was=every.was[first[is_other]])


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
                what: What = "appeared" if was == GONE else "disappeared" if level == GONE else "moved"
                found.append(Turn(record.entry, what, was, level))
    return tuple(found)


def visible(changes: Mapping[str, StateChanges], declared: Iterable[str]) -> dict[str, StateChanges]:
    """The changes of declared relations, in order of declaration."""
    return {name: changes[name] for name in declared if name in changes}


# --- equivalences ----------------------------------------------------------------------------------------------------


def equivalences_in(layout: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The relations that a store keeps as classes; one that was written before there were classes keeps none."""
    prefix = classes_of("")
    return frozenset(name.removeprefix(prefix) for name in layout if name.startswith(prefix))


def ever_equivalences(store: Store, first: int, last: int) -> frozenset[str]:
    """The relations that a store keeps as classes at one of two epochs."""
    return frozenset().union(*(equivalences_in(store.state(epoch).layout) for epoch in (first, last)))


def pairs_between(store: Store, relation: str, first: int, last: int) -> tuple[Pairs, Pairs]:
    """The pairs of an equivalence that appeared and those that disappeared from one epoch to another."""
    before, after = (_classes_at(store.state(epoch), relation) for epoch in (first, last))
    return Pairs.between(after, before), Pairs.between(before, after)


def turns_of_pair(store: Store, relation: str, words: Matrix, first: int, last: int) -> tuple[Turn, ...]:
    """The epochs after one until another in which a pair of an equivalence appeared or disappeared, oldest first."""
    found: list[Turn] = []
    was_there = _holds(_classes_at(store.state(first), relation), words)
    classes = classes_of(relation)
    for record in store.records(first, last):
        if record.program is None and not {classes, relation} & record.changes.keys():
            continue
        is_there = _holds(_classes_at(store.state(record.entry.epoch), relation), words)
        if is_there != was_there:
            turn = Turn(record.entry, "appeared", GONE, 1) if is_there else Turn(record.entry, "disappeared", 1, GONE)
            found.append(turn)
        was_there = is_there
    return tuple(found)


def _holds(classes: Matrix, words: Matrix) -> bool:
    known = dict(classes[np.isin(classes[:, 0], words)].tolist())
    left, right = words[0].tolist()
    return left in known and known[left] == known.get(right)


def _classes_at(state: StoredState, relation: str) -> Matrix:
    """The members of an equivalence at an epoch, each with the member that names its class. Where the store had all
    pairs, they are found from these."""
    layout = state.layout
    if classes_of(relation) in layout:
        return merged(*state.relation(classes_of(relation))).words
    pairs = merged(*state.relation(relation)).words if relation in layout else np.empty((0, 2), np.int32)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    is_first = np.ones(len(pairs), np.bool_)
    is_first[1:] = pairs[1:, 0] != pairs[:-1, 0]
    least: Matrix = pairs[is_first]
    return least
