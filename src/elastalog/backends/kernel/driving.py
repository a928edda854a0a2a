"""Driving through the strata that an update reaches: those that hear of small changes below them and of nothing else
are brought to their new fixpoint in compiled code, all that lie between two others in one call; the others are left to
the caller."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.maintaining import KernelMaintenance
from elastalog.backends.kernel.reaching import KernelReach
from elastalog.backends.protocol import Done, Reach, Small
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum


def drive_through(
    evaluation: KernelEvaluation, reach: KernelReach, maintenance: KernelMaintenance, small: Small
) -> Iterator[tuple[LogicalStratum, Reach]]:
    """The strata that the update under way reaches: see `UpdateChanges.affected`."""
    strata, drive, done = evaluation.program.strata, maintenance.drive, reach.done
    changed, waiting = done.changed, []
    for place in sorted([reach.place[number] for number in reach.given]):
        stratum = strata[place]
        if stratum.number in maintenance.explicit_only and done.anew.isdisjoint(stratum.relations):
            began = time.perf_counter()
            changes = maintenance.change_explicit(stratum)
            small.done.append(Done(stratum, changes, 0, 0, 0, time.perf_counter() - began))
        else:
            waiting.append(place)
    barred = [*waiting, *[reach.place[number] for number in small.asked if number in reach.place]]
    drive.set_out(changed, (*waiting, *drive.readers_of(changed)), barred, small.derivations)
    try:
        while True:
            began = time.perf_counter()
            at = drive.go_on()
            small.done.extend(_done(strata, drive.driven(), time.perf_counter() - began, evaluation.watch))
            if at is None:
                done.is_told = True
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


def _done(strata: Sequence[LogicalStratum], driven: list[list[int]], seconds: float, watch: Watch) -> list[Done]:
    """What strata have cost, by place, that were driven through in so many seconds. Nobody has looked at the clock in
    between: they share the time by the rows that they looked at, and one each for coming there."""
    share = seconds / (len(driven) + sum([rows for _, _, _, rows, _ in driven]) or 1)
    found = []
    for place, changes, derivations, rows, touched in driven:
        watch.touched += touched
        effort = watch.count(derivations, rows)
        found.append(Done(strata[place], changes, derivations, effort, touched, share * (rows + 1)))
    return found
