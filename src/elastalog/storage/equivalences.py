"""Equivalences that a store keeps as classes: what its files hold of them are the pairs that generate them, and the
members of each with its representative. What came and went between epochs is read off the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from elastalog.backends.protocol import GONE, Matrix
from elastalog.planning.logical import classes_of
from elastalog.relations.pairs import Pairs
from elastalog.storage.history import Turn

if TYPE_CHECKING:
    from elastalog.storage.state import StoredState
    from elastalog.storage.store import Store


def equivalences_in(layout: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The relations that a store keeps as classes; one that was written before there were classes keeps none."""
    prefix = classes_of("")
    return frozenset(name.removeprefix(prefix) for name in layout if name.startswith(prefix))


def ever_equivalences(store: Store, first: int, last: int) -> frozenset[str]:
    """The relations that a store keeps as classes at one of two epochs."""
    return frozenset().union(*(equivalences_in(store.state(epoch).layout) for epoch in (first, last)))


def pairs_between(store: Store, relation: str, first: int, last: int) -> tuple[Pairs, Pairs]:
    """The pairs of an equivalence that came and those that went from one epoch to another."""
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
    """The members of an equivalence at an epoch, each with what names its class; from all its pairs where the store had
    these."""
    layout = state.layout
    if classes_of(relation) in layout:
        return _present(state, classes_of(relation))
    pairs = _present(state, relation) if relation in layout else np.empty((0, 2), np.int32)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    is_first = np.ones(len(pairs), np.bool_)
    is_first[1:] = pairs[1:, 0] != pairs[:-1, 0]
    least: Matrix = pairs[is_first]
    return least


def _present(state: StoredState, relation: str) -> Matrix:
    """The facts of a relation of two columns of a store at an epoch."""
    facts, changes = state.relation(relation)
    words = np.concatenate((facts.words, *(changed.words for changed in changes)))
    level = np.concatenate((np.zeros(len(facts.words), np.int32), *(changed.level for changed in changes)))
    keys = (words[:, 0].astype(np.int64) << 32) + words[:, 1]
    order = np.argsort(keys, kind="stable")
    is_last = np.ones(len(keys), np.bool_)
    is_last[:-1] = keys[order][1:] != keys[order][:-1]
    last = order[is_last]
    present: Matrix = words[last[level[last] != GONE]]
    return present
