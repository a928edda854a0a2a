"""The device as a place where the kernel has strata evaluated: which ones, and what happens when it has no room. One
line of the log for every stratum says where and why."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.arrays import Arrays, out_of_memory
from elastalog.backends.gpu.carrying import Carrier
from elastalog.backends.gpu.folding import folded, why_not
from elastalog.backends.gpu.rounds import StratumRounds
from elastalog.backends.kernel.bootstrap.fixpoint import Begun
from elastalog.backends.kernel.execution.aggregates import Folded
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.protocol import Placed, StratumElsewhere
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.words import Dictionary

T = TypeVar("T")

log = logging.getLogger("elastalog.placement")

CHUNK = 1 << 26
"""Derivations that are held at a time, unless there is little memory."""
_BYTES_A_DERIVATION = 64
LEAST_FACTS = 30_000
"""Facts that a stratum must read or hold to be worth the transfer, where the choice is ours."""
LEAST_ASKED = 5_000
"""Where the user wants it there: the kernel is done with fewer in the time of a few launches, unless they grow much."""
LEAST_ONCE = 100_000
"""The same for a stratum without recursion, which looks at its facts once."""


@dataclass(frozen=True, slots=True)
class _Given:
    """Facts as the planner's statistics look at them."""

    rows: npt.NDArray[np.int32]
    used: int


class DevicePlace:
    """See `OtherPlace`. `is_asked`: the user wants strata there wherever possible; otherwise only large ones go.
    `goes_to_the_end`: small rounds are not left to the kernel."""

    def __init__(
        self,
        arrays: Arrays,
        dictionary: Dictionary,
        source: Source,
        watch: Watch,
        *,
        is_asked: bool,
        chunk: int | None = None,
        goes_to_the_end: bool = False,
    ) -> None:
        self._arrays = arrays
        self._dictionary = dictionary
        self._source = source
        self._watch = watch
        self._is_asked = is_asked
        self._goes_to_the_end = goes_to_the_end
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
        if not self._is_worth_it(stratum, sum(map(len, facts.values()))):
            return None
        statistics = KernelStatistics({name: _Given(words, len(words)) for name, words in facts.items()})
        before = self._watch.derivations

        def run(carrier: Carrier) -> tuple[Begun, Mapping[str, int]]:
            rounds = StratumRounds(
                stratum, facts, self._arrays, self._dictionary, self._source, statistics, self._watch,
                self._chunk, carrier, levels,
            )  # fmt: skip
            begun = rounds.run(limits, self._goes_to_the_end)
            return begun, rounds.bytes()

        done = self._tried(stratum, run)
        if done is None:
            self._watch.derivations = before
            return None
        (begun, sizes), seconds = done
        self._note(stratum, seconds, begun.rounds, begun.derivations, sizes)
        rest = "" if begun.is_done else "; the small rounds that follow in this process"
        self._tell(stratum, "gpu", f"{self._where}: {begun.rounds:,} rounds, {begun.derivations:,} derivations{rest}")
        return begun

    def fold(
        self, stratum: LogicalStratum, members: npt.NDArray[np.int32], levels: npt.NDArray[np.int32] | None
    ) -> Folded | None:
        rule = stratum.aggregate
        assert rule is not None
        reason = why_not(rule)
        if reason is not None or not len(members):
            self._leave(stratum, f"{reason or 'there is nothing to fold'}")
            return None
        if not self._is_worth_it(stratum, len(members)):
            return None
        done = self._tried(
            stratum, lambda carrier: folded(rule, members, levels, self._arrays, carrier, self._dictionary)
        )
        if done is None:
            return None
        found, seconds = done
        if found is None:
            self._leave(stratum, "there are numbers beyond 30 bits")
            return None
        self._note(stratum, seconds, 1, 0, {rule.relation: found.rows.nbytes})
        self._tell(stratum, "gpu", f"{self._where}: {len(members):,} facts of {len(found.rows):,} groups folded")
        return found

    def _is_worth_it(self, stratum: LogicalStratum, size: int) -> bool:
        """Whether a stratum that reads and holds so many facts goes to the device; if not, the log says so."""
        if self._is_asked and not self._arrays.is_device:
            return True  # NumPy takes the place of a device for the sake of those who want to see that happen
        is_pass = not stratum.is_recursive and not stratum.is_folded
        if is_pass and not self._is_asked:
            self._leave(stratum, "without recursion, it is not worth the transfer")
            return False
        least = LEAST_FACTS if not self._is_asked else LEAST_ONCE if is_pass else LEAST_ASKED
        if size < least:
            self._tell(
                stratum, "kernel", f"in this process: {size:,} facts are not worth the transfer, {least:,} would be"
            )
        return size >= least

    def _tried(self, stratum: LogicalStratum, do: Callable[[Carrier], T]) -> tuple[T, float] | None:
        """What something on the device gives, and the seconds it took; None if there was no room or it failed."""
        arrays = self._arrays
        arrays.peak, arrays.transfer = 0, 0.0
        began = time.perf_counter()
        carrier = Carrier(arrays)
        try:
            return do(carrier), time.perf_counter() - began
        except out_of_memory() as fault:
            self._tell(
                stratum, "kernel", f"in this process: the device has no room, or failed ({type(fault).__name__})"
            )
            return None
        finally:
            carrier.close()

    @property
    def _where(self) -> str:
        return "on the GPU" if self._arrays.is_device else "on NumPy in place of a GPU"

    def _note(
        self, stratum: LogicalStratum, seconds: float, rounds: int, derivations: int, sizes: Mapping[str, int]
    ) -> None:
        arrays = self._arrays
        self.costs[stratum.number] = StratumElsewhere(
            stratum.number, arrays.name, seconds, arrays.transfer, rounds, derivations, sizes, arrays.peak
        )

    def _leave(self, stratum: LogicalStratum, why: str) -> None:
        self._tell(stratum, "kernel", f"in this process: {why}")

    def _tell(self, stratum: LogicalStratum, where: str, what: str) -> None:
        self.placed[stratum.number] = Placed(stratum.number, stratum.relations, where, what)
        log.info("stratum %d (%s): %s", stratum.number, ", ".join(stratum.relations), what)
