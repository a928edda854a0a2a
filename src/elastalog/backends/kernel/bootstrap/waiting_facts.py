"""Facts that wait for their turn: where subsumption keeps the best, the best go first.

Shortest paths found round by round pass through many distances that are improved later, and everything that follows
from them with them. If the nearest go first, nearly every distance that is looked at is final.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.bootstrap.best_values import BestValues
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.settings import SETTINGS

_SHARE = 3
"""A round takes so many facts, or one in so many of those that wait: few, to be final, but enough for a round."""


class WaitingFacts:
    """New facts of one relation that have not been looked at yet."""

    def __init__(self, best: BestValues) -> None:
        self._best = best
        self._rows: Matrix | None = None
        self._counts: Vector | None = None

    @property
    def are_any(self) -> bool:
        return self._rows is not None

    def take(self, rows: Matrix, counts: Vector) -> tuple[Matrix, Vector]:
        """The best of these facts and of those that wait; the others wait."""
        if self._rows is not None and self._counts is not None:
            rows, counts = np.concatenate((self._rows, rows)), np.concatenate((self._counts, counts))
        self._rows = self._counts = None
        if len(rows) <= SETTINGS.waiting_at_once:
            return rows, counts
        is_taken = at_once(self._best.values(rows))
        if not is_taken.all():
            self._rows, self._counts = rows[~is_taken], counts[~is_taken]
        return rows[is_taken], counts[is_taken]


def at_once(values: np.ndarray) -> np.ndarray:
    """Which of some facts, whose values are given, a round takes: the best of them, or all if they are few."""
    most = max(SETTINGS.waiting_at_once, len(values) // _SHARE)
    if len(values) <= most:
        return np.ones(len(values), np.bool_)
    is_taken: np.ndarray = values <= np.partition(values, most)[most]
    return is_taken
