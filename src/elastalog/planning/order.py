"""The order in which a variant of a clause visits its goals.

Start where the caller says, then always: every test and negation that is bound, then the atom expected to multiply the
rows least. An atom that shares no bound variable is taken only when nothing else is left, so a cross product that can
be avoided is.

Arithmetic may overflow, which is an error, for rows that something else would have dropped. So of the tests that are
bound those without it come first, and what only the head needs is computed last of all.

What an atom costs depends on which of its own terms are bound. So its cost is computed again only when one of them
becomes so. To find out how many facts agree on some columns takes longer than all else: until that has to be known, a
goal counts as if there were as few as possible, and for one that comes first in any case it is never asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from elastalog.analysis.program import Constant, Variable, variables_of
from elastalog.late import dataclass
from elastalog.planning.goals import can_fail, constructor_of, names_in
from elastalog.planning.logical import Absent, Clause, Scan, Test
from elastalog.planning.solving import Solution, solve_equation


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
class Ready:
    """A test that can be done, and the variables that it gives values: the one that an equation defines or is solved
    for (`solution`), or the parts of a value that it takes apart."""

    goal: int
    gives: tuple[Variable, ...] = ()
    solution: Solution | None = None
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class Visit:
    """One goal to probe, with the tests that become ready after it."""

    goal: int | None
    tests: tuple[Ready, ...]


def order_goals(
    clause: Clause,
    start: int | None,
    bound: set[str],
    statistics: Statistics,
    hint: tuple[int, ...] = (),
    *,
    solves: bool = False,
) -> list[Visit]:
    """The visits of a variant. The first is the start itself: goal `start`, or None if only `bound` is given.

    `hint` is an order of scans, by position among the clause's scans, that is obeyed (`.plan`). With `solves`,
    equations may be solved for a variable inside them; an overflow must then lead to no derivation.
    """
    goals = clause.goals
    names = [[] if isinstance(goal, Test) else [t for t in goal.terms if isinstance(t, str)] for goal in goals]
    bound = set(bound)
    if start is not None:
        bound.update(names[start])
    all_tests = {i: goal for i, goal in enumerate(goals) if isinstance(goal, Test)}
    late = _for_the_head_only(all_tests, bound.union(*names)) if all_tests else []
    tests = [i for i in all_tests if i not in late]
    visits = [Visit(start, _ready_tests(clause, tests, bound, solves))]
    for goal in _order_atoms(clause, start, names, bound, statistics, hint):
        bound.update(names[goal])
        visits.append(Visit(goal, _ready_tests(clause, tests, bound, solves)))
    if late:
        last = visits[-1]
        visits[-1] = Visit(last.goal, (*last.tests, *_ready_tests(clause, late, bound, solves)))
    return visits


def _order_atoms(
    clause: Clause,
    start: int | None,
    names: Sequence[list[str]],
    bound: set[str],
    statistics: Statistics,
    hint: tuple[int, ...],
) -> Iterator[int]:
    """The goals other than the start and the tests, in order. The caller adds the variables of each to `bound`."""
    left = {i: goal for i, goal in enumerate(clause.goals) if i != start and not isinstance(goal, Test)}
    scans = [i for i, goal in enumerate(clause.goals) if isinstance(goal, Scan)] if hint else []
    wanted = [scans[position] for position in hint if scans[position] != start]
    users: dict[str, list[int]] = {}
    for i in left if len(left) > 1 else ():  # as of most clauses, one needs no order
        for name in names[i]:
            users.setdefault(name, []).append(i)
    known, changed = set(bound), set(left)
    costs: dict[int, Cost] = {}  # of those that can be visited
    unknown: dict[
        int, tuple[int, ...]
    ] = {}  # goals whose cost is the least possible, by what columns it would be known
    while len(left) > 1:
        fresh = bound - known
        known |= fresh
        for i in left.keys() & changed.union(*(users.get(name, ()) for name in fresh)):
            _rank(i, left[i], bound, wanted, costs, unknown)
        while True:
            assert costs, "every goal of a checked clause can be bound"
            rank, _, boundness, goal = min(costs.values())
            columns = unknown.pop(goal, None)
            if columns is None or [cost[0] for cost in costs.values()].count(rank) == 1:
                break
            relation = left[goal].relation
            rows = statistics.fanout(relation, columns) if columns else statistics.rows(relation)
            costs[goal] = rank, rows, boundness, goal
        del left[goal], costs[goal]
        changed = set()
        if goal in wanted:
            wanted.remove(goal)
            changed = set(wanted[:1] or left)
        yield goal
    yield from left


Cost: TypeAlias = tuple[int, float, float, int]
"""The rank of a goal, the facts that it should find for every row, the more of its terms are bound, the less, and its
number."""

_ABSENT, _BOUND, _JOINED, _APART = range(4)
"""Ranks of goals that can be visited, the cheapest first: negations, facts that are known but for whether they are
there, scans with some bound terms, and with none."""

_LEAST_FANOUT = 1.0


def _rank(
    i: int,
    goal: Scan | Absent,
    bound: set[str],
    wanted: list[int],
    costs: dict[int, Cost],
    unknown: dict[int, tuple[int, ...]],
) -> None:
    """Gives a goal its rank, or none while it cannot be visited. `wanted`: scans in an order that is obeyed where one
    has unbound terms."""
    costs.pop(i, None)
    unknown.pop(i, None)
    columns = tuple([c for c, term in enumerate(goal.terms) if term in bound or isinstance(term, Constant)])
    if len(columns) == len(goal.terms):
        costs[i] = _ABSENT if isinstance(goal, Absent) else _BOUND, 0.0, 0.0, i
    elif isinstance(goal, Scan) and (not wanted or i == wanted[0]):
        costs[i] = _JOINED if columns or wanted else _APART, _LEAST_FANOUT, -len(columns) / len(goal.terms), i
        unknown[i] = columns


def first_scan(clause: Clause, statistics: Statistics, hint: tuple[int, ...] = ()) -> int | None:
    """The goal at which a variant without a given start begins: the scan of the smallest relation; None if there is no
    scan."""
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


def _for_the_head_only(tests: Mapping[int, Test], given: set[str]) -> list[int]:
    """The equations that can fail and that define variables which nothing in the body needs, except other such
    equations. `given`: the variables of atoms and of the start."""
    late = {i: name for i, test in tests.items() if can_fail(test) and (name := _defined(test, given)) is not None}
    while True:
        needed = {name for i, test in tests.items() if i not in late for name in names_in(test)}
        kept = {i: name for i, name in late.items() if name not in needed}
        if len(kept) == len(late):
            return list(kept)
        late = kept


def _defined(test: Test, given: set[str]) -> str | None:
    """The variable that an equation defines, if no atom gives it a value."""
    if test.operator == "=":
        for side in (test.left, test.right):
            if isinstance(side, Variable) and side.name not in given:
                return side.name
    return None


def _ready_tests(clause: Clause, waiting: list[int], bound: set[str], solves: bool) -> tuple[Ready, ...]:
    """The tests that can be done now, in order, removed from `waiting`; those that bind variables extend `bound`. A
    test that can fail is only done when no other test can be."""
    if not waiting:
        return ()
    ready: list[Ready] = []
    tests = [(i, goal) for i in waiting if isinstance(goal := clause.goals[i], Test)]
    tests.sort(key=lambda numbered: can_fail(numbered[1]))
    while True:
        for i, test in tests:
            found = _doable(i, test, bound)
            if found is not None:
                break
        else:  # none can be done as it stands: the first that can be solved for a variable
            for i, test in tests if solves else ():
                solution = solve_equation(test, bound, clause.wraps)
                if solution is not None:
                    found = Ready(i, (solution.variable,), solution)
                    break
            else:
                return tuple(ready)
        ready.append(found)
        tests.remove((i, test))
        waiting.remove(i)
        bound.update(variable.name for variable in found.gives)


def _doable(i: int, test: Test, bound: set[str]) -> Ready | None:
    """The test of goal `i` if it can be done now, possibly by binding its variable."""
    parts = constructor_of(test)
    if parts is not None and isinstance(test.left, Variable) and test.left.name in bound:
        # Even if all parts are known: to build a record only to compare it would add it to the dictionary.
        unknown = {v.name: v for v in variables_of(parts) if v.name not in bound}
        return Ready(i, tuple(unknown.values()), is_apart=True)
    left = all(v.name in bound for v in variables_of(test.left))
    right = all(v.name in bound for v in variables_of(test.right))
    if left and right:
        return Ready(i)
    if test.operator == "=" and right and isinstance(test.left, Variable):
        return Ready(i, (test.left,))
    if test.operator == "=" and left and isinstance(test.right, Variable):
        return Ready(i, (test.right,))
    return None
