"""Sizes of relations for the planner, from the facts that are about to go to the device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

_SAMPLE = 4096
_MIXER = np.uint64(0x9E3779B97F4A7C15)


class SampledStatistics:
    """See `planning.order.Statistics`. The fan-out of some columns is what a fact that is there expects to meet."""

    def __init__(self, facts: Mapping[str, npt.NDArray[np.int32]]) -> None:
        self._facts = facts

    def rows(self, relation: str) -> float:
        return float(len(self._facts[relation]) or self._typical())

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        words = self._facts[relation]
        if not columns or len(words) == 1:
            return self.rows(relation)
        if not len(words):
            return float(self._typical() ** (0.5 ** len(columns)))
        sample = words[:: max(len(words) // _SAMPLE, 1)]
        keys = np.zeros(len(sample), np.uint64)
        for column in columns:
            keys = (keys ^ sample[:, column].astype(np.uint64)) * _MIXER
        _, counts = np.unique(keys, return_counts=True)
        agreeing = float((counts * (counts - 1)).sum()) / max(len(sample) * (len(sample) - 1), 1)
        return 1.0 + (len(words) - 1) * agreeing

    def _typical(self) -> float:
        return float(max(map(len, self._facts.values()), default=0) + 1)
