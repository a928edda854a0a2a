"""The columns of a relation: names and base types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from elastalog.analysis.program import Base, Relation

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    base: Base


@dataclass(frozen=True, slots=True)
class Schema:
    """A relation's name and columns, in order."""

    name: str
    columns: tuple[Column, ...]

    @staticmethod
    def of(relation: Relation) -> Schema:
        """The schema of a checked relation."""
        return Schema(relation.name, tuple(Column(a.name, a.base) for a in relation.attributes))

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def arrow(self) -> pa.Schema:
        """The Arrow schema of the relation's facts: `int64`, `uint64`, `float64`, `string`, none nullable."""
        import pyarrow as pa

        from elastalog.relations.words import ARROW_TYPES

        return pa.schema([pa.field(column.name, ARROW_TYPES[column.base], nullable=False) for column in self.columns])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{column.name}: {column.base.value}' for column in self.columns)})"
