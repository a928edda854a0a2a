"""The goals of a clause that are still to be visited, the cheapest first.

What a goal costs depends on which of its own terms are bound. So it is reckoned again only when one of them becomes so,
and rules of hundreds of goals are put in order without looking at each goal at every step. Of one that is the only one
of its rank it is not reckoned at all: to find out how many facts agree on some columns takes longer than all else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from typing import Protocol

from elastalog.analysis.program import Constant
from elastalog.planning.logical import Absent, Clause, Scan, Test

Cost = tuple[float, float]

_ABSENT, _BOUND, _JOINED, _APART = range(4)
"""Ranks of goals that can be visited, the cheapest first: negations, facts that are known but for whether they are
there, scans with some bound terms, and with none."""


class Sizes(Protocol):
    """How many rows there are; see `order.Statistics`."""

    def rows(self, relation: str) -> float: ...

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float: ...


class Waiting:
    """Goals that are no tests. `names`: of the variables of each goal of the clause. `wanted`: scans in an order that
    is obeyed where a scan has unbound terms; taken ones are removed from it."""

    def __init__(
        self,
        clause: Clause,
        goals: list[int],
        names: Sequence[Collection[str]],
        bound: set[str],
        sizes: Sizes,
        wanted: list[int],
    ) -> None:
        self._clause = clause
        self._left = set(goals)
        self._bound = set(bound)
        self._sizes = sizes
        self._wanted = wanted
        self._ranked: tuple[set[int], ...] = set(), set(), set(), set()
        self._columns: dict[int, tuple[int, ...]] = {}
        self._cost: dict[int, Cost] = {}
        self._heaps: tuple[list[tuple[Cost, int]], ...] = [], [], [], []
        self._users: dict[str, list[int]] = {}
        self._changed = set(goals)
        for i in goals:
            for name in names[i]:
                self._users.setdefault(name, []).append(i)

    def __bool__(self) -> bool:
        return bool(self._left)

    def take(self) -> int:
        """The cheapest goal, the first of equals, which does not wait any longer."""
        if len(self._left) == 1:
            return self._left.pop()
        for goal in self._changed:
            self._rank(goal)
        self._changed.clear()
        for rank, goals in enumerate(self._ranked):
            if goals:
                goal = min(goals) if rank < _JOINED or len(goals) == 1 else self._least(rank)
                goals.remove(goal)
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

    def _rank(self, i: int) -> None:
        """Puts a goal among those of its rank, or none while it cannot be visited."""
        for goals in self._ranked:
            goals.discard(i)
        self._cost.pop(i, None)
        goal = self._clause.goals[i]
        assert not isinstance(goal, Test)
        bound, terms = self._bound, goal.terms
        columns = tuple([c for c, term in enumerate(terms) if isinstance(term, Constant) or term in bound])
        is_bound = len(columns) == len(terms)
        if isinstance(goal, Absent):
            if is_bound:
                self._ranked[_ABSENT].add(i)
        elif is_bound:
            self._ranked[_BOUND].add(i)
        elif not self._wanted or i == self._wanted[0]:
            self._ranked[_JOINED if columns or self._wanted else _APART].add(i)
            self._columns[i] = columns

    def _least(self, rank: int) -> int:
        """The goal of a rank that should multiply rows least, of several."""
        goals, heap = self._ranked[rank], self._heaps[rank]
        for i in sorted(goals - self._cost.keys()):
            cost = self._cost[i] = self._cost_of(i)
            heappush(heap, (cost, i))
        while True:
            cost, i = heappop(heap)
            if i in goals and self._cost[i] == cost:
                return i

    def _cost_of(self, i: int) -> Cost:
        goal, columns = self._clause.goals[i], self._columns[i]
        assert isinstance(goal, Scan)
        if not columns:
            return self._sizes.rows(goal.relation), 0.0
        return self._sizes.fanout(goal.relation, columns), -len(columns) / len(goal.terms)
