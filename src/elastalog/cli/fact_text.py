"""Facts as they are shown: as the language writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from elastalog.analysis.program import Value
from elastalog.analysis.values import sort_key, written
from elastalog.syntax.keywords import write_string

if TYPE_CHECKING:
    from elastalog.evaluation.changes import RelationChanges
    from elastalog.evaluation.differences import Difference
    from elastalog.relations.facts import Relation


def value_text(value: Value) -> str:
    """A value as a program would write it."""
    return write_string(value) if isinstance(value, str) else written(value)


def fact_text(relation: str, values: Iterable[Value]) -> str:
    """A fact as a program would write it."""
    return f"{relation}({', '.join(map(value_text, values))})"


def fact_lines(relation: Relation, sign: str = "") -> Iterator[str]:
    """The facts of a relation in order, as a diff file has them."""
    for fact in sorted(relation, key=sort_key):
        yield f"{sign}{fact_text(relation.name, fact)}."


def changed_lines(changes: Iterable[RelationChanges | Difference]) -> Iterator[str]:
    """The facts that went and came, relation by relation, as a diff file has them."""
    for changed in changes:
        yield from fact_lines(changed.deleted, "-")
        yield from fact_lines(changed.inserted, "+")
