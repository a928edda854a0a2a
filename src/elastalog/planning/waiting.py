"""The goals of a clause that are still to be visited, the cheapest first.

What a goal costs depends on which of its own terms are bound. So it is reckoned again only when one of them becomes so,
and rules of hundreds of goals are put in order without looking at each goal at every step. Of the last one it is not
reckoned at all: to find out how many facts agree on some columns takes longer than all else.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from elastalog.analysis.program import Constant
from elastalog.planning.logical import Absent, Clause, Scan, Test

Cost = tuple[float, float, float]


class Sizes(Protocol):
    """How many rows there are; see `order.Statistics`."""

    def rows(self, relation: str) -> float: ...

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float: ...


class Waiting:
    """Goals that are no tests. `wanted`: scans in an order that is obeyed where a scan has unbound terms; taken ones
    are removed from it."""

    def __init__(self, clause: Clause, goals: list[int], bound: set[str], sizes: Sizes, wanted: list[int]) -> None:
        self._clause = clause
        self._left = set(goals)
        self._bound = set(bound)
        self._sizes = sizes
        self._wanted = wanted
        self._cost: dict[int, Cost] = {}
        self._heap: list[tuple[Cost, int]] = []
        self._users: dict[str, list[int]] = {}
        self._changed = set(goals)
        for i in goals:
            for name in self._terms(i):
                self._users.setdefault(name, []).append(i)

    def __bool__(self) -> bool:
        return bool(self._left)

    def take(self) -> int:
        """The cheapest goal, the first of equals, which does not wait any longer."""
        if len(self._left) == 1:
            return self._left.pop()
        for goal in sorted(self._changed):
            self._reckon(goal)
        self._changed.clear()
        while self._heap:
            cost, goal = heappop(self._heap)
            if goal in self._left and self._cost[goal] == cost:
                self._left.remove(goal)
                if goal in self._wanted:
                    self._wanted.remove(goal)
                    self._changed.update(self._wanted[:1] or self._left)
                return goal
        raise AssertionError("every goal of a checked clause can be bound")

    def note(self, bound: set[str]) -> None:
        """More variables have values now."""
        fresh = bound - self._bound
        self._bound |= fresh
        self._changed.update({goal for name in fresh for goal in self._users.get(name, ())} & self._left)

    def _terms(self, i: int) -> set[str]:
        goal = self._clause.goals[i]
        assert not isinstance(goal, Test)
        return {term for term in goal.terms if isinstance(term, str)}

    def _reckon(self, i: int) -> None:
        cost = self._cost_of(i)
        if cost is not None and cost != self._cost.get(i):
            self._cost[i] = cost
            heappush(self._heap, (cost, i))

    def _cost_of(self, i: int) -> Cost | None:
        """None while the goal cannot be visited."""
        goal = self._clause.goals[i]
        assert isinstance(goal, Scan | Absent)
        columns = tuple(
            c
            for c, term in enumerate(goal.terms)
            if isinstance(term, Constant) or (term is not None and term in self._bound)
        )
        is_bound = len(columns) == len(goal.terms)
        if isinstance(goal, Absent):
            return (0.0, 0.0, 0.0) if is_bound else None
        if self._wanted and not is_bound:
            return (2.0, 0.0, 0.0) if i == self._wanted[0] else None
        if is_bound:
            return (1.0, 0.0, 0.0)
        if columns:
            return (2.0, self._sizes.fanout(goal.relation, columns), -len(columns) / len(goal.terms))
        return (3.0, self._sizes.rows(goal.relation), 0.0)
