"""Are these Arrow columns the columns of that relation? A wrong type is an error of the column; a null, a value out of
range or an invalid text is a fault of its row.

A column that says the same in one of the base types is taken for it, and no other is:

| declared as | columns that are taken too |
|---|---|
| `symbol` | dates, times and timestamps (ISO 8601), decimals, truth values (`true`, `false`) |
| `number`, `unsigned` | whole floats (NaN is a missing value), decimals without fraction, truth values (0 and 1) |
| `float` | decimals |
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.relations import faults
from elastalog.relations.arrays import ARROW_TYPES
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import MOST_EXACT_INTEGER_IN_FLOAT, MOST_NUMBER
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema, column_order, warn_of_midnights

pc = late.module("pyarrow.compute")
_SAMPLE = 1000
"""Rows by which a table is known to hold changes."""
INDEX = b"elastalog.index"
"""Under which a table says, a line each, what columns the index of its data frame has."""


def columns_in_order(
    schema: Schema, table: pa.Table, location: str | None = None, apart: Sequence[str] = (), *, warns: bool = True
) -> list[pa.ChunkedArray]:
    """The columns of a table in the order of the relation's, as `column_order` matches them."""
    if not table.num_columns and not table.num_rows:  # a frame that is empty was not told its columns
        return [pa.chunked_array([], ARROW_TYPES[column.base]) for column in schema.columns]
    try:
        names = table.column_names
    except UnicodeDecodeError:  # names are foreign bytes; then columns go by position
        names = [f"�{i}" for i in range(table.num_columns)]
    index = (table.schema.metadata or {}).get(INDEX, b"").decode().split("\n")
    order = column_order(
        schema, names, location=location, apart=apart, warns=warns, index=index,
        values=lambda place: table.column(place)[:_SAMPLE].to_pylist(),
    )  # fmt: skip
    return [table.column(i) for i in order]


def as_base_column(
    schema: Schema, column: Column, array: pa.ChunkedArray, location: str | None = None
) -> pa.ChunkedArray:
    """The column with dictionary encoding resolved where that matters, if its type suits the base type at all."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # of polars, which Arrow cannot take by their numbers
            kind = pa.dictionary(kind.index_type, pa.large_string())
            array = array.cast(kind)
        holds_null_entry = any(chunk.dictionary.null_count for chunk in array.chunks)
        if not is_text(kind.value_type) or holds_null_entry:
            array = array.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_string_view(kind):  # which Arrow cannot filter
        array = array.cast(pa.large_string())
        kind = array.type
    if pa.types.is_float16(kind):  # of which Arrow computes nothing
        kind = pa.float32()
        array = array.cast(kind)
    if column.record is not None:
        if not (is_text(kind) or pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_null(kind)):
            raise _wrong_column_type(schema, column, kind, location)
        return array
    if pa.types.is_null(kind):
        return array.cast(ARROW_TYPES[column.base])
    if not _suits(column.base, kind):
        if column.base is Base.SYMBOL and pa.types.is_timestamp(kind) and _are_midnights(array):
            warn_of_midnights(schema, column, location)
        array = as_base_values(column.base, array)
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not _suits(column.base, kind):
        is_fraction = column.base is not Base.SYMBOL and pa.types.is_floating(kind)
        fraction = next((x for x in array.to_pylist() if x is not None and x % 1), None) if is_fraction else None
        raise _wrong_column_type(schema, column, kind, location, fraction)
    return array


def converted_values(schema: Schema, table: pa.Table) -> int:
    """The number of values in a table that have another type than the declared one, and are taken because they mean the
    same in it."""
    if not schema.arity or [(f.name, f.type) for f in table.schema] == [(f.name, f.type) for f in schema.arrow()]:
        return 0
    return sum(
        len(array) - array.null_count
        for column, array in zip(schema.columns, columns_in_order(schema, table, warns=False), strict=True)
        if column.record is None
        and not _suits(column.base, value_type(array.type))
        and not pa.types.is_null(array.type)
    )


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however they are stored."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


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
            return is_text(kind)
        case Base.FLOAT:
            return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
        case Base.NUMBER | Base.UNSIGNED:
            return bool(pa.types.is_integer(kind))
        case Base.RECORD:
            return False


def is_text(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are texts, however they are laid out."""
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


def _wrong_column_type(
    schema: Schema, column: Column, kind: pa.DataType, location: str | None, fraction: float | None = None
) -> ElastalogError:
    """`fraction`: a value that is the reason."""
    return error(
        "E0502", location=location, column=column.name, relation=schema.name, type=column.type_name,
        given=_in_words(value_type(kind)), schema=schema, fraction=fraction,
        whole=None if fraction is None else faults.for_whole(column.name),
        texts=column.name if column.base is Base.SYMBOL and pa.types.is_floating(value_type(kind)) else None,
    )  # fmt: skip


def _in_words(kind: pa.DataType) -> str:
    """What values of a type are called; Arrow has several types for most kinds of them."""
    if is_text(kind):
        return "texts"
    return next((words for name, words in _WORDS.items() if getattr(pa.types, f"is_{name}")(kind)), str(kind))


_WORDS = {
    "integer": "whole numbers", "floating": "floats", "boolean": "truth values", "decimal": "decimals",
    "duration": "durations", "temporal": "dates or times", "struct": "records", "list": "lists", "large_list": "lists",
    "fixed_size_list": "lists", "binary": "bytes", "large_binary": "bytes", "fixed_size_binary": "bytes",
}  # fmt: skip


MOST_EXACT = float(2**53)
"""Whole floats up to here are the only ones that mean one number."""


def as_base_values(base: Base, array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that the base type has, if it says the same there; otherwise the column as it is."""
    kind = array.type
    match base:
        case Base.SYMBOL:
            if pa.types.is_temporal(kind) and not (pa.types.is_duration(kind) or pa.types.is_interval(kind)):
                return _as_iso_text(array)
            return array.cast(pa.string()) if pa.types.is_decimal(kind) or pa.types.is_boolean(kind) else array
        case Base.FLOAT:
            return array.cast(pa.float64()) if pa.types.is_decimal(kind) else array
        case Base.NUMBER | Base.UNSIGNED:
            if pa.types.is_boolean(kind):
                return array.cast(pa.int64())
            if pa.types.is_decimal(kind):
                return _as_integers(array)
            return _as_whole(array) if pa.types.is_floating(kind) else array


def _are_midnights(times: pa.ChunkedArray) -> bool:
    """Whether every timestamp, in UTC if they have a zone, is the beginning of a day; False if there is none."""
    kind = pa.timestamp(times.type.unit)
    in_utc = times.cast(kind)
    return bool(pc.all(pc.equal(in_utc.cast(pa.date32()).cast(kind), in_utc)).as_py() and len(times) > times.null_count)


def _as_iso_text(array: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_timestamp(array.type):
        return array.cast(pa.string())
    text = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())  # of a time with a zone: that in UTC
    text = pc.replace_substring(text, " ", "T")
    return text if array.type.tz is None else pc.binary_join_element_wise(text, "Z", "")


def _as_integers(array: pa.ChunkedArray) -> pa.ChunkedArray:
    for kind in (pa.int64(), pa.uint64()):
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:  # a fraction, or too large
            continue
    return array


def _as_whole(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole floats as integers; the column as it is if one of them is not, or is too large to be exact."""
    known = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    is_whole = pc.and_(pc.equal(known, pc.floor(known)), pc.less_equal(pc.abs(known), MOST_EXACT))
    return known.cast(pa.int64()) if pc.all(is_whole).as_py() is not False else array
