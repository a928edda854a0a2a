"""The device as a place where the kernel has strata evaluated: which ones, and what happens when it has no room. One
line of the log for every stratum says where and why.

Whether a stratum that the kernel has begun goes on faster there is a forecast, from what has been seen of it so far. It
counts what a user waits for: the copies there and back, launches, and that the rest is a guess.

How many facts will follow is not known. As long as rounds find about as many as ever, the rest is taken for as many as
there are: then the time that is lost by going on too long here is at most about the time that was spent here. Where
rounds grow several times over, the next one alone may find more than that. When they have become smaller, little is
left, and the stratum stays here. The kernel waits for the start of the device only for about half of what its next
round would take; the start is therefore begun before anything is certain: when a stratum has taken part of the time
that a start takes, and found much.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from math import prod
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from elastalog.analysis.program import Constant
from elastalog.backends.gpu import starting
from elastalog.backends.kernel.bootstrap.handover import Begun, Given, SoFar
from elastalog.backends.kernel.execution.aggregates import Folded
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.protocol import BEGUN_HERE, Placed, StratumElsewhere
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum, Scan
from elastalog.planning.order import Statistics, order_goals
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:  # what evaluates is imported when something is evaluated: with `auto`, that is rare
    from elastalog.backends.gpu.arrays import Arrays, Carrier
    from elastalog.backends.gpu.sorted_facts import SortedIndex

T = TypeVar("T")

log = logging.getLogger("elastalog.placement")

CHUNK = 1 << 26
"""Derivations that are held at a time, unless there is little memory."""
_BYTES_A_DERIVATION = 64


@dataclass(frozen=True, slots=True)
class _Held:
    """Facts as the planner's statistics look at them."""

    rows: npt.NDArray[np.int32]
    used: int


def _statistics(facts: Mapping[str, npt.NDArray[np.int32]]) -> KernelStatistics:
    return KernelStatistics({name: _Held(words, len(words)) for name, words in facts.items()})


def _variants(stratum: LogicalStratum) -> int:
    """How many variants of rules run in a round."""
    return sum(len(clause.recursive_goals) for clause in stratum.clauses)


