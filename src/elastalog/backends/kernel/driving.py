"""Driving through the strata that an update reaches: those that hear of small changes below them and of nothing else
are brought to their new fixpoint in compiled code, all that lie between two others in one call; the others are left to
the caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.levels.drive import UpdateDrive
from elastalog.backends.kernel.maintaining import KernelMaintenance
from elastalog.backends.kernel.reaching import KernelReach
from elastalog.backends.protocol import Done, Reach, Small
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum


def drive_through(
    evaluation: KernelEvaluation, reach: KernelReach, maintenance: KernelMaintenance, small: Small
) -> Iterable[tuple[LogicalStratum, Reach]]:
    """The strata that the update under way reaches: see `UpdateChanges.affected`. Drives to the first of them."""
    began = time.perf_counter()
    strata, drive, done, places = evaluation.program.strata, maintenance.drive, reach.done, reach.place
    drive.set_out(done.changed, small.derivations)
    for place in sorted([places[number] for number in reach.given]):
        stratum = strata[place]
        if stratum.number in maintenance.explicit_only and done.anew.isdisjoint(stratum.relations):
            maintenance.change_explicit(stratum)
        else:
            drive.bar(place, is_reached=True)
    for number in small.asked:
        if number in places:
            drive.bar(places[number], is_reached=False)
    at = drive.go_on()
    _note(small, strata, drive.driven(), time.perf_counter() - began, evaluation.watch)
    if at is not None:
        return _from_stop_to_stop(at, evaluation, reach, drive, small)
    done.is_told = True
    drive.is_under_way = False
    return ()


def _from_stop_to_stop(
    at: int, evaluation: KernelEvaluation, reach: KernelReach, drive: UpdateDrive, small: Small
) -> Iterator[tuple[LogicalStratum, Reach]]:
    """The strata that a drive stops at, the first of them at a place; drives on when the caller has seen to one."""
    strata, done = evaluation.program.strata, reach.done
    changed = done.changed
    try:
        stop: int | None = at
        while stop is not None:
            followed = len(changed)
            reached = reach.reached(strata[stop])
            if reached is not None:
                yield strata[stop], reached
            drive.pass_by()
            drive.tell(islice(changed, followed, None))
            began = time.perf_counter()
            stop = drive.go_on()
            _note(small, strata, drive.driven(), time.perf_counter() - began, evaluation.watch)
        done.is_told = True
    finally:
        drive.end()


def _note(
    small: Small, strata: Sequence[LogicalStratum], driven: list[list[int]], seconds: float, watch: Watch
) -> None:
    """What strata have cost, by place, that were driven through in so many seconds. Nobody has looked at the clock in
    between: they share the time by the changes that they heard of and the rows that they looked at."""
    share = seconds / (sum([changes + rows for _, changes, _, rows, _ in driven]) or 1)
    for place, changes, derivations, rows, touched in driven:
        watch.touched += touched
        effort = watch.count(derivations, rows)
        small.done.append(Done(strata[place], changes, derivations, effort, touched, share * (changes + rows)))
