"""Facts in and out: anything tabular into rows of words, rows of words into an Arrow table.

A few rows of plain values become words without the machinery for columns, which costs more than the rows of a small
update do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from io import IOBase
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import empty  # found more quickly than in its module

from elastalog import late
from elastalog.diagnostics.arguments import require_one_of
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error
from elastalog.relations import faults
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.checks import INDEX, as_base_column, columns_in_order, faults_of
from elastalog.relations.limits import WIDE, WORD, Words
from elastalog.relations.records import as_struct
from elastalog.relations.rows import columns_of_rows, row_diagnostic
from elastalog.relations.schema import Column, Schema, column_order
from elastalog.relations.words import Dictionary, packing
from elastalog.settings import SETTINGS

pc = late.module("pyarrow.compute")
_DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id
_TUPLES = frozenset({tuple})


def to_words(schema: Schema, rows: Any, dictionary: Dictionary) -> Words:
    """The facts as words, C-contiguous, of shape (number of rows, arity).

    `rows` may be an iterable of tuples, a pyarrow table, record batch or reader, a pandas or polars data frame, a
    DuckDB relation, a two-dimensional NumPy array, or anything with `__arrow_c_stream__` or `__arrow_c_array__`.
    Columns go by name if any has the name of a declared one, otherwise by position (see `column_order`). A bad row
    raises an ElastalogError that names it."""
    if isinstance(rows, list) and (words := words_of_few_tuples(schema, rows, dictionary)) is not None:
        return words
    if isinstance(rows, np.ndarray):
        return _words_of_numpy(schema, rows, dictionary)
    table = as_table(rows)
    if table is not None:
        given = columns_in_order(schema, table)
        if (
            0 < table.num_rows <= SETTINGS.few_rows
            and (words := _words_of_small_table(schema, given, dictionary)) is not None
        ):
            return words
        return _words_of_columns(schema, table.num_rows, _checked_columns(schema, given), dictionary)
    count, columns = columns_of_rows(schema, require_rows(schema, rows))
    return _words_of_columns(schema, count, columns, dictionary)


def to_table(
    schema: Schema, words: Words, dictionary: Dictionary, annotations: Mapping[str, np.ndarray] | None = None
) -> pa.Table:
    """The facts of words as an Arrow table, one column per attribute, then one per annotation. A nullary relation
    keeps its number of rows."""
    fields = list(schema.arrow())
    columns = [_column_of_words(column, words[:, i], dictionary) for i, column in enumerate(schema.columns)]
    for i, column in enumerate(columns):
        fields[i] = fields[i].with_type(column.type)  # large strings beyond 2 GiB, records that are structs
        if pa.types.is_struct(column.type):
            fields[i] = fields[i].with_nullable(True)  # nil
    for name, values in (annotations or {}).items():
        columns.append(array_of_numbers(values))
        fields.append(pa.field(name, columns[-1].type, nullable=False))
    return table_of_columns(pa.schema(fields), len(words), columns)


def with_types(table: pa.Table, types: Mapping[str, Any]) -> pa.Table:
    """The table with some columns in other Arrow types, given as such or by name. Raises ElastalogError when a column
    is unknown, or a value cannot have the type."""
    for name, given in types.items():
        require_one_of("column", name, table.column_names)
        try:
            kind = given if isinstance(given, pa.DataType) else pa.type_for_alias(given)
            place = table.column_names.index(name)
            table = table.set_column(place, name, _cast(table.column(place), kind))
        except (AttributeError, ValueError, TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
            told = f"column `{name}` cannot be given as {given}: {str(fault).splitlines()[0]}"
            advice = 'name an Arrow type that its values have, such as "timestamp[us]", "timestamp[ns]", "date32"'
            raise ElastalogError([Diagnostic(faults.TYPE, told, help=advice)]) from None
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column in a type. Texts of midnights may become dates; other times of a day are not cut off."""
    if pa.types.is_date(kind) and pa.types.is_string(column.type):
        column = pc.replace_substring_regex(column, r"T00:00:00(\.0+)?Z?$", "")
    return column.cast(kind)


