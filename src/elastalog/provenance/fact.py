"""Facts as proofs speak of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Value
from elastalog.diagnostics.arguments import WrongArgument, wrong_kind

Bindings: TypeAlias = Mapping[str, Value]
"""The values of a rule's variables, by name."""
Written: TypeAlias = str | tuple[str, tuple[Value, ...]]
"""A fact: as in the language, `path(1, 4)`, or as a pair, `("path", (1, 4))`."""


class Fact(NamedTuple):
    """A relation's name and values; equal to the plain pair `("path", (1, 4))`."""

    relation: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(show_value, self.values))})"

    def __repr__(self) -> str:
        return str(self)


def no_fact(given: object) -> WrongArgument:
    """The error of something given as a fact that cannot be one."""
    advice = 'write it as in the language, `path(1, 4)`, or as a pair, `("path", (1, 4))`'
    return wrong_kind("a fact is a text, or a relation and its values", given, advice)
