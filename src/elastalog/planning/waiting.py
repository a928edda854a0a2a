"""The goals of a clause that are still to be visited, the cheapest first.

What a goal costs depends on which of its own terms are bound. So it is reckoned again only when one of them becomes so,
and rules of hundreds of goals are put in order without looking at each goal at every step. To find out how many facts
agree on some columns takes longer than all else: until it has to be known, a goal counts as if it were the least
possible, and of one that comes first in any case it is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from elastalog.analysis.program import Constant
from elastalog.planning.logical import Absent, Clause, Scan

Cost = tuple[int, float, float]
"""The rank of a goal, the facts that it should find for every row, and the more of its terms are bound, the less."""

_ABSENT, _BOUND, _JOINED, _APART = range(4)
"""Ranks of goals that can be visited, the cheapest first: negations, facts that are known but for whether they are
there, scans with some bound terms, and with none."""

_LEAST_FANOUT = 1.0


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
        self._cost: dict[int, Cost] = {}  # of those that can be visited
        self._heap: list[tuple[Cost, int]] = []  # where other costs than these are those of before
        self._unknown: dict[int, tuple[int, ...]] = {}  # goals whose cost is a bound, by what columns it would be known
        self._numbers = [0, 0, 0, 0]  # of goals of each rank
        self._users: dict[str, list[int]] = {}
        self._changed = self._left.copy()
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
        goal = self._least()
        self._forget(goal)
        self._left.remove(goal)
        if goal in self._wanted:
            self._wanted.remove(goal)
            self._changed.update(self._wanted[:1] or self._left)
        return goal

    def note(self, bound: set[str]) -> None:
        """More variables have values now."""
        fresh = bound - self._bound
        self._bound |= fresh
        self._changed.update({goal for name in fresh for goal in self._users.get(name, ())} & self._left)

    def _rank(self, i: int) -> None:
        """Gives a goal its rank, or none while it cannot be visited."""
        self._forget(i)
        goal = self._clause.goals[i]
        assert isinstance(goal, (Scan, Absent))
        bound, terms = self._bound, goal.terms
        columns = tuple([c for c, term in enumerate(terms) if term in bound or isinstance(term, Constant)])
        if len(columns) == len(terms):
            self._enter(i, (_ABSENT if isinstance(goal, Absent) else _BOUND, 0.0, 0.0))
        elif isinstance(goal, Scan) and (not self._wanted or i == self._wanted[0]):
            rank = _JOINED if columns or self._wanted else _APART
            self._enter(i, (rank, _LEAST_FANOUT, -len(columns) / len(terms)))
            self._unknown[i] = columns

    def _enter(self, i: int, cost: Cost) -> None:
        self._cost[i] = cost
        self._numbers[cost[0]] += 1
        heappush(self._heap, (cost, i))

    def _forget(self, i: int) -> None:
        cost = self._cost.pop(i, None)
        if cost is not None:
            self._numbers[cost[0]] -= 1
            self._unknown.pop(i, None)

    def _least(self) -> int:
        """The goal that should multiply rows least."""
        heap = self._heap
        while True:
            assert heap, "every goal of a checked clause can be bound"
            cost, i = heap[0]
            if self._cost.get(i) != cost:
                heappop(heap)
            elif i not in self._unknown or self._numbers[cost[0]] == 1:
                return i
            else:
                heapreplace(heap, (self._reckon(i), i))

    def _reckon(self, i: int) -> Cost:
        """What a goal costs, no longer only at least."""
        goal, columns = self._clause.goals[i], self._unknown.pop(i)
        assert isinstance(goal, Scan)
        rank, _, boundness = self._cost[i]
        rows = self._sizes.fanout(goal.relation, columns) if columns else self._sizes.rows(goal.relation)
        cost = self._cost[i] = rank, rows, boundness
        return cost
