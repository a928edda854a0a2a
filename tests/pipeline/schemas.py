"""The relations that the tests of fact files use."""

from __future__ import annotations

from elastalog.analysis.program import Attribute, Base, Directive, Relation
from elastalog.diagnostics.source import Span
from elastalog.relations.schema import Column, Schema

PAIR = Schema("pair", (Column("x", Base.NUMBER), Column("y", Base.NUMBER)))
EDGE = Schema("edge", (Column("x", Base.NUMBER), Column("y", Base.SYMBOL)))
NAME = Schema("name", (Column("s", Base.SYMBOL),))
FLAG = Schema("flag", ())
SPAN = Span(0, 0)


def one(base: Base) -> Schema:
    return Schema("r", (Column("v", base),))


def relation(schema: Schema, *parameters: dict[str, str], kind: str = "input") -> Relation:
    attributes = tuple(Attribute(column.name, column.base.value, column.base) for column in schema.columns)
    return Relation(schema.name, attributes, tuple(Directive(kind, p, SPAN) for p in parameters), (), SPAN)
