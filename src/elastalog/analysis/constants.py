"""Constants as values of a base type."""

from __future__ import annotations

from typing import Final

from elastalog.analysis.program import Base, Value
from elastalog.syntax import tree

LIMITS: Final = {Base.NUMBER: (-(2**63), 2**63 - 1), Base.UNSIGNED: (0, 2**64 - 1), Base.FLOAT: (-(2**1000), 2**1000)}
"""The least and the greatest integer literal of each numeric type."""


def constant_value(term: tree.Term, base: Base) -> Value | None:
    """The value of a constant (an unary minus before it counted in) as one of the base type; None when it is none."""
    if type(term) is tree.String:
        return term.value if base is Base.SYMBOL else None
    if type(term) is tree.Integer:
        return _integer(term.value, term.is_unsigned, base)
    if type(term) is tree.Float:
        return term.value if base is Base.FLOAT else None
    negated = negated_literal(term)
    if type(negated) is tree.Integer:
        return _integer(-negated.value, negated.is_unsigned, base)
    if type(negated) is tree.Float:
        return -negated.value if base is Base.FLOAT else None
    return None


def negated_literal(term: tree.Term) -> tree.Integer | tree.Float | None:
    """The literal under an unary minus, if the term is that."""
    if type(term) is tree.Call and term.functor == "neg":
        argument = term.arguments[0]
        if type(argument) is tree.Integer or type(argument) is tree.Float:
            return argument
    return None


def _integer(value: int, is_unsigned: bool, base: Base) -> Value | None:
    if base in (Base.SYMBOL, Base.RECORD) or (is_unsigned and base is not Base.UNSIGNED):
        return None
    least, greatest = LIMITS[base]
    if not least <= value <= greatest:
        return None
    return float(value) if base is Base.FLOAT else value
