"""The order in which a version of a clause visits its goals.

Start where the caller says, then always: every test and negation that is bound, then the atom expected to multiply the
rows least. An atom that shares no bound variable is taken only when nothing else is left, so a cross product that can
be avoided is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from elastalog.analysis.program import Constant, Variable
from elastalog.planning.logical import Absent, Clause, Scan, Test
from elastalog.planning.lower import variables_of


class Statistics(Protocol):
    """What is known of the sizes of relations when a plan is made."""

    def rows(self, relation: str) -> float:
        """The number of facts."""

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """The expected number of facts that agree with given values on some columns."""


class NoStatistics:
    """All relations alike: the number of bound columns decides."""

    def rows(self, relation: str) -> float:
        return 1e6

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        return float(1e6 ** (0.5 ** len(columns)))


@dataclass(frozen=True, slots=True)
class Bind:
    """A test that gives its variable a value."""

    goal: int
    variable: Variable


@dataclass(frozen=True, slots=True)
class Visit:
    """One goal to probe, with the tests that become ready after it."""

    goal: int | None
    tests: tuple[int | Bind, ...]


def order_goals(
    clause: Clause, start: int | None, bound: set[str], statistics: Statistics, hint: tuple[int, ...] = ()
) -> list[Visit]:
    """The visits of a version: the first is the start itself (goal `start`, or None when only `bound` is given).

    `hint` is an order of scans, by position among the clause's scans, that is obeyed (`.plan`)."""
    bound = set(bound)
    if start is not None:
        bound.update(_names(clause, start))
    waiting = [i for i in range(len(clause.goals)) if i != start]
    visits = [Visit(start, _ready_tests(clause, waiting, bound))]
    scans = [i for i, goal in enumerate(clause.goals) if isinstance(goal, Scan)]
    wanted = [scans[position] for position in hint if scans[position] != start]
    while waiting:
        goal = _next_goal(clause, waiting, bound, statistics, wanted)
        waiting.remove(goal)
        bound.update(_names(clause, goal))
        visits.append(Visit(goal, _ready_tests(clause, waiting, bound)))
    return visits


def first_scan(clause: Clause, statistics: Statistics, hint: tuple[int, ...] = ()) -> int | None:
    """The goal at which a version without a given start begins: the smallest relation; None if there is no scan."""
    scans = [i for i, goal in enumerate(clause.goals) if isinstance(goal, Scan)]
    if not scans:
        return None
    if hint:
        return scans[hint[0]]

    def cost(i: int) -> tuple[float, int]:
        goal = clause.goals[i]
        assert isinstance(goal, Scan)
        constants = tuple(c for c, term in enumerate(goal.terms) if isinstance(term, Constant))
        rows = statistics.fanout(goal.relation, constants) if constants else statistics.rows(goal.relation)
        return rows, i

    return min(scans, key=cost)


def _names(clause: Clause, i: int) -> set[str]:
    goal = clause.goals[i]
    assert not isinstance(goal, Test)
    return {term for term in goal.terms if isinstance(term, str)}


def _ready_tests(clause: Clause, waiting: list[int], bound: set[str]) -> tuple[int | Bind, ...]:
    """The tests that can be done now, in order, taken out of `waiting`; tests that bind extend `bound`."""
    ready: list[int | Bind] = []
    grows = True
    while grows:
        grows = False
        for i in list(waiting):
            goal = clause.goals[i]
            if not isinstance(goal, Test):
                continue
            left = {v.name for v in variables_of(goal.left)} <= bound
            right = {v.name for v in variables_of(goal.right)} <= bound
            if left and right:
                ready.append(i)
            elif goal.operator == "=" and right and isinstance(goal.left, Variable):
                ready.append(Bind(i, goal.left))
                bound.add(goal.left.name)
                grows = True
            elif goal.operator == "=" and left and isinstance(goal.right, Variable):
                ready.append(Bind(i, goal.right))
                bound.add(goal.right.name)
                grows = True
            else:
                continue
            waiting.remove(i)
    return tuple(ready)


def _next_goal(clause: Clause, waiting: list[int], bound: set[str], statistics: Statistics, wanted: list[int]) -> int:
    best: tuple[float, ...] | None = None
    choice = waiting[0]
    for i in waiting:
        goal = clause.goals[i]
        if isinstance(goal, Test):
            continue
        columns = tuple(
            c for c, term in enumerate(goal.terms) if isinstance(term, Constant) or (term is not None and term in bound)
        )
        is_bound = len(columns) == len(goal.terms)
        if isinstance(goal, Absent):
            if not is_bound:
                continue
            cost = (0.0, 0.0, 0.0)
        elif wanted and not is_bound:
            if i != wanted[0]:
                continue
            cost = (2.0, 0.0, 0.0)
        elif is_bound:
            cost = (1.0, 0.0, 0.0)
        elif columns:
            cost = (2.0, statistics.fanout(goal.relation, columns), -len(columns) / len(goal.terms))
        else:
            cost = (3.0, statistics.rows(goal.relation), 0.0)
        if best is None or cost < best:
            best, choice = cost, i
    if best is None:
        raise AssertionError("every goal of a checked clause can be bound")
    if wanted and choice == wanted[0]:
        wanted.pop(0)
    return choice
