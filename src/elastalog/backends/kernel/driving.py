"""Driving through the strata that an update reaches: those that small changes reach
are brought to their new fixpoint in compiled code, all that lie between two others in one call; the others are left to
the caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.maintaining import KernelMaintenance
from elastalog.backends.kernel.reaching import KernelReach
from elastalog.backends.protocol import Driven, Reach, Small
from elastalog.planning.logical import LogicalStratum


class KernelDriving:
    """From one stratum that the update under way reaches to the next."""

    def __init__(self, evaluation: KernelEvaluation, reach: KernelReach, maintenance: KernelMaintenance) -> None:
        self._evaluation = evaluation
        self._reach = reach
        self._maintenance = maintenance
        self._can_drive = evaluation.held.annotation.support is Support.LEVELS

    def affected(self, small: Small | None = None) -> Iterable[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `UpdateChanges.affected`. Drives to the first of them."""
        if small is None or not self._can_drive:
            return self._reach.one_by_one()
        began = time.perf_counter()
        reach, maintenance, strata = self._reach, self._maintenance, self._evaluation.program.strata
        drive, done, places = maintenance.drive, reach.done, reach.place
        drive.set_out(done.changed, small.derivations)
        for place in sorted(reach.given):
            stratum = strata[place]
            if not done.anew.isdisjoint(stratum.relations):
                drive.bar(place, is_reached=True)
            elif stratum.number in maintenance.explicit_only:
                maintenance.change_explicit(stratum)
            elif (
                maintenance.is_driven(stratum)
                and stratum.number not in small.asked
                and reach.size_of(stratum) <= small.derivations
            ):
                drive.give(place, done.deleted, done.inserted)
            else:
                drive.bar(place, is_reached=True)
        for number in small.asked:
            if number in places:
                drive.bar(places[number], is_reached=False)
        at = drive.go_on()
        self._note(small, began)
        if at is not None:
            return self._from_stop_to_stop(at, small)
        done.is_told = True
        drive.is_under_way = False
        return ()

    def _from_stop_to_stop(self, at: int, small: Small) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that a drive stops at, the first of them at a place; drives on when the caller has seen to one."""
        strata, drive, done = self._evaluation.program.strata, self._maintenance.drive, self._reach.done
        changed = done.changed
        try:
            stop: int | None = at
            while stop is not None:
                followed = len(changed)
                reached = self._reach.reached(strata[stop])
                if reached is not None:
                    yield strata[stop], reached
                drive.pass_by()
                drive.tell(islice(changed, followed, None))
                began = time.perf_counter()
                stop = drive.go_on()
                self._note(small, began)
            done.is_told = True
        finally:
            drive.end()

    def _note(self, small: Small, began: float) -> None:
        """What strata have cost that were driven through since a time."""
        costs, watch = self._maintenance.drive.driven(), self._evaluation.watch
        if not costs:
            return
        derivations = effort = 0
        for _, _, derived, rows, spent, touched in costs:
            derivations += derived
            effort += spent
            watch.rows += rows
            watch.touched += touched
        watch.derivations += derivations
        watch.effort += effort
        seconds = time.perf_counter() - began
        small.done.append(Driven(self._evaluation.program.strata, costs, derivations, effort, seconds))
