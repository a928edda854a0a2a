"""Subsumption in its usual form: of the facts that differ in one number only, that with the least, or greatest, stays.

`far(x, a) <= far(x, b) :- b < a.`
"""

from __future__ import annotations

from collections.abc import Collection

from elastalog.analysis.program import Base, Variable
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, Scan, Test


@dataclass(frozen=True, slots=True)
class Comparison:
    """The column whose number decides, and whether the least is the best."""

    column: int
    is_least: bool


def comparison_of(clause: Clause, bases: Collection[Base] = (Base.NUMBER,)) -> Comparison | None:
    """What a clause compares, if it is of the usual form: two facts that agree but for one number."""
    match clause.goals:
        case (Scan(terms=dominated), Scan(terms=dominating), Test("<" | ">", base, left, right)) | (
            Scan(terms=dominated),
            Test("<" | ">", base, left, right),
            Scan(terms=dominating),
        ) if base in bases:
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
