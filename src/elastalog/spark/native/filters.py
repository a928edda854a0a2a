"""Conditions that Spark hands to a reader, so that rows which do not meet them never leave it.

Taken are those on numbers and texts that Arrow decides as Spark does: comparisons, `IN`, and the beginning, end or
inside of a text. Floats are left to Spark, to which NaN equals itself; so are decimals, and what is not a column.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}
_OF_TEXTS: Mapping[str, Callable[[Any, str], Any]] = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}


def expression_of(condition: Any, fields: Mapping[str, pa.DataType]) -> pc.Expression | None:
    """A filter of Spark on columns as a condition on tables of Arrow; None if it is left to Spark."""
    kind = type(condition).__name__
    if kind == "Not":
        inner = expression_of(condition.child, fields)
        return None if inner is None else ~inner
    if len(condition.attribute) != 1 or condition.attribute[0] not in fields:
        return None
    name = condition.attribute[0]
    column, wanted = pc.field(name), _value_type(fields[name])
    if kind == "IsNotNull" or kind == "IsNull":  # facts have a value in every column
        return pc.scalar(kind == "IsNotNull")
    if wanted is None:
        return None
    if kind == "In":
        values = list(condition.value)
        return column.isin(pa.array(values, fields[name])) if all(type(v) is wanted for v in values) else None
    if type(condition.value) is not wanted:
        return None
    if kind in _COMPARISONS:
        expression: pc.Expression = _COMPARISONS[kind](column, pc.scalar(condition.value))
        return expression
    if kind in _OF_TEXTS and isinstance(condition.value, str):
        return _OF_TEXTS[kind](column, condition.value)
    return None


def _value_type(kind: pa.DataType) -> type | None:
    if kind == pa.int64() or kind == pa.int32():
        return int
    return str if kind == pa.string() else None
