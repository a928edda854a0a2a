"""Whether a stratum that the kernel has begun goes on faster on a device, from what has been seen of it so far. The
forecast counts what a user waits for: the copies there and back, launches, and that the rest is a guess.

How many facts will follow is not known. As long as rounds find about as many as ever, the rest is taken for as many as
there are: then the time that is lost by going on too long here is at most about the time that was spent here. Where
rounds grow several times over, the next one alone may find more than that. When they have become smaller, little is
left, and the stratum stays here. The kernel waits for the start of the device only for about half of what its next
round would take; the start is therefore begun before anything is certain: when a stratum has taken part of the time
that a start takes, and found much.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from elastalog.analysis.program import Constant
from elastalog.backends.gpu.starting import has_cores
from elastalog.backends.kernel.bootstrap.handover import SoFar
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum, Scan
from elastalog.planning.order import Statistics, order_goals
from elastalog.settings import SETTINGS


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
    return (is_long and has_cores()) or guess.is_better_there(start)


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
