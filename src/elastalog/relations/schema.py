"""The columns of a relation: names and base types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from elastalog.analysis.program import Attribute, Base, CheckedProgram, Relation
from elastalog.diagnostics.arguments import require_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.late import dataclass
from elastalog.relations.limits import LEAST_NARROW

if TYPE_CHECKING:
    import pyarrow as pa

    from elastalog.relations.record_types import RecordType


_LEAST: Final = {Base.NUMBER: LEAST_NARROW, Base.UNSIGNED: 0, Base.SYMBOL: None}
"""The least number that is its own word; None of texts."""


class UnknownRelation(ElastalogError, KeyError):
    """There is no relation of a name; to mappings of relations, a key that is missing."""


@dataclass(frozen=True, slots=True)
class Column:
    """`record`: of a column of records, their type."""

    name: str
    base: Base
    record: RecordType | None = None

    @staticmethod
    def of(attribute: Attribute) -> Column:
        """The column of a declared attribute."""
        if attribute.structures is None:
            return Column(attribute.name, attribute.base)
        from elastalog.relations.record_types import RecordType

        return Column(attribute.name, attribute.base, RecordType(attribute.type_name, attribute.structures))

    @property
    def type_name(self) -> str:
        """The name of the type, as messages say it."""
        return self.base.value if self.record is None else self.record.name


@dataclass(frozen=True, slots=True)
class Schema:
    """A relation's name and columns, in order. `least`: of every column the least value that is its own word, None of a
    column of texts, if all columns are of whole numbers or texts; `texts`: where the latter are. Every
    small update asks."""

    name: str
    columns: tuple[Column, ...]
    least: tuple[int | None, ...] | None = field(default=None, init=False, repr=False, compare=False)
    texts: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if all(column.base in _LEAST for column in self.columns):
            object.__setattr__(self, "least", tuple([_LEAST[column.base] for column in self.columns]))
            texts = [place for place, column in enumerate(self.columns) if column.base is Base.SYMBOL]
            object.__setattr__(self, "texts", tuple(texts))

    @staticmethod
    def of(relation: Relation) -> Schema:
        """The schema of a checked relation."""
        return Schema(relation.name, tuple(map(Column.of, relation.attributes)))

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns])  # quicker than a generator

    def arrow(self) -> pa.Schema:
        """The Arrow schema of the relation's facts: `int64`, `uint64`, `float64`, `string`, none nullable; records are
        text."""
        import pyarrow as pa

        from elastalog.relations.words import ARROW_TYPES

        return pa.schema([pa.field(column.name, ARROW_TYPES[column.base], nullable=False) for column in self.columns])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{column.name}: {column.type_name}' for column in self.columns)})"


def schemas_of(program: CheckedProgram) -> dict[str, Schema]:
    """The schemas of all declared relations."""
    return {name: Schema.of(relation) for name, relation in program.relations.items()}


def schema_named(schemas: Mapping[str, Schema], name: str) -> Schema:
    """The schema of a relation. Raises UnknownRelation when there is none of that name."""
    schema = schemas.get(name) if type(name) is str else None
    if schema is None:
        require_text("a relation is named by a text", name, 'give its name, as in `"path"`')
        if name in schemas:  # a text of another kind
            return schemas[name]
        advice = did_you_mean(name, schemas) or "the program declares: " + ", ".join(schemas)
        raise UnknownRelation([Diagnostic("E0606", f"there is no relation `{name}`", help=advice)])
    return schema
