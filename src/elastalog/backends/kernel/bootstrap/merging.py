"""Equivalences that take part in their own recursion, evaluated as classes (see `planning.equivalences`).

A row `(member, representative)` says that the member was in a class of that representative in some round. Classes only
grow, so that a row stays true: two values with a representative in common are in one class for good. So these rows are
facts of the recursion like others, and its rounds need no others than those of a round. When classes become one, the
members of all but the largest get rows with the representative of that; a value has few rows, since its class doubles
every time. In the end there is one row for each, with the least member of its class.

Pairs that say nothing new are dropped as they are derived: what is kept of them connects every class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from elastalog.backends.kernel.bootstrap.rounds import SettlingWorkers
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.execution.classes import Members
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.planning.logical import EquivalenceRule


class MergingWorkers(SettlingWorkers):
    """Forms classes of the pairs that variants find."""

    def __init__(
        self, merges: Iterable[EquivalenceRule], relations: Mapping[str, KernelRelation], watch: Watch
    ) -> None:
        super().__init__(relations, watch)
        self._merges = {rule.pairs: (rule.relation, Merging()) for rule in merges}
        for pairs, (_, merging) in self._merges.items():
            merging.join(relations[pairs].rows[: relations[pairs].used])

    def settle(self, iteration: int) -> Mapping[str, int]:
        """The members that the pairs of a round have brought into other classes."""
        for classes, merging in self._merges.values():
            rows = merging.moved()
            relation = self.relations[classes]
            relation.insert(rows, 0, len(rows), relation.used)
        return self.before

    def finished(self) -> dict[str, Matrix]:
        """The classes in the end, by the relation that holds them."""
        return {classes: merging.rows() for classes, merging in self._merges.values()}

    def take(self, variant: BoundVariant, block: Matrix, used: int) -> None:
        if variant.clause.head in self._merges:
            _, merging = self._merges[variant.clause.head]
            block = merging.join(np.ascontiguousarray(block[:used, :2]))  # other columns are of the join
        super().take(variant, block, min(used, len(block)))


class Merging:
    """The classes of one equivalence as they grow: the members in ascending order, the representative of each, and
    whether that has changed since it was last told."""

    def __init__(self) -> None:
        self._members: Vector = np.empty(0, np.int32)
        self._representative: Vector = np.empty(0, np.int32)
        self._has_moved: Vector = np.empty(0, np.bool_)

    def join(self, pairs: Matrix) -> Matrix:
        """Makes one class of the classes of each pair. Returns pairs, not all, that were not in one before: for any two
        classes one is enough."""
        places, are_known = self._places(pairs)
        ends = self._representative[places]
        # A value that is paired with itself alone is in a class, too; one that is in a class already gains nothing.
        is_new = (ends[:, 0] != ends[:, 1]) | ((pairs[:, 0] == pairs[:, 1]) & ~are_known[:, 0])
        new = np.flatnonzero(is_new)
        if len(new):
            ends = np.sort(ends[new], axis=1)
            if len(new) > 1:
                _, first = np.unique(ends.astype(np.int64) @ np.array([1 << 32, 1]), return_index=True)
                ends, new = ends[first], new[first]
            self._merge(ends)
        return np.ascontiguousarray(pairs[new])

    def moved(self) -> Matrix:
        """The members that are in other classes since this was last asked, each with its representative."""
        rows = np.column_stack((self._members[self._has_moved], self._representative[self._has_moved]))
        self._has_moved[:] = False
        return np.ascontiguousarray(rows, np.int32)

    def knows(self, words: Vector) -> Vector:
        """Which of some words are members of a class."""
        _, are_known = _sought(words, self._members)
        return are_known

    def are_joined(self, pairs: Matrix) -> Vector:
        """Which of some pairs are in one class."""
        places, are_known = _sought(pairs, self._members)
        are_joined: Vector = are_known[:, 0] & are_known[:, 1]
        ends = self._representative[places[are_joined]]
        are_joined[are_joined] = ends[:, 0] == ends[:, 1]
        return are_joined

    def rows(self) -> Matrix:
        """All members, each with the least of its class: in whatever way a class has come about, its rows are the
        same, and the strata that read them hear of no change."""
        known, place = np.unique(self._representative, return_inverse=True)
        least = np.full(len(known), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(least, place, self._members)
        return np.ascontiguousarray(np.column_stack((self._members, least[place])), np.int32)

    def _places(self, pairs: Matrix) -> tuple[Vector, Vector]:
        """Where the values of pairs are among the members, and which of them were: those that were in no class are in
        one of their own now."""
        places, are_known = _sought(pairs, self._members)
        if not are_known.all():
            new = Members(pairs[~are_known]).words
            order = np.argsort(np.concatenate((self._members, new)), kind="stable")
            self._members = np.concatenate((self._members, new))[order]
            self._representative = np.concatenate((self._representative, new))[order]
            self._has_moved = np.concatenate((self._has_moved, np.ones(len(new), np.bool_)))[order]
            places = np.searchsorted(self._members, pairs)
        return places, are_known

    def _merge(self, ends: Matrix) -> None:
        """Makes one class of the classes with two representatives, for each pair of these."""
        known = Members(ends)
        root = known.united(ends)
        place, is_concerned = _sought(self._representative, known.words)
        concerned = np.flatnonzero(is_concerned)
        place = place[concerned]
        by_size = np.argsort(np.bincount(place, minlength=len(known)), kind="stable")
        largest = np.empty(len(known), np.int64)
        largest[root[by_size]] = by_size  # the last that is written is the largest
        other = known.words[largest[root]][place]
        self._has_moved[concerned] |= other != self._representative[concerned]
        self._representative[concerned] = other


def _sought(words: Matrix, known: Vector) -> tuple[Vector, Vector]:
    """The place of each of some words among others, which are in ascending order, and whether it is there at all."""
    places: Vector = np.searchsorted(known, words)
    if not len(known):
        return places, np.zeros(words.shape, np.bool_)
    np.minimum(places, len(known) - 1, out=places)
    are_there: Vector = known[places] == words
    return places, are_there
