"""Rows that came as JSON, in which NaN and the infinities are texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elastalog.analysis.program import Base, StructuredType
from elastalog.relations.record_types import MOST_NESTED, RecordType
from elastalog.relations.schema import Column, Schema


def row_from_json(schema: Schema, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with floats where texts stand for them, in records too; what fits no column stays as it is."""
    if len(row) != schema.arity:
        return tuple(row)
    return tuple([_value(column, given) for column, given in zip(schema.columns, row, strict=True)])


def _value(column: Column, given: Any) -> Any:
    if column.record is not None:
        return _record(column.record, column.record.types[column.record.name], given, 0)
    return _number(given) if column.base is Base.FLOAT else given


def _record(record: RecordType, wanted: StructuredType, given: Any, depth: int) -> Any:
    fields = wanted.branches.get("[]", ())
    if not isinstance(given, list) or len(given) != len(fields) or depth > MOST_NESTED:
        return given
    parts: list[Any] = []
    for field, part in zip(fields, given, strict=True):
        if field.structure is not None:
            parts.append(_record(record, record.types[field.structure], part, depth + 1))
        else:
            parts.append(_number(part) if field.base is Base.FLOAT else part)
    return tuple(parts)


def _number(given: Any) -> Any:
    return float(given) if isinstance(given, str) and given in ("nan", "inf", "-inf") else given
