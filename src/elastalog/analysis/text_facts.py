"""Facts written in a program text whose values are made of values."""

from __future__ import annotations

from collections.abc import Sequence

from elastalog.analysis.draft import TypedRule
from elastalog.analysis.program import Apply, Comparison, Constant, Expression, Value, Variable, Wildcard
from elastalog.analysis.structures import is_constructor
from elastalog.analysis.values import Branch, Record


def values_of_fact(rule: TypedRule) -> tuple[Value, ...] | None:
    """The values of a clause without a body, whose head may be built of constants; None if it computes anything."""
    known: dict[str, Value] = {}
    for literal in rule.body:
        if type(literal) is not Comparison or type(literal.left) is not Variable:
            return None
        value = _value(literal.right, known)
        if value is None:
            return None
        known[literal.left.name] = value
    values = [_value(term, known) for term in rule.head.arguments]
    found = tuple([value for value in values if value is not None])
    return found if len(found) == len(values) else None


def _value(term: Expression | Wildcard, known: dict[str, Value]) -> Value | None:
    if type(term) is Constant:
        return term.value
    if type(term) is Variable:
        return known.get(term.name)
    if type(term) is not Apply or not is_constructor(term.functor):
        return None
    parts = [_value(argument, known) for argument in term.arguments]
    if any(part is None for part in parts):
        return None
    return build(term, parts)


def build(term: Apply, parts: Sequence[Value | None]) -> Value:
    """The value that a constructor makes of its parts."""
    record = Record(parts, tuple([argument.base for argument in term.arguments]))
    return record if term.functor == "[]" else Branch.of(term.functor[1:], record)
