"""What aggregates make of plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

from elastalog.analysis.functor_values import greatest, least
from elastalog.analysis.program import Apply, Base, Value
from elastalog.analysis.values import sort_key
from elastalog.diagnostics.source import Span
from elastalog.provenance.comparisons import compare
from elastalog.provenance.ground import BOUNDS, NoValue, Ordinal, applied, modulo_bits, no_ordinal, normal


def fold(operator: str, values: list[Any], base: Base, ordinal: Ordinal = no_ordinal) -> Value | None:
    """What an aggregate makes of the values it ranges over; None if it has no result. `count` takes one value a
    member."""
    try:
        match operator:
            case "count":
                return len(values)
            case "sum" if base in BOUNDS and getattr(ordinal, "wraps", False):
                return modulo_bits(sum(values), base)
            case "sum":
                return normal(_exact_sum(values), base)
            case "mean":
                return _exact_sum(values) / len(values) if values else None
            case "min" | "max":
                return None if not values else least(*values) if operator == "min" else greatest(*values)
            case _ if operator[0] == "@":
                return _folded(operator, values, base, getattr(ordinal, "functions", {}))
            case _:
                raise ValueError(operator)
    except (NoValue, OverflowError, ValueError):
        return math.nan if base is Base.FLOAT else None


def _exact_sum(values: list[Any]) -> Any:
    """The sum, rounded once: that of integers not at all, however large they are."""
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    try:
        return math.fsum(values)
    except OverflowError:  # in the end, or only on the way there
        limitless = [value for value in values if not math.isfinite(value)]
        return sum(limitless) if limitless else float(sum(map(Fraction, values)) / 2**64) * 2.0**64


def _folded(operator: str, pairs: list[Any], base: Base, functions: Mapping[str, Callable[..., Any]]) -> Value | None:
    """What a functor of the user makes of values, each with what it starts with, in ascending order."""
    if not pairs:
        return None
    folded = pairs[0][0]
    for value in sorted((pair[1] for pair in pairs), key=sort_key):
        folded = applied(Apply(operator, (), base, Span(0, 0)), (folded, value), functions)
    return cast(Value, folded)


def same(left: Value, right: Value) -> bool:
    """Whether two results of an aggregate are the same; floats may differ by the order in which they were added."""
    if isinstance(left, float) and isinstance(right, float):
        return compare("=", left, right) or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right
