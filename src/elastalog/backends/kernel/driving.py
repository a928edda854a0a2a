"""Driving through the strata that an update reaches: those that hear of small changes below them and of nothing else
are brought to their new fixpoint in compiled code, all that lie between two others in one call; the others are left to
the caller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.levels.drive import Driven
from elastalog.backends.kernel.maintaining import KernelMaintenance
from elastalog.backends.kernel.reaching import KernelReach
from elastalog.backends.protocol import Done, Reach, Small
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum


def drive_through(
    evaluation: KernelEvaluation, reach: KernelReach, maintenance: KernelMaintenance, small: Small
) -> Iterator[tuple[LogicalStratum, Reach]]:
    """The strata that the update under way reaches: see `Backend.affected`."""
    strata, drive, changed = evaluation.program.strata, maintenance.drive, reach.done.changed
    waiting = []
    for place in sorted(reach.place[number] for number in reach.given):
        stratum = strata[place]
        if stratum.clauses or stratum.is_folded or reach.must_rebuild(stratum):
            waiting.append(place)
        else:
            began = time.perf_counter()
            maintenance.change_explicit(stratum)
            yield stratum, Reach(reach.size_of(stratum), False, Done(0, 0, time.perf_counter() - began))
    barred = *waiting, *(reach.place[number] for number in small.asked if number in reach.place)
    drive.set_out(changed, {*waiting, *drive.readers_of(changed)}, barred, small.derivations)
    try:
        while True:
            began = time.perf_counter()
            at = drive.go_on()
            for done, cost in _costs(drive.driven(), time.perf_counter() - began, evaluation.watch):
                yield strata[done.place], Reach(done.changes, False, cost)
            if at is None:
                return
            followed = len(changed)
            reached = reach.reached(strata[at])
            if reached is not None:
                yield strata[at], reached
            drive.pass_by()
            for name in islice(changed, followed, None):
                drive.reach(name)
    finally:
        drive.end()


def _costs(driven: list[Driven], seconds: float, watch: Watch) -> Iterator[tuple[Driven, Done]]:
    """What strata have cost that were driven through in so many seconds. Nobody has looked at the clock in between:
    they share the time by the rows that they looked at, and one each for coming there."""
    rows = sum(done.rows + 1 for done in driven)
    for done in driven:
        effort = watch.effort
        watch.count(done.derivations, done.rows)
        yield done, Done(done.derivations, watch.effort - effort, seconds * (done.rows + 1) / rows)