class DevicePlace:
    """See `OtherPlace`. `arrays`: where; None for the device of this machine, which is started when it is needed.
    `is_asked`: the user wants strata there wherever possible; otherwise the kernel begins with them, and those go there
    of which enough is left. `room`: bytes of the device that may be used. `goes_to_the_end`: small rounds are not left
    to the kernel."""

    def __init__(
        self,
        arrays: Arrays | None,
        dictionary: Dictionary,
        source: Source,
        watch: Watch,
        *,
        is_asked: bool,
        chunk: int | None = None,
        goes_to_the_end: bool = False,
        room: int | None = None,
    ) -> None:
        self._given = arrays
        self._room = room
        self._dictionary = dictionary
        self._source = source
        self._watch = watch
        self.is_asked = is_asked
        self._goes_to_the_end = goes_to_the_end
        self._chunk_given = chunk
        self._why = ""
        self._failed: set[int] = set()
        self._kept: dict[str, SortedIndex] = {}
        """What strata evaluated there have left for those that read it: the first facts of a relation."""
        self.costs: dict[int, StratumElsewhere] = {}
        self.placed: dict[int, Placed] = {}

    @property
    def _arrays(self) -> Arrays:
        assert self._is_there()
        assert self._given is not None
        return self._given

    def _is_there(self) -> bool:
        """Waits for the start of the device. Where it fails, NumPy takes the place of one that was asked for."""
        from elastalog.backends.gpu.arrays import on_device, on_numpy

        if self._given is None:
            self._given = on_device(self._room)
        if self._given is None and self.is_asked:
            log.warning("engine gpu: there is no GPU that can be used; NumPy takes its place")
            self._given = on_numpy(self._room)
        return self._given is not None

    @property
    def _chunk(self) -> int:
        room = self._arrays.room or CHUNK * _BYTES_A_DERIVATION
        return self._chunk_given or max(min(CHUNK, room // (4 * _BYTES_A_DERIVATION)), 1)

    @property
    def _is_ready(self) -> bool:
        return self._given is not None or starting.is_ready()

    def evaluate(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, npt.NDArray[np.int32]],
        limits: Mapping[str, int],
        levels: Mapping[str, npt.NDArray[np.int32]] | None = None,
    ) -> Begun | None:
        size = sum(map(len, facts.values()))
        may_begin = stratum.is_recursive and levels is None and not limits.keys() & set(stratum.relations)
        if self.is_asked or not may_begin:
            there = 0 if levels is not None else sum(len(self._kept.get(name, ())) for name in stratum.reads)
            if not self._is_worth_it(stratum, size, there):
                return None
        elif not self._is_large(stratum, facts, size):
            self._leave(stratum, BEGUN_HERE)
            return None
        return self._evaluated(stratum, facts, limits, levels, None)

    def wants(self, stratum: LogicalStratum, so_far: SoFar) -> bool:
        if self.is_asked or stratum.number in self._failed or not (self._is_ready or starting.is_there()):
            return False
        guess = forecast(so_far, _variants(stratum))
        log.debug("stratum %d: %s: the rest takes %s", stratum.number, so_far, guess)
        left = 0.0 if self._is_ready else starting.seconds_left()
        if left > max(SETTINGS.device_longest_wait, guess.round / 2):
            if is_worth_a_start(so_far, guess, left):
                starting.begin()  # the kernel goes on meanwhile
            return False
        self._why = f" after {so_far.seconds:.2f} s here, with {so_far.found:,} facts, since the rest takes {guess}"
        return guess.is_better_there(left) and self._is_there()

    def take_over(
        self, stratum: LogicalStratum, facts: Mapping[str, npt.NDArray[np.int32]], given: Mapping[str, Given]
    ) -> Begun | None:
        begun = self._evaluated(stratum, facts, {}, None, given)
        if begun is None:
            self._failed.add(stratum.number)
        return begun

    def _evaluated(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, npt.NDArray[np.int32]],
        limits: Mapping[str, int],
        levels: Mapping[str, npt.NDArray[np.int32]] | None,
        given: Mapping[str, Given] | None,
    ) -> Begun | None:
        from elastalog.backends.gpu.rounds import StratumRounds

        known = {**facts, **{name: one.facts.words for name, one in (given or {}).items()}}
        statistics = _statistics(known)
        before = self._watch.derivations

        def run(carrier: Carrier) -> tuple[Begun, Mapping[str, int], dict[str, SortedIndex]]:
            self._watch.derivations = before
            left = {name: self._kept[name] for name in self._kept.keys() & facts.keys() if levels is None}
            rounds = StratumRounds(
                stratum, facts, left, self._arrays, self._dictionary, self._source, statistics, self._watch,
                self._chunk, carrier, levels, given,
            )  # fmt: skip
            begun = rounds.run(limits, self._goes_to_the_end)
            return begun, rounds.bytes(), rounds.left() if levels is None else {}

        done = self._tried(stratum, run)
        if done is None:
            self._watch.derivations = before
            return None
        (begun, sizes, left), seconds = done
        self._kept |= left
        self._note(stratum, seconds, begun.rounds, begun.derivations, sizes)
        rest = "" if begun.is_done else "; the small rounds that follow in this process"
        began = self._why if given else ""
        what = f"{begun.rounds:,} rounds, {begun.derivations:,} derivations{rest}"
        self._tell(stratum, "gpu", f"{self._where}{began}: {what}")
        return begun

    def keep(self, is_read: Callable[[str], bool]) -> None:
        for name in [name for name in self._kept if not is_read(name)]:
            del self._kept[name]

    def fold(
        self, stratum: LogicalStratum, members: npt.NDArray[np.int32], levels: npt.NDArray[np.int32] | None
    ) -> Folded | None:
        from elastalog.backends.gpu.folding import folded, why_not

        rule = stratum.aggregate
        assert rule is not None
        reason = why_not(rule)
        if reason is not None or not len(members):
            self._leave(stratum, f"{reason or 'there is nothing to fold'}")
            return None
        if not self._is_worth_it(stratum, len(members)):
            return None

        def run(carrier: Carrier) -> Folded | None:
            left = self._kept.get(rule.members)
            return folded(rule, members, left, levels, self._arrays, carrier, self._dictionary)

        done = self._tried(stratum, run)
        if done is None:
            return None
        found, seconds = done
        if found is None:
            self._leave(stratum, "there are numbers beyond 30 bits")
            return None
        self._note(stratum, seconds, 1, 0, {rule.relation: found.rows.nbytes})
        self._tell(stratum, "gpu", f"{self._where}: {len(members):,} facts of {len(found.rows):,} groups folded")
        return found

    def _is_large(self, stratum: LogicalStratum, facts: Mapping[str, npt.NDArray[np.int32]], size: int) -> bool:
        """Whether a stratum need not be begun here to know that it takes long: it reads much, or every fact of it leads
        to several others."""
        is_quick = self._is_ready or starting.seconds_left() <= SETTINGS.device_at_once_wait
        is_simple = _variants(stratum) <= SETTINGS.device_most_variants
        if not is_quick or not is_simple or size < SETTINGS.device_from:
            return False
        if size < SETTINGS.device_at_once_from:
            empty = [name for name, words in facts.items() if not len(words)]
            if growth(stratum, _statistics(facts), empty) < SETTINGS.device_growth:
                return False
        return self._is_there()

    def _is_worth_it(self, stratum: LogicalStratum, size: int, there: int = 0) -> bool:
        """Whether a stratum that reads and holds `size` facts, `there` of them on the device already, goes to the
        device; if not, the log says so."""
        if self.is_asked and self._given is not None and not self._given.is_device:
            return True  # NumPy takes the place of a device for the sake of those who want to see that happen
        is_pass = not stratum.is_recursive and not stratum.is_folded
        if is_pass and not self.is_asked and there < size / 2:
            self._leave(stratum, "without recursion, it is not worth the transfer")
            return False
        least = (
            SETTINGS.device_asked_from
            if self.is_asked
            else SETTINGS.device_from
            if self._is_ready
            else SETTINGS.device_from_unstarted
        )
        least = SETTINGS.device_once_from if is_pass else least
        if size < least:
            self._tell(
                stratum, "kernel", f"in this process: {size:,} facts are not worth the transfer, {least:,} would be"
            )
        return size >= least and self._is_there()

    def _tried(self, stratum: LogicalStratum, do: Callable[[Carrier], T]) -> tuple[T, float] | None:
        """What something on the device gives, and the seconds it took; None if there was no room or it failed."""
        from elastalog.backends.gpu.arrays import Carrier, out_of_memory

        arrays = self._arrays
        arrays.peak, arrays.transfer = 0, 0.0
        began = time.perf_counter()
        carrier = Carrier(arrays)
        try:
            return do(carrier), time.perf_counter() - began
        except out_of_memory() as fault:
            why = type(fault).__name__
        finally:
            carrier.close()
        if self._kept:
            log.info("stratum %d: the device has no room beside what strata before have left there", stratum.number)
            self._kept.clear()
            return self._tried(stratum, do)
        self._leave(stratum, f"the device has no room, or failed ({why})")
        return None

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