def _column_of_words(column: Column, words: Words, dictionary: Dictionary) -> pa.Array:
    kind = None if column.record is None else column.record.arrow
    if kind is None or not pa.types.is_struct(kind):
        return dictionary.decode_column(column.base, words)
    return pa.array([as_struct(value, kind) for value in dictionary.decode_records(words)], kind)


def table_of_columns(arrow_schema: pa.Schema, count: int, columns: list[Any]) -> pa.Table:
    """A table that knows its number of rows even without columns."""
    if columns:
        return pa.Table.from_arrays(columns, schema=arrow_schema)
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))])


def joined(tables: list[pa.Table]) -> pa.Table:
    """Tables of one schema one after the other. `pa.concat_tables` forgets the rows of tables without columns."""
    if tables[0].num_columns:
        return pa.concat_tables(tables)
    return table_of_columns(tables[0].schema, sum(table.num_rows for table in tables), [])


def as_table(rows: Any) -> pa.Table | None:
    """The rows as an Arrow table if they are tabular, None if they are not."""
    if isinstance(rows, pa.Table):
        return rows
    if is_pandas(rows):
        return _table_of_pandas(rows)
    if hasattr(rows, "collect_schema"):  # a frame of polars
        rows = rows.collect() if hasattr(rows, "collect") else rows  # a lazy one
        if "Object" in map(str, getattr(rows, "dtypes", ())):  # to Arrow it would give the addresses of the values
            return None
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(rows)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        return None
    if hasattr(rows, "fetch_arrow_table"):  # DuckDB before it had streams
        return rows.fetch_arrow_table()
    return None


def require_rows(schema: Schema, rows: Any) -> Iterable[Any]:
    """Rows that are no Arrow table, one by one. Raises ElastalogError if they are none."""
    if is_pandas(rows) or hasattr(rows, "iter_rows"):  # a frame, with a column of mixed types or one unknown to Arrow
        order = column_order(schema, [str(name) for name in rows.columns])
        if is_pandas(rows):
            known = rows.astype(object).where(rows.notna().to_numpy(), None)
            listing = known.itertuples(index=False, name=None)
        else:
            listing = rows.iter_rows()
        return (tuple(row[place] for place in order) for row in listing)
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        listed: list[Any] = rows.tolist()
        return listed
    if (
        isinstance(rows, np.ndarray)
        or not isinstance(rows, Iterable)
        or isinstance(rows, str | bytes | Mapping | IOBase)
    ):
        raise _not_rows(schema, rows)
    return rows


def is_pandas(rows: Any) -> bool:
    """Whether rows are a pandas data frame. Does not import pandas by itself."""
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)  # none yet while another thread imports it
    return frame is not None and isinstance(rows, frame)


def _table_of_pandas(frame: Any) -> pa.Table | None:
    """None when a column has mixed types, or values for which Arrow has no type: then rows are looked at one by one."""
    columns = []
    try:
        for i in range(frame.shape[1]):
            if not len(frame):
                columns.append(pa.nulls(0))  # pandas gives what is empty an arbitrary type
                continue
            columns.append(pa.array(frame.iloc[:, i], from_pandas=True))  # a NaN means that no value is there
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if not columns:
        return table_of_columns(pa.schema([]), len(frame), [])
    index = [str(name) for name in frame.index.names if name is not None]
    table = pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns])
    return table.replace_schema_metadata({INDEX: "\n".join(index)}) if index else table


