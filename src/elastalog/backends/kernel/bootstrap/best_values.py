"""The best fact of every key, where subsumption is of the usual form (see `planning.ranked`).

For each key, the values of the other columns, the best number is remembered, so that a new fact is looked up once
instead of being compared with others.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.planning.ranked import Comparison
from elastalog.relations.words import Dictionary

_NO_ROW = -1
_WORST = np.iinfo(np.int64).max


class BestValues:
    """The best fact of every key of a relation under evaluation, which holds the facts that are given."""

    def __init__(self, relation: KernelRelation, comparison: Comparison, dictionary: Dictionary) -> None:
        self.comparison = comparison
        self._dictionary = dictionary
        self._keys = KernelRelation("", relation.width, is_annotated=False)
        self._best = np.empty(0, np.int64)
        self._is_known = np.empty(0, np.bool_)
        self._row = np.empty(0, np.int32)
        given = relation.rows[: relation.used]
        keys, values = self._look_up(given)
        np.minimum.at(self._best, keys, values)
        self._is_known[keys] = True

    def values(self, facts: Matrix) -> np.ndarray:
        """What decides about facts: of two values the lesser is the better one."""
        values: np.ndarray = self._dictionary.integers(facts[:, self.comparison.column])
        return values if self.comparison.is_least else ~values

    def settle(self, facts: Matrix) -> tuple[np.ndarray, Vector]:
        """Which of some facts, none of which is there, are the best of their keys, and the rows of those that were."""
        keys, values = self._look_up(facts)
        order = np.lexsort((values, keys))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = keys[order[1:]] != keys[order[:-1]]
        firsts = order[is_first]
        is_better = ~self._is_known[keys[firsts]] | (values[firsts] < self._best[keys[firsts]])
        firsts = np.sort(firsts[is_better])
        enters = np.zeros(len(facts), np.bool_)
        enters[firsts] = True
        self._best[keys[firsts]] = values[firsts]
        self._is_known[keys[firsts]] = True
        leaving = self._row[keys[firsts]]
        return enters, leaving[leaving != _NO_ROW]

    def enter(self, facts: Matrix, first: int) -> None:
        """The best of some keys are in rows from `first` on."""
        keys, _ = self._look_up(facts)
        self._row[keys] = np.arange(first, first + len(facts), dtype=np.int32)

    def renumber(self, kept: Vector, used: int) -> None:
        """Of the rows up to `used` only some are kept."""
        numbers = np.full(used + 1, _NO_ROW, np.int32)
        numbers[kept] = np.arange(len(kept), dtype=np.int32)
        self._row = numbers[self._row]

    def rivals(self, facts: Matrix) -> Matrix:
        """The best fact of the key of each fact."""
        keys, _ = self._look_up(facts)
        numbers = self._best[keys] if self.comparison.is_least else ~self._best[keys]
        found = np.array(facts, np.int32)
        found[:, self.comparison.column] = self._dictionary.from_integers(numbers)
        return found

    def _look_up(self, facts: Matrix) -> tuple[Vector, np.ndarray]:
        """The number of each fact's key, and its value."""
        column = self.comparison.column
        keys = np.array(facts, np.int32)
        keys[:, column] = 0
        self._keys.insert(keys, 0, len(keys), 0)
        if self._keys.used > len(self._best):
            more = self._keys.used + self._keys.used // 2 - len(self._best)
            self._best = np.concatenate((self._best, np.full(more, _WORST)))
            self._is_known = np.concatenate((self._is_known, np.zeros(more, np.bool_)))
            self._row = np.concatenate((self._row, np.full(more, _NO_ROW, np.int32)))
        return self._keys.find(keys), self.values(facts)
