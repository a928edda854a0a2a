"""Which task holds which facts of a copy: by a hash of one column, so that facts that join meet, but for heavy words.

A word is *heavy* if enough facts have it that the task to which it falls would have most of the work. Of the copies
that a clause joins by its pivot, one spreads the facts with a heavy word over all tasks, by a hash of the whole fact,
and the others have them everywhere. So every derivation is still found by exactly one task. Where a stratum decomposes,
facts with the same word must stay together: heavy words are dealt to the tasks in turn, so that no task gets two while
another gets none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

MULTIPLIER = 0x9E3779B1
_MULTIPLIER = np.uint32(MULTIPLIER)
EVERYWHERE = -1
"""The share of facts that all tasks hold."""

Treatment = Literal["dealt", "spread", "everywhere", "first"]


@dataclass(frozen=True, slots=True)
class Routing:
    """Facts go to one of `shares` tasks by their word in `column`; those with a heavy word there go as `treatment`
    says. Without a `column` all tasks hold all facts, or only the `first` one does."""

    column: int | None
    shares: int
    heavy: tuple[int, ...] = ()
    treatment: Treatment = "dealt"

    def shares_of(self, words: np.ndarray) -> np.ndarray:
        """The share of every fact, EVERYWHERE where all hold it."""
        if self.column is None:
            return np.full(len(words), 0 if self.treatment == "first" else EVERYWHERE, np.int32)
        key = words[:, self.column]
        shares = self.homes_of(key)
        if self.heavy and self.treatment != "dealt":
            is_heavy = np.isin(key, np.array(self.heavy, np.int32))
            shares[is_heavy] = EVERYWHERE if self.treatment == "everywhere" else _spread(words[is_heavy], self.shares)
        return shares

    def homes_of(self, key: np.ndarray) -> np.ndarray:
        """The share of every word."""
        shares = hashed(key, self.shares)
        for position, word in enumerate(self.heavy):
            shares[key == word] = position % self.shares
        return shares

    @property
    def of_owners(self) -> Routing:
        """This routing for owners alone: a fact that several tasks hold goes to the one that owns it."""
        if self.column is None:
            return replace(self, treatment="first")
        return replace(self, treatment="dealt") if self.treatment == "everywhere" else self


def hashed(words: np.ndarray, shares: int) -> np.ndarray:
    """The share of every word: a hash, so that neighbouring numbers spread."""
    mixed = words.astype(np.uint32) * _MULTIPLIER
    spread: np.ndarray = ((mixed >> np.uint32(16)) % np.uint32(shares)).astype(np.int32)
    return spread


def _spread(words: np.ndarray, shares: int) -> np.ndarray:
    mixed = np.zeros(len(words), np.uint32)
    for i in range(words.shape[1]):
        mixed = (mixed ^ words[:, i].astype(np.uint32)) * _MULTIPLIER
        mixed ^= mixed >> np.uint32(15)
    return hashed(mixed, shares)