def _checked_columns(schema: Schema, given: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    arrays = [as_base_column(schema, column, array) for column, array in zip(schema.columns, given, strict=True)]
    if bad := faults_of(schema.columns, arrays):
        row, fault = next(iter(bad.items()))
        raise ElastalogError([row_diagnostic(schema, f"row {row + 1}", fault, len(bad) - 1)])
    return arrays


def _words_of_small_table(schema: Schema, given: list[pa.ChunkedArray], dictionary: Dictionary) -> Words | None:
    # A dictionary says in which order its texts are to get their ids.
    if not schema.arity:
        return None
    columns = []
    try:
        for array in given:
            if array.type.id == _DICTIONARY:
                return None
            columns.append(array.to_pylist())
    except (ValueError, KeyError, pa.ArrowException):  # such as bytes that are not UTF-8, an unknown time zone
        return None
    return words_of_few_tuples(schema, list(zip(*columns, strict=True)), dictionary)


def _words_of_columns(schema: Schema, count: int, columns: list[Any], dictionary: Dictionary) -> Words:
    words: Words = np.empty((count, schema.arity), np.int32)
    for i, column in enumerate(schema.columns):
        if column.record is not None:
            listed = columns[i].to_pylist()
            words[:, i] = dictionary.encode_records([column.record.typed(value) for value in listed])
        else:
            words[:, i] = dictionary.encode_column(column.base, columns[i])
    return words


def _words_of_numpy(schema: Schema, rows: np.ndarray, dictionary: Dictionary) -> Words:
    if rows.ndim != 2:
        raise _not_rows(schema, rows)
    if rows.dtype.kind not in "iufb" or np.ma.is_masked(rows):  # a list has None for what is masked
        count, arrays = columns_of_rows(schema, rows.tolist())
        return _words_of_columns(schema, count, arrays, dictionary)
    columns = [pa.chunked_array([array_of_numbers(rows[:, i])]) for i in range(rows.shape[1])]
    table = table_of_columns(pa.schema([(str(i), c.type) for i, c in enumerate(columns)]), len(rows), columns)
    return _words_of_columns(schema, len(rows), _checked_columns(schema, columns_in_order(schema, table)), dictionary)


def _not_rows(schema: Schema, rows: Any) -> ElastalogError:
    shape = f" with {rows.ndim} dimensions" if isinstance(rows, np.ndarray) else ""
    given, name = f"{type(rows).__name__}{shape}", schema.name
    is_mapping = isinstance(rows, Mapping)
    has_lists = is_mapping and any(isinstance(value, list | tuple) for value in rows.values())
    is_paired = is_mapping and not has_lists and schema.arity == 2 and set(rows).isdisjoint(schema.names)
    is_row = is_mapping and not has_lists and not is_paired
    frame = "pandas.DataFrame(…)" if has_lists else None
    pairs = f'{{"{name}": list(mapping.items())}}' if is_paired else None
    row = f"[{rows!r:.60}]" if is_row and len(repr(rows)) <= 60 else "[{…}]" if is_row else None
    path = str(getattr(rows, "name", "PATH")) if isinstance(rows, IOBase) else None
    return error(
        "E0502.rows", location=name, relation=name, given=given, schema=schema, frame=frame, row=row, path=path,
        pairs=pairs,
    )  # fmt: skip


def words_of_few_tuples(schema: Schema, rows: list[Any], dictionary: Dictionary) -> Words | None:
    """The words of rows. None if they are many, or if one is not a tuple of the plainest values: it, and what may be
    wrong with it, must then be looked at with care."""
    number, kinds = len(rows), schema.kinds
    if not kinds or number > SETTINGS.few_rows:
        return None
    if number == 1:
        given = rows[0]
        if type(given) is not tuple or (*map(type, given),) != kinds:
            return None
    else:
        given = (*chain.from_iterable(rows),) if _TUPLES.issuperset(map(type, rows)) else ()
        if (*map(type, given),) != kinds * number or not {len(kinds)}.issuperset(map(len, rows)):
            return None
    if schema.is_of_texts:
        words = [*map(dictionary.symbols.find, given)]
    else:
        words = [*given]  # numbers are their own words
        for part, least in schema.parts:
            if least is None:
                words[part] = map(dictionary.symbols.find, given[part])
            elif number and (min(values := given[part]) < least or max(values) >= WIDE):
                return None
    if None in words:  # all have been looked at before the first text is added
        texts = [part for part, least in schema.parts if least is None]
        try:
            ids = iter(dictionary.symbols.ids_of([*chain.from_iterable(map(given.__getitem__, texts))]))
        except UnicodeEncodeError:
            return None
        for part in texts:
            words[part] = islice(ids, len(given[part]))
    found = empty((number, len(kinds)), WORD)  # in a third of the time that NumPy takes to look at a list
    packing(len(words))(found, 0, *words)
    return found
