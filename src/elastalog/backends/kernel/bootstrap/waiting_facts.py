"""Facts that wait for their turn: where subsumption keeps the best, the best go first.

Shortest paths found round by round pass through many distances that are improved later, and everything that follows
from them with them. If the nearest go first, nearly every distance that is looked at is final.
"""

from __future__ import annotations

import numpy as np

from elastalog.analysis.program import Apply, Variable
from elastalog.backends.kernel.bootstrap.best_values import BestValues, Comparison
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.planning.logical import Clause, Goal, LogicalStratum, Scan, Test
from elastalog.planning.variables import variables_in

_LEAST_AT_ONCE = 512
_SHARE = 3
"""A round takes so many facts, or one in so many of those that wait: few, to be final, but enough for a round."""

_GROWING = frozenset({"+", "max", "min"})


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
        most = max(_LEAST_AT_ONCE, len(rows) // _SHARE)
        if len(rows) <= most:
            return rows, counts
        values = self._best.values(rows)
        is_taken = values <= np.partition(values, most)[most]
        if not is_taken.all():
            self._rows, self._counts = rows[~is_taken], counts[~is_taken]
        return rows[is_taken], counts[is_taken]


def may_wait(stratum: LogicalStratum, comparison: Comparison) -> bool:
    """Whether facts may be looked at in any order: every rule of the stratum reads one fact of its only relation, and
    the number that it gives is the one it reads, or grows with it, and decides about nothing else. Then better facts
    give better ones, and in whatever order they come, what is left are the best of each key."""
    return len(stratum.relations) == 1 and all(
        not clause.recursive_goals or _grows(clause, comparison.column) for clause in stratum.clauses
    )


def _grows(clause: Clause, column: int) -> bool:
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
        and any(isinstance(goal, Test) and _is_growing_equation(goal, given, number) for goal in clause.goals)
    )


def _is_growing_equation(test: Test, given: str, number: str) -> bool:
    if test.operator != "=" or not isinstance(test.left, Variable) or test.left.name != given:
        return False
    expression = test.right
    return (
        isinstance(expression, Apply)
        and expression.functor in _GROWING
        and any(isinstance(part, Variable) and part.name == number for part in expression.arguments)
    )


def _names(goal: Goal) -> list[str]:
    if isinstance(goal, Test):
        return [variable.name for variable in variables_in(goal)]
    return [term for term in goal.terms if isinstance(term, str)]
