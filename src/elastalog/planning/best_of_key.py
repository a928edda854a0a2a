"""Subsumption in its usual form: of the facts that differ in one number only, that with the least, or greatest, stays.

`far(x, a) <= far(x, b) :- b < a.` Where every rule hands that number on so that better facts give better ones, the
order in which facts come makes no difference, and updates can be followed through.
"""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.analysis.checked_variables import variables_of
from elastalog.analysis.program import Apply, Base, Variable
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, Goal, LogicalStratum, Scan, StoredRelation, Test
from elastalog.planning.variables import variables_in

_STEADY = frozenset({"+", "-"})
"""Where one number grows the result grows, whatever the others are."""

_GROWING = _STEADY | {"max", "min"}
"""Where it grows the result does not shrink."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The column whose number decides, and whether the least is the best."""

    column: int
    is_least: bool


def comparison_of(clause: Clause) -> Comparison | None:
    """What a clause compares, if it is of the usual form: two facts that agree but for one number."""
    match clause.goals:
        case (Scan(terms=dominated), Scan(terms=dominating), Test("<" | ">", Base.NUMBER, left, right)) | (
            Scan(terms=dominated),
            Test("<" | ">", Base.NUMBER, left, right),
            Scan(terms=dominating),
        ):
            test = next(goal for goal in clause.goals if isinstance(goal, Test))
        case _:
            return None
    columns = [i for i, pair in enumerate(zip(dominated, dominating, strict=True)) if pair[0] != pair[1]]
    names = [*dominated, *(dominating[i] for i in columns)]
    if len(columns) != 1 or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        return None
    if not (isinstance(left, Variable) and isinstance(right, Variable)):
        return None
    (column,) = columns
    lesser, greater = (left.name, right.name) if test.operator == "<" else (right.name, left.name)
    if (lesser, greater) == (dominating[column], dominated[column]):
        return Comparison(column, is_least=True)
    if (lesser, greater) == (dominated[column], dominating[column]):
        return Comparison(column, is_least=False)
    return None


def may_wait(stratum: LogicalStratum, comparison: Comparison) -> bool:
    """Whether facts may be looked at in any order: every rule of the stratum reads one fact of its only relation, and
    the number that it gives is the one it reads, or grows with it, and decides about nothing else. Then better facts
    give better ones, and in whatever order they come, what is left are the best of each key."""
    return _all_grow(stratum, comparison.column, _GROWING)


def maintained_comparison(stratum: LogicalStratum, relations: Mapping[str, StoredRelation]) -> Comparison | None:
    """What decides about the facts of a stratum with subsumption, if updates of it can be followed: all that is left
    of it follows from what is left. None: it is evaluated anew."""
    comparison = only_comparison(stratum)
    if comparison is None or any(relations[name].choices for name in stratum.relations):
        return None
    return comparison if rests_on_the_best(stratum, comparison) else None


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
