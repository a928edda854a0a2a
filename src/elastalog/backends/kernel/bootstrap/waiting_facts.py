"""Facts that wait for their turn: where subsumption keeps the best, the best go first.

Shortest paths found round by round pass through many distances that are improved later, and everything that follows
from them with them. If the nearest go first, nearly every distance that is looked at is final.
"""

from __future__ import annotations

import numpy as np

from elastalog.analysis.program import Apply, Variable
from elastalog.backends.kernel.bootstrap.best_values import BestValues, Comparison, comparison_of
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.planning.logical import Clause, Goal, LogicalStratum, Scan, Test
from elastalog.planning.variables import variables_in, variables_of

_LEAST_AT_ONCE = 512
_SHARE = 3
"""A round takes so many facts, or one in so many of those that wait: few, to be final, but enough for a round."""

_STEADY = frozenset({"+", "-"})
"""Where one number grows the result grows, whatever the others are."""

_GROWING = _STEADY | {"max", "min"}
"""Where it grows the result does not shrink."""


class WaitingFacts:
    """New facts of one relation that have not been looked at yet."""

    def __init__(self, best: BestValues) -> None:
        self._best = best
        self._rows: Matrix | None = None
        self._counts: Vector | None = None

    @property
    def are_any(self) -> bool:
        return self._rows is not None

    def take(self, rows: Matrix, counts: Vector) -> tuple[Matrix, Vector]:
        """The best of these facts and of those that wait; the others wait."""
        if self._rows is not None and self._counts is not None:
            rows, counts = np.concatenate((self._rows, rows)), np.concatenate((self._counts, counts))
        self._rows = self._counts = None
        if len(rows) <= _LEAST_AT_ONCE:
            return rows, counts
        is_taken = at_once(self._best.values(rows))
        if not is_taken.all():
            self._rows, self._counts = rows[~is_taken], counts[~is_taken]
        return rows[is_taken], counts[is_taken]


def at_once(values: np.ndarray) -> np.ndarray:
    """Which of some facts, whose values are given, a round takes: the best of them, or all if they are few."""
    most = max(_LEAST_AT_ONCE, len(values) // _SHARE)
    if len(values) <= most:
        return np.ones(len(values), np.bool_)
    is_taken: np.ndarray = values <= np.partition(values, most)[most]
    return is_taken


def may_wait(stratum: LogicalStratum, comparison: Comparison) -> bool:
    """Whether facts may be looked at in any order: every rule of the stratum reads one fact of its only relation, and
    the number that it gives is the one it reads, or grows with it, and decides about nothing else. Then better facts
    give better ones, and in whatever order they come, what is left are the best of each key."""
    return _all_grow(stratum, comparison.column, _GROWING)


def only_comparison(stratum: LogicalStratum) -> Comparison | None:
    """What decides about the facts of a stratum with one relation, if one subsumption of the usual form does."""
    if len(stratum.relations) == 1 == len(stratum.dominance):
        return comparison_of(stratum.dominance[0])
    return None


def rests_on_the_best(stratum: LogicalStratum, comparison: Comparison) -> bool:
    """Whether, moreover, only the best fact of a key gives the best of another: with a better number every rule gives a
    better one. Then all that is left follows from what is left, and from nothing that has left."""
    return _all_grow(stratum, comparison.column, _STEADY)


def _all_grow(stratum: LogicalStratum, column: int, functors: frozenset[str]) -> bool:
    return len(stratum.relations) == 1 and all(
        not clause.recursive_goals or _grows(clause, column, functors) for clause in stratum.clauses
    )


def _grows(clause: Clause, column: int, functors: frozenset[str]) -> bool:
    if len(clause.recursive_goals) > 1 or clause.wraps:
        return False
    read = clause.goals[clause.recursive_goals[0]]
    assert isinstance(read, Scan)
    number, given = read.terms[column], clause.head_terms[column]
    if not isinstance(number, str) or not isinstance(given, str):
        return False
    uses = [name for goal in clause.goals for name in _names(goal)] + [
        t for t in clause.head_terms if isinstance(t, str)
    ]
    if number == given:
        return uses.count(number) == 2
    # Read, and used in the expression; the result is that of an equation, and in the head.
    return (
        uses.count(number) == 2
        and uses.count(given) == 2
        and any(isinstance(goal, Test) and _is_growing_equation(goal, given, number, functors) for goal in clause.goals)
    )


def _is_growing_equation(test: Test, given: str, number: str, functors: frozenset[str]) -> bool:
    if test.operator != "=" or not isinstance(test.left, Variable) or test.left.name != given:
        return False
    expression = test.right
    while isinstance(expression, Apply) and expression.functor in functors:
        # `w - n` shrinks as n grows.
        parts = expression.arguments[:1] if expression.functor == "-" else expression.arguments
        holding = [part for part in parts if number in (variable.name for variable in variables_of(part))]
        if not holding:
            return False
        (expression,) = holding
    return isinstance(expression, Variable) and expression.name == number


def _names(goal: Goal) -> list[str]:
    if isinstance(goal, Test):
        return [variable.name for variable in variables_in(goal)]
    return [term for term in goal.terms if isinstance(term, str)]
