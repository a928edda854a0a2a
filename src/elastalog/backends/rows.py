"""Rows of one matrix looked up in another, and facts after changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import GONE, Matrix, StateChanges, Vector
from elastalog.relations.facts import FactWords
from elastalog.settings import SETTINGS


def distinct(words: Matrix) -> Matrix:
    """The rows of a matrix, each once."""
    if len(words) < 2 or (len(words) <= SETTINGS.few_rows_compared and len(set(map(bytes, words))) == len(words)):
        return words
    held = _held(words)
    return words if held.used == len(words) else held.rows[: held.used].copy()


def distinct_in_order(words: Matrix) -> tuple[Vector, Vector]:
    """The first place of each distinct row of a matrix, in their order; and which of them each row is. Unlike
    `np.unique`, which compares wrongly when Ctrl-C comes."""
    if not words.shape[1]:
        return np.arange(min(len(words), 1)), np.zeros(len(words), np.int64)
    order = np.lexsort(words.T[::-1])
    ordered = words[order]
    is_first = np.ones(len(words), np.bool_)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.empty(len(words), np.int64)
    place[order] = np.cumsum(is_first) - 1
    return order[is_first], place


def first_and_last(words: Matrix) -> tuple[Vector, Vector]:
    """The first and the last place of each distinct row of a matrix, in their order."""
    first, place = distinct_in_order(words)
    last = np.empty(len(first), np.int64)
    last[place] = np.arange(len(words))  # numpy assigns in order: the last stays
    return first, last


def are_in(words: Matrix, others: Matrix) -> Vector:
    """Which rows of a matrix occur in another."""
    if len(words) + len(others) <= SETTINGS.few_rows_compared:
        known = set(map(bytes, others))
        return np.array([bytes(row) in known for row in words], np.bool_)
    result: Vector = places_in(words, others) >= 0
    return result


def places_in(words: Matrix, others: Matrix) -> Vector:
    """The place of every row of a matrix among the rows of another, which are distinct; -1 where it has none."""
    found: Vector = _held(np.ascontiguousarray(others, np.int32)).find(np.ascontiguousarray(words, np.int32))
    return found


def last_states(changes: Sequence[StateChanges]) -> FactWords:
    """The state of every changed fact after the last of its changes."""
    every = StateChanges.joined(changes, changes[0].words.shape[1])
    held = _held(every.words)
    level, count = np.empty(held.used, np.int32), np.empty(held.used, np.int32)
    rows = held.find(every.words)
    level[rows], count[rows] = every.level, every.count  # numpy assigns in order: the last stays
    return FactWords(held.rows[: held.used], level, count)


def merged(facts: FactWords, changes: Sequence[StateChanges]) -> FactWords:
    """The facts after changes in their order. Only the changed ones are looked for, so this needs little more memory
    than the facts themselves."""
    if not changes:
        return facts
    changed = last_states(changes)
    assert changed.level is not None
    kept = facts.taken(~are_in(facts.words, changed.words))
    return FactWords.joined((kept, changed.taken(changed.level != GONE)))


def _held(words: Matrix) -> KernelRelation:
    held = KernelRelation("", words.shape[1], is_annotated=False)
    held.load(words)
    return held