# --- whether a stratum goes on faster there ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Seconds for a fact that is copied there and sorted, for one that is found there and copied back, for the work
    that does not depend on the size, for a round, and for a variant of a rule in it."""

    sent: float = 3e-9
    found: float = 5e-9
    launch: float = 0.03
    round: float = 0.1e-3
    variant: float = 0.55e-3


H200 = DeviceCosts()
"""Measured on an H200: a fact that is found took 1.1 to 11 ns, a round 0.5 to 1.1 ms where one variant runs in it, 2.3
to 3.1 with the four of points-to, 5 to 7 with the eleven of Galen, 23 to 33 with the 46 of Doop's largest stratum."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that the rest takes: here, and on the device (`there`). `found`: how many facts it goes by. `round`: what
    the next round takes here, if it grows as the last has. `is_ebbing`: rounds are becoming small."""

    here: float
    there: float
    found: int
    round: float = 0.0
    is_ebbing: bool = False

    def is_better_there(self, wait: float = 0.0) -> bool:
        """Whether the device is faster, if it can begin after some seconds, in which the kernel goes on."""
        is_long = self.found >= SETTINGS.device_least_found and self.here > SETTINGS.device_least_rest
        return is_long and self.here - wait > SETTINGS.device_gain * self.there

    def __str__(self) -> str:
        return f"about {self.here:.2f} s here, {self.there:.2f} s there"


def forecast(so_far: SoFar, variants: int, costs: DeviceCosts = H200) -> Forecast:
    """The forecast for a stratum that was begun here and runs `variants` variants of its rules per round."""
    is_ebbing = so_far.delta < SETTINGS.device_ebb * so_far.most and not so_far.has_risen
    before = so_far.found - so_far.delta
    following = so_far.delta**2 // before if before else so_far.delta
    rest = 2 * so_far.delta if is_ebbing else max(so_far.found, following)
    pace = so_far.lately / so_far.lately_seconds if so_far.lately_seconds > 0 else 0.0
    here = rest / pace if pace > 0 else 0.0
    rounds = rest * so_far.lately_rounds / max(so_far.lately, 1)
    launches = costs.launch + rounds * (costs.round + variants * costs.variant)
    there = launches + (so_far.found + so_far.read) * costs.sent + rest * costs.found
    return Forecast(here, there, so_far.found, following / pace if pace > 0 else 0.0, is_ebbing)


def is_worth_a_start(so_far: SoFar, guess: Forecast, start: float) -> bool:
    """Whether a device that takes some seconds to start had better be started beside the kernel."""
    is_long = (
        so_far.seconds >= SETTINGS.device_start_part * start
        and so_far.found >= SETTINGS.device_start_from
        and not guess.is_ebbing
    )
    return (is_long and starting.has_cores()) or guess.is_better_there(start)


def growth(stratum: LogicalStratum, statistics: Statistics, empty: Collection[str]) -> float:
    """About how many facts follow in the next round from one of a stratum that has not begun, of the relation of which
    most follow. Rules that join it with relations which are still `empty` are left out: nothing is known of them."""
    follow = dict.fromkeys(stratum.relations, 0.0)
    for clause in stratum.clauses:
        scans = {i: goal.relation for i, goal in enumerate(clause.goals) if isinstance(goal, Scan)}
        for start in clause.recursive_goals:
            if not any(relation in empty for i, relation in scans.items() if i != start):
                follow[scans[start]] += _follow(clause, start, statistics)
    return max(follow.values())


def _follow(clause: Clause, start: int, statistics: Statistics) -> float:
    bound: set[object] = set()
    fanouts = []
    for visit in order_goals(clause, start, set(), statistics):
        goal = None if visit.goal is None else clause.goals[visit.goal]
        if isinstance(goal, Scan):
            columns = tuple(c for c, term in enumerate(goal.terms) if term in bound or isinstance(term, Constant))
            if visit.goal != start and len(columns) < len(goal.terms):
                fanouts.append(statistics.fanout(goal.relation, columns))
            bound.update(goal.terms)
    return prod(fanouts)
