"""The device as a place where the kernel has strata evaluated: which ones, and what happens when it has no room. One
line of the log for every stratum says where and why."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.arrays import Arrays, out_of_memory
from elastalog.backends.gpu.rounds import StratumRounds
from elastalog.backends.kernel.bootstrap.begun import Begun
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.protocol import Placed, StratumElsewhere
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.words import Dictionary

log = logging.getLogger("elastalog.placement")

CHUNK = 1 << 26
"""Derivations that are held at a time, unless there is little memory."""
_BYTES_A_DERIVATION = 64
LEAST_FACTS = 200_000
"""Facts that a stratum must read or hold to be worth the transfer, where the choice is ours."""


@dataclass(frozen=True, slots=True)
class _Given:
    """Facts as the planner's statistics look at them."""

    rows: npt.NDArray[np.int32]
    used: int


class DevicePlace:
    """See `OtherPlace`. `is_asked`: the user wants strata there wherever possible; otherwise only large ones go."""

    def __init__(
        self,
        arrays: Arrays,
        dictionary: Dictionary,
        source: Source,
        watch: Watch,
        *,
        is_asked: bool,
        chunk: int | None = None,
    ) -> None:
        self._arrays = arrays
        self._dictionary = dictionary
        self._source = source
        self._watch = watch
        self._is_asked = is_asked
        self.costs: dict[int, StratumElsewhere] = {}
        self.placed: dict[int, Placed] = {}
        room = arrays.room or CHUNK * _BYTES_A_DERIVATION
        self._chunk = chunk or max(min(CHUNK, room // (4 * _BYTES_A_DERIVATION)), 1)

    def evaluate(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, npt.NDArray[np.int32]],
        limits: Mapping[str, int],
        levels: Mapping[str, npt.NDArray[np.int32]] | None = None,
    ) -> Begun | None:
        size = sum(map(len, facts.values()))
        if not self._is_asked and (size < LEAST_FACTS or not stratum.is_recursive):
            self._tell(stratum, "kernel", f"in this process: {size:,} facts are not worth the transfer")
            return None
        statistics = KernelStatistics({name: _Given(words, len(words)) for name, words in facts.items()})
        before = self._watch.derivations
        arrays = self._arrays
        arrays.peak, arrays.transfer = 0, 0.0
        began = time.perf_counter()
        try:
            rounds = StratumRounds(
                stratum, facts, self._arrays, self._dictionary, self._source, statistics, self._watch,
                self._chunk, levels,
            )  # fmt: skip
            begun = rounds.run(limits)
        except out_of_memory() as fault:
            self._watch.derivations = before
            told = f"in this process: the device has no room, or failed ({type(fault).__name__})"
            self._tell(stratum, "kernel", told)
            return None
        self.costs[stratum.number] = StratumElsewhere(
            stratum.number, arrays.name, time.perf_counter() - began, arrays.transfer, begun.rounds, begun.derivations,
            rounds.bytes(), arrays.peak,
        )  # fmt: skip
        where = "on the GPU" if self._arrays.is_device else "on NumPy in place of a GPU"
        rest = "" if begun.is_done else "; the small rounds that follow in this process"
        self._tell(stratum, "gpu", f"{where}: {begun.rounds:,} rounds, {begun.derivations:,} derivations{rest}")
        return begun

    def _tell(self, stratum: LogicalStratum, where: str, what: str) -> None:
        self.placed[stratum.number] = Placed(stratum.number, stratum.relations, where, what)
        log.info("stratum %d (%s): %s", stratum.number, ", ".join(stratum.relations), what)
