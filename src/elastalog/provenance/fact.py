"""Facts as proofs speak of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Value

Bindings: TypeAlias = Mapping[str, Value]
"""The values of a rule's variables, by name."""


class Fact(NamedTuple):
    """A relation's name and values; equal to the plain pair `("path", (1, 4))`."""

    relation: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(show_value, self.values))})"

    def __repr__(self) -> str:
        return str(self)
