"""Which variables occur where, and which of them get values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.checked_variables import variables_of
from elastalog.analysis.program import Apply, Base, Variable
from elastalog.analysis.structures import is_constructor
from elastalog.planning.logical import Goal, Scan, StoredRelation, Test


def grounded(goals: tuple[Goal, ...]) -> set[str]:
    """The variables that a conjunction binds: by scans, and by equations over variables it binds."""
    bound = {term for goal in goals if isinstance(goal, Scan) for term in goal.terms if isinstance(term, str)}
    equations = [goal for goal in goals if isinstance(goal, Test) and goal.operator == "="]
    grows = True
    while grows:
        grows = False
        for test in equations:
            parts = constructor_of(test)
            if parts is not None and isinstance(test.left, Variable) and test.left.name in bound:
                inner = {v.name for v in variables_of(parts)}
                grows = grows or not inner <= bound
                bound |= inner
            for side, other in ((test.left, test.right), (test.right, test.left)):
                if (
                    isinstance(side, Variable)
                    and side.name not in bound
                    and all(v.name in bound for v in variables_of(other))
                ):
                    bound.add(side.name)
                    grows = True
    return bound


def constructor_of(test: Test) -> Apply | None:
    """What builds and takes apart the variable on the left, if the test is such an equation."""
    right = test.right
    return right if test.operator == "=" and isinstance(right, Apply) and is_constructor(right.functor) else None


def variables_in(test: Test) -> list[Variable]:
    """The variables of both sides."""
    return list(variables_of(test.left, test.right))


def names_in(goal: Goal) -> list[str]:
    """The names of the variables of a goal, as often as they occur."""
    if isinstance(goal, Test):
        return [variable.name for variable in variables_in(goal)]
    return [term for term in goal.terms if isinstance(term, str)]


def bases_of(goals: tuple[Goal, ...], stored: Mapping[str, StoredRelation]) -> dict[str, Base]:
    """The base types of the variables of goals."""
    found: dict[str, Base] = {}
    for goal in goals:
        if isinstance(goal, Test):
            found.update({variable.name: variable.base for variable in variables_in(goal)})
        else:
            bases = stored[goal.relation].bases
            found.update({t: base for t, base in zip(goal.terms, bases, strict=True) if isinstance(t, str)})
    return found


def assigned_variables(body: tuple[checked.Literal, ...]) -> Iterator[Variable]:
    """The variables that an assignment of an aggregate's body gives a value to."""
    for literal in body:
        match literal:
            case checked.Atom():
                yield from variables_of(*literal.arguments)
            case checked.Comparison():
                yield from variables_of(literal.left, literal.right)
            case checked.Aggregation():
                yield literal.result
            case checked.Negation():
                pass
            case _:
                assert_never(literal)
