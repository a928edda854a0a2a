"""Strata that another place evaluates for the kernel: to their end, or to where rounds get so small that the kernel is
faster; from their start, or from the round where the kernel is with one that takes long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elastalog.backends.kernel.bootstrap.rounds import Progress
from elastalog.backends.kernel.execution.aggregates import Folded
from elastalog.backends.protocol import Placed, StratumElsewhere
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.facts import FactWords
from elastalog.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Begun:
    """The facts of a stratum after `rounds` rounds, in the order of their levels, explicit ones first. `is_done`: there
    are no others. `is_complete`: no `.limitsize` has cut it short."""

    relations: Mapping[str, FactWords]
    rounds: int
    derivations: int
    is_done: bool
    is_complete: bool

    @property
    def progress(self) -> Progress:
        """Where the kernel goes on with it."""
        last = np.int32(self.rounds)  # of the type of levels: for another one NumPy would copy them all
        start = {name: int(np.searchsorted(facts.level, last)) for name, facts in self.relations.items()}  # type: ignore[arg-type]
        stop = {name: len(facts.words) for name, facts in self.relations.items()}
        return Progress(start, stop, self.rounds + 1, self.is_done)


@dataclass(frozen=True, slots=True)
class Given:
    """The facts of a relation when a round is to come: `before` of them were there before the last one. Without
    annotations there are no levels and counts."""

    facts: FactWords
    before: int
    round: int


@dataclass(frozen=True, slots=True)
class SoFar:
    """How far the kernel is with a stratum: `seconds` of work have found `found` facts, the latest `lately` of them in
    `lately_seconds` and `lately_rounds`; the last round has found `delta`, the one that found most `most`. `has_risen`:
    it found more than the last one before. `read`: facts that it reads."""

    seconds: float
    found: int
    lately: int
    lately_seconds: float
    lately_rounds: int
    has_risen: bool
    delta: int
    most: int
    read: int


class Handover:
    """Asks another place, between rounds, whether it goes on with a stratum. `read`: facts that the stratum reads.
    `take`: has it go on there, when the rows before some were known before the last round, and this one is next."""

    def __init__(
        self,
        wants: Callable[[SoFar], bool],
        take: Callable[[Mapping[str, int], int], Begun | None],
        read: int,
    ) -> None:
        self._wants = wants
        self._take = take
        self._read = read
        self._began = self._looked = time.perf_counter()
        self._found = self._then = self._most = 0
        self._round = self._delta = 0

    @property
    def until(self) -> int:
        """How many facts may be found before it is asked again."""
        seconds = self._looked - self._began
        return max(SETTINGS.device_first_look, int(self._found * SETTINGS.device_look / seconds) if seconds > 0 else 0)

    def offer(self, progress: Progress) -> Progress | None:
        """Where the evaluation is after the other place has gone on with it; None if the kernel goes on."""
        now = time.perf_counter()
        found = sum(progress.stop.values())
        delta = found - sum(progress.start.values())
        self._most = max(self._most, delta)
        self._found = found
        if found - self._then < self.until and now - self._looked < SETTINGS.device_look:
            return None
        lately, seconds = found - self._then, now - self._looked
        rounds, has_risen = progress.iteration - self._round, delta > self._delta
        self._then, self._looked, self._round, self._delta = found, now, progress.iteration, delta
        so_far = SoFar(now - self._began, found, lately, seconds, rounds, has_risen, delta, self._most, self._read)
        begun = self._take(progress.start, progress.iteration) if self._wants(so_far) else None
        return None if begun is None else begun.progress


class OtherPlace(Protocol):
    """Where strata may be evaluated for the kernel. `is_asked`: all that can be, from their start. `costs`: what the
    last evaluation of a stratum there cost, by its number; `placed`: where it was evaluated, and why."""

    @property
    def is_asked(self) -> bool: ...
    @property
    def costs(self) -> Mapping[int, StratumElsewhere]: ...
    @property
    def placed(self) -> Mapping[int, Placed]: ...

    def evaluate(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, npt.NDArray[np.int32]],
        limits: Mapping[str, int],
        levels: Mapping[str, npt.NDArray[np.int32]] | None = None,
    ) -> Begun | None:
        """What follows from facts: the explicit ones of the stratum's relations, all of those that it reads. `levels`:
        those of the latter, if levels are global; then it goes to the end. None: it is better evaluated here, or could
        not be there."""

    def wants(self, stratum: LogicalStratum, so_far: SoFar) -> bool:
        """Whether a stratum that the kernel has begun, and is far from done with, had better go on there."""

    def take_over(
        self, stratum: LogicalStratum, facts: Mapping[str, npt.NDArray[np.int32]], given: Mapping[str, Given]
    ) -> Begun | None:
        """Goes on with a stratum where the kernel is: `facts` are all of the relations that it reads, `given` those of
        its own. None: it could not."""

    def fold(
        self, stratum: LogicalStratum, members: npt.NDArray[np.int32], levels: npt.NDArray[np.int32] | None
    ) -> Folded | None:
        """What an aggregate makes of all members of its groups; with their levels, if these are global. None: it is
        better folded here, or could not be there."""

    def keep(self, is_read: Callable[[str], bool]) -> None:
        """Keeps, of the relations evaluated there so far, only those that later strata are going to read and that do
        not change till then."""
