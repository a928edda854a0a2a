"""An equivalence that is kept as classes, as whoever reads facts sees it outside an update: all its pairs.

A pair that is stored has the level that is stored. Any other is derived by a chain of stored pairs: its level is 1 +
the least, over all chains, of the highest level in the chain, and its count is 1. So it is for every pair that is not
explicit if the equivalence is merged: which pairs its recursion stores is a matter of order.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.execution.aggregates import rows_of_keys
from elastalog.backends.kernel.execution.classes import MEMBER, Members, rows_of_classes
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now
from elastalog.backends.rows import are_in
from elastalog.late import dataclass
from elastalog.relations.facts import FactWords
from elastalog.relations.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Equivalence:
    """`pairs` are those that generate it, `classes` its members with their representatives."""

    pairs: KernelRelation
    classes: KernelRelation
    has_levels: bool
    is_merged: bool = False

    def size(self) -> int:
        """The number of pairs."""
        named = self._present()[:, 1]
        sizes = np.bincount(Members(named).places(named)).astype(np.int64)
        return int((sizes * sizes).sum())

    def all_pairs(self) -> Pairs:
        """The pairs, not written out."""
        return Pairs.of(self._present())

    def facts(self) -> FactWords:
        """All pairs."""
        return self._annotated(self.all_pairs().words())

    def contains(self, words: Matrix) -> Vector:
        """Which of some pairs there are."""
        members = Members(words).words
        known = self.classes.rows[rows_of_keys(self.classes, MEMBER, members.reshape(-1, 1))]
        if not len(known):
            return np.zeros(len(words), np.bool_)
        known = known[np.argsort(known[:, 0])]
        places = np.minimum(np.searchsorted(known[:, 0], words), len(known) - 1)
        is_known = (known[places, 0] == words).all(axis=1)
        represented = known[places, 1]
        is_there: Vector = is_known & (represented[:, 0] == represented[:, 1])
        return is_there

    def select(self, columns: tuple[int, ...], key: Vector) -> FactWords:
        """The pairs with given words in some columns, without levels: these take a look at the whole class."""
        if not columns:
            return FactWords(self.all_pairs().words())
        if len(columns) == 2:
            words = np.array(key, np.int32).reshape(1, 2)[:, list(columns)]
            return FactWords(words[self.contains(words)])
        others = self._class_of(np.array(key, np.int32))
        words = np.empty((len(others), 2), np.int32)
        words[:, columns[0]] = key[0]
        words[:, 1 - columns[0]] = others
        return FactWords(words)

    def chain(self, left: int, right: int) -> Matrix | None:
        """The shortest chain of stored pairs from one member to another of its class, among those that give the pair
        its level; of a member to itself, a pair that it is in. None if the pair is stored itself."""
        pair = np.array([[left, right]], np.int32)
        if (self._stored_rows(pair) >= 0).all():
            return None
        members = Members(self._class_of(pair))
        rows = rows_of_keys(self.pairs, MEMBER, members.words.reshape(-1, 1))
        if self.has_levels:
            rows = rows[self.pairs.level[rows] < self._levels(pair)[0]]
        words = self.pairs.rows[rows]
        if left == right:
            touching: Matrix = words[(words == left).any(axis=1)][:1]
            return touching
        way = members.way(words, left, right)
        links = np.stack((way[:-1], way[1:]), axis=1)
        back = np.ascontiguousarray(links[:, ::-1])
        is_there = are_in(links, words)
        return np.where(is_there[:, None], links, back)

    def _stored_rows(self, words: Matrix) -> Vector:
        """The rows of pairs that are stored, -1 for others."""
        row = self.pairs.find(words)
        is_found = row >= 0
        if self.pairs.is_annotated:
            row[is_found] = np.where(self.pairs.level[row[is_found]] < ABSENT, row[is_found], -1)
        return row

    def _present(self) -> Matrix:
        words: Matrix = self.classes.rows[self.classes.present_rows()]
        return words

    def _class_of(self, words: Vector) -> Vector:
        """All members of the classes that some words are members of."""
        members: Vector = self.classes.rows[rows_of_classes(self.classes, words)][:, 0]
        return members

    def _annotated(self, words: Matrix) -> FactWords:
        if not self.has_levels:
            return FactWords(words)
        level = self._levels(words)
        row = self._stored_rows(words)
        is_stored = row >= 0
        if self.is_merged:
            is_stored[is_stored] = self.pairs.level[row[is_stored]] == 0
        count = np.ones(len(words), np.int32)
        level[is_stored] = self.pairs.level[row[is_stored]]
        count[is_stored] = self.pairs.count[row[is_stored]]
        return FactWords(words, level, count)

    def _levels(self, words: Matrix) -> Vector:
        """Of each of some pairs, the level by the best chain."""
        return self.levels_of_chains(words) + np.int32(1)

    def levels_of_chains(self, words: Matrix) -> Vector:
        """Of each of some pairs the least, over all chains of stored pairs, of the highest level in the chain; in an
        update, as long as it has not reached their classes."""
        members = Members(self._class_of(words))
        rows = rows_of_keys(self.pairs, MEMBER, members.words.reshape(-1, 1))
        return members.levels(self.pairs.rows[rows], levels_now(self.pairs, rows), words)


__all__ = ["Equivalence"]
