"""Facts as they are shown: as the language writes them."""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.analysis.program import Value
from elastalog.analysis.values import written
from elastalog.syntax.constants import write_string


def value_text(value: Value) -> str:
    """A value as a program would write it."""
    return write_string(value) if isinstance(value, str) else written(value)


def fact_text(relation: str, values: Iterable[Value]) -> str:
    """A fact as a program would write it."""
    return f"{relation}({', '.join(map(value_text, values))})"
