"""Are these Arrow columns the columns of that relation? A wrong type is an error of the column; a null, a value out of
range or a text that is none is a fault of its row."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import MOST_EXACT_INTEGER_IN_FLOAT, MOST_NUMBER
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import ARROW_TYPES


def columns_in_order(schema: Schema, table: pa.Table, location: str | None = None) -> list[pa.ChunkedArray]:
    """The columns of a table by position, or by name when the names are the schema's in another order."""
    if table.num_columns != schema.arity:
        raise ElastalogError([wrong_arity(schema, table.num_columns, "the table", location)])
    names = tuple(table.column_names)
    if names != schema.names and len(set(names)) == len(names) and set(names) == set(schema.names):
        return [table.column(name) for name in schema.names]
    return list(table.columns)


def as_base_column(
    schema: Schema, column: Column, array: pa.ChunkedArray, location: str | None = None
) -> pa.ChunkedArray:
    """The column with dictionary encoding resolved where that matters, if its type suits the base type at all."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        holds_null_entry = any(chunk.dictionary.null_count for chunk in array.chunks)
        if not _is_text(kind.value_type) or holds_null_entry:
            array = array.cast(kind.value_type)
        kind = kind.value_type
    if column.record is not None:
        if not (_is_text(kind) or pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_null(kind)):
            raise ElastalogError([_wrong_column_type(schema, column, kind, location)])
        return array
    if pa.types.is_null(kind):
        return array.cast(ARROW_TYPES[column.base])
    if not _suits(column.base, kind):
        raise ElastalogError([_wrong_column_type(schema, column, kind, location)])
    return array


def faults_of(columns: Sequence[Column], arrays: Sequence[pa.ChunkedArray]) -> dict[int, Fault]:
    """The first fault of every bad row, by row number from 0."""
    found: dict[int, Fault] = {}
    for column, array in zip(columns, arrays, strict=True):
        if column.record is not None:
            for row, value in enumerate(array.to_pylist()):
                if (fault := value_fault(column, value)) is not None:
                    found.setdefault(row, fault)
            continue
        if array.null_count:
            for row in _rows_where(pc.is_null(array)):
                found.setdefault(row, Fault(faults.NULL, f"`{column.name}` is null"))
        if column.base is Base.SYMBOL:
            for row in _rows_not_utf8(array):
                found.setdefault(row, Fault(faults.ENCODING, f"`{column.name}` is not UTF-8"))
        if (outside := _outside(column.base, array)) is not None:
            for row in _rows_where(outside):
                value = shown(str(array[row].as_py()))
                found.setdefault(row, Fault(faults.RANGE, f"{value} does not fit {column.base.value} `{column.name}`"))
    return dict(sorted(found.items()))


def _suits(base: Base, kind: pa.DataType) -> bool:
    match base:
        case Base.SYMBOL:
            return _is_text(kind)
        case Base.FLOAT:
            return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
        case Base.NUMBER | Base.UNSIGNED:
            return bool(pa.types.is_integer(kind))
        case Base.RECORD:
            return False


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _outside(base: Base, array: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Which values the base type cannot hold, None if that is out of the question."""
    kind = array.type
    match base:
        case Base.NUMBER if kind == pa.uint64():
            return pc.greater(array, pa.scalar(MOST_NUMBER, pa.uint64()))
        case Base.UNSIGNED if pa.types.is_signed_integer(kind):
            return pc.less(array, pa.scalar(0, kind))
        case Base.FLOAT if kind in (pa.int64(), pa.uint64()):
            above = pc.greater(array, pa.scalar(MOST_EXACT_INTEGER_IN_FLOAT, kind))
            if kind == pa.uint64():
                return above
            return pc.or_(above, pc.less(array, pa.scalar(-MOST_EXACT_INTEGER_IN_FLOAT, kind)))
        case _:
            return None


def _rows_not_utf8(array: pa.ChunkedArray) -> list[int]:
    """Arrow takes it on trust that the bytes of a text are UTF-8, and so do most that make Arrow arrays."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return [row for row in range(len(array)) if not _is_utf8(array[row])]
    return []


def _is_utf8(text: pa.Scalar) -> bool:
    try:
        text.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _rows_where(mask: pa.ChunkedArray) -> list[int]:
    rows: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return rows


def wrong_arity(schema: Schema, given: int, what: str, location: str | None = None) -> Diagnostic:
    columns = f"{schema.arity} column{'' if schema.arity == 1 else 's'}"
    return Diagnostic(
        code=faults.ARITY,
        message=f"relation `{schema.name}` has {columns}, {what} has {given}",
        notes=(f"declared as {schema}",),
        help=faults.helps(faults.ARITY),
        location=location,
    )


def _wrong_column_type(schema: Schema, column: Column, kind: pa.DataType, location: str | None) -> Diagnostic:
    return Diagnostic(
        code=faults.TYPE,
        message=f"column `{column.name}` of `{schema.name}` is {column.type_name}, not {kind}",
        notes=(f"declared as {schema}",),
        help=faults.helps(faults.TYPE),
        location=location,
    )
