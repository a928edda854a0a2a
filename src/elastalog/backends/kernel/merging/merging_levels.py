"""A stratum in which equivalences form classes, in an update of it: who is in which class, and since which level."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.bootstrap.merging import Merging
from elastalog.backends.kernel.execution.aggregates import rows_by_key
from elastalog.backends.kernel.execution.classes import MEMBER, Members
from elastalog.backends.kernel.execution.equivalence import Equivalence
from elastalog.backends.kernel.store.annotations import ABSENT, REFERENCE
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now


class MergingLevels:
    """First facts and classes are forgotten, which means that their rows are touched: all levels are those of the
    epoch before. Later these classes grow anew, in `mergings`, up to the level that is `reached`; all others are
    *outside*, and as they were."""

    def __init__(self, classes: Mapping[str, str], relations: Mapping[str, KernelRelation]) -> None:
        self._classes = {pairs: relations[name] for pairs, name in classes.items()}
        self._relations = relations
        self._equivalences = {
            pairs: Equivalence(relations[pairs], held, has_levels=True, is_merged=True)
            for pairs, held in self._classes.items()
        }
        self.begin()

    def begin(self) -> None:
        """Nothing is forgotten yet."""
        self.mergings = {pairs: Merging() for pairs in self._classes}
        self.is_forgetting = True
        self.reached = 0

    def of_facts(self, name: str, facts: Matrix) -> Vector:
        """The levels of some facts, ABSENT of those that are not there; of pairs that are outside those at which their
        members came together."""
        levels: Vector = np.full(len(facts), ABSENT, np.int32)
        if name in self._equivalences:
            is_there = self._equivalences[name].contains(facts)
            if is_there.any():
                levels[is_there] = self._equivalences[name].levels_of_chains(facts[is_there])
            return levels
        rows = self._relations[name].find(facts)
        is_known = rows >= 0
        levels[is_known] = np.minimum(levels_now(self._relations[name], rows[is_known]), ABSENT)
        return levels

    def of_heads(self, name: str, facts: Matrix) -> Vector:
        """The levels of heads of derivations that fired before, which are there for that reason."""
        return self.of_pairs_read(name, facts) if name in self._equivalences else self.of_facts(name, facts)

    def of_pairs_read(self, name: str, pairs: Matrix) -> Vector:
        """The levels at which the members of pairs, which are there, came together; 0 in a class that grows, where it
        is no more than what is reached."""
        levels: Vector = np.zeros(len(pairs), np.int32)
        is_outside = ~self.mergings[name].knows(pairs[:, 0])
        if is_outside.any():
            levels[is_outside] = self._equivalences[name].levels_of_chains(pairs[is_outside])
        return levels

    def are_outside(self, name: str, pairs: Matrix) -> Matrix:
        """Which members of pairs are in classes that have not been forgotten."""
        members = Members(pairs)
        places, _ = rows_by_key(self._classes[name], MEMBER, members.words.reshape(-1, 1))
        is_member = np.zeros(len(members), np.bool_)
        is_member[places] = True
        is_outside: Vector = is_member & ~self.mergings[name].knows(members.words)
        found: Matrix = is_outside[members.places(pairs)]
        return found

    def are_news(self, name: str, facts: Matrix) -> Vector:
        """Which of some heads say anything: those that are not forgotten yet, while others are; and later, of pairs,
        those that are not in one class yet."""
        if not self.is_forgetting:
            is_equivalence = name in self._classes
            return ~self.mergings[name].are_joined(facts) if is_equivalence else np.ones(len(facts), np.bool_)
        if name in self._classes:
            return ~self._are_forgotten(name, facts[:, 0])
        relation = self._relations[name]
        rows = relation.find(facts)
        are_news: Vector = (rows < 0) | (relation.level[rows] < REFERENCE)
        return are_news

    def _are_forgotten(self, name: str, members: Vector) -> Vector:
        """Which of some members are of classes that are forgotten."""
        classes, known = self._classes[name], Members(members)
        places, rows = rows_by_key(classes, MEMBER, known.words.reshape(-1, 1))
        is_forgotten = np.zeros(len(known), np.bool_)
        is_forgotten[places] = classes.level[rows] >= REFERENCE
        found: Vector = is_forgotten[known.places(members)]
        return found
