"""Sizes of the kernel's relations for the planner: how many facts, and how many agree on some columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.memory import Vector
from elastalog.backends.kernel.relation import KernelRelation

_SAMPLE = 20_000
_GROWTH = 8.0


class KernelStatistics:
    """Estimates from a sample of each column, made when first asked for. `growing` are the relations of the stratum being planned
    for bootstrap: what they hold now is only a beginning, so they are taken to be some times larger."""

    def __init__(self, relations: Mapping[str, KernelRelation], growing: frozenset[str] = frozenset()) -> None:
        self._relations = relations
        self._growing = growing
        self._distinct: dict[tuple[str, int], float] = {}

    def rows(self, relation: str) -> float:
        known = float(self._relations[relation].used)
        return max(known, self._largest()) * _GROWTH if relation in self._growing else known

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        rows = self.rows(relation)
        if not columns or rows == 0:
            return rows
        distinct = 1.0
        for column in columns:
            distinct *= self._distinct_words(relation, column)
        return max(rows / min(distinct, rows), 0.01)

    def _largest(self) -> float:
        return float(max((r.used for r in self._relations.values()), default=1))

    def _distinct_words(self, relation: str, column: int) -> float:
        key = (relation, column)
        known = self._distinct.get(key)
        if known is None:
            stored = self._relations[relation]
            if stored.used:
                known = estimate_distinct(stored.rows[: stored.used, column])
                if relation in self._growing:
                    # More facts of a growing relation mostly combine the same words.
                    known *= 2.0
            else:
                known = max(self.rows(relation) ** 0.5, 1.0)
            self._distinct[key] = known
        return known


def estimate_distinct(words: Vector) -> float:
    """The number of distinct words, from a sample: words met once in it stand for more (the GEE estimator)."""
    total = len(words)
    if total > _SAMPLE:
        words = words[np.random.default_rng(total).integers(0, total, _SAMPLE)]
    _, counts = np.unique(words, return_counts=True)
    once = int((counts == 1).sum())
    return float((total / len(words)) ** 0.5 * once + (len(counts) - once))
