"""Parquet files of facts, and folders of such that stand for one file, as Spark and pyarrow write them: the parts lie
in it, or in folders of it that tell the value of a column, `year=2026`.

A file cannot have rows without columns, so the facts of a nullary relation are rows of one column called `()`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.paths import natural_order, resolve_under
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations.arrays import cast_column, numbers_of_array
from elastalog.relations.checks import as_base_column, columns_in_order, faults_of, is_text
from elastalog.relations.rows import array_of_values
from elastalog.relations.schema import Schema
from elastalog.relations.tables import table_of_columns

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

pc = late.module("pyarrow.compute")

NULLARY = "()"

_INSTANT = pa.timestamp("us", "UTC")

BATCH = 1 << 15
"""Rows read at a time."""


def read_parquet_table(
    schema: Schema, table: pa.Table, file: str, *, keeps_dictionaries: bool = False
) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of the table of a file and the bad ones (nulls, values out of range), which are placed by row
    number. Columns of symbols that have few for their rows may keep their dictionaries,
    of which each text is then encoded once."""
    if schema.arity == 0 and table.column_names == [NULLARY]:
        return table_of_columns(schema.arrow(), table.num_rows, []), []
    columns = columns_in_order(schema, table, file)
    columns = [as_base_column(schema, c, array, file) for c, array in zip(schema.columns, columns, strict=True)]
    found = faults_of(schema.columns, columns)
    bad = [BadRow(file, row + 1, fault, text_of(columns, row)) for row, fault in found.items()]
    if bad:
        is_good = np.ones(table.num_rows, bool)
        is_good[[row.line - 1 for row in bad]] = False
        columns = [array.filter(pa.array(is_good)) for array in columns]
    arrow_schema = schema.arrow()
    fields = list(arrow_schema)
    for i, (column, array) in enumerate(zip(schema.columns, columns, strict=True)):
        if column.record is not None:
            columns[i] = array_of_values(column, array.to_pylist())
        elif keeps_dictionaries and _is_mostly_repeated(array):
            columns[i] = array.unify_dictionaries()
            fields[i] = fields[i].with_type(array.type)
        else:
            columns[i] = cast_column(array, arrow_schema.types[i])
    return table_of_columns(pa.schema(fields), table.num_rows - len(bad), columns), bad


def _is_mostly_repeated(array: pa.ChunkedArray) -> bool:
    """Whether a column has dictionaries of texts, all used, and much smaller than itself."""
    if not pa.types.is_dictionary(array.type):
        return False
    entries = sum(len(chunk.dictionary) for chunk in array.chunks)
    return 4 * entries <= len(array) and all(
        bool(np.bincount(numbers_of_array(chunk.indices), minlength=len(chunk.dictionary)).all())
        for chunk in array.chunks
    )


def parquet_table(data: bytes, file: str) -> pa.Table:
    """The whole table of a Parquet file."""
    try:
        return read_in_batches(data, file)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ElastalogError.of("E0515.unreadable", location=file, file=file, why=str(error).splitlines()[0]) from None


def read_in_batches(data: bytes, file: str) -> pa.Table:
    """The whole table, within the limits; raises what Arrow does, and UnicodeDecodeError for names of columns. Texts
    stay numbers of the pages' dictionaries: one that occurs a million times takes no more room than in the file,
    until all have been counted."""
    from pyarrow import parquet

    layout = parquet.ParquetFile(pa.BufferReader(data)).schema_arrow
    texts = [name for name, kind in zip(layout.names, layout.types, strict=True) if is_text(kind)]

    def opened(texts: list[str] | None) -> ParquetFile:
        source = pa.BufferReader(data)
        return parquet.ParquetFile(source, read_dictionary=texts, coerce_int96_timestamp_unit=_INSTANT.unit)

    try:
        return _in_batches(opened(texts), len(data), file)
    except (pa.ArrowException, OSError):  # not every version takes every encoding over; or the file is damaged
        return _in_batches(opened(None), len(data), file)


def _in_batches(opened: ParquetFile, size: int, file: str) -> pa.Table:
    """All batches of an open file of some size, within the limits."""
    allowed = allowance()
    # Arrow unpacks a page in one go: what the file says of itself is believed when it says too much.
    groups = (opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups))
    said = sum(max(0, group.total_byte_size) for group in groups)
    allowed.check_expansion(file, size, said)
    allowed.require(said)
    batches: list[pa.RecordBatch] = []
    total = 0
    for batch in opened.iter_batches(batch_size=BATCH):
        batches.append(batch)
        total += sum(map(_plain_bytes, batch.columns))
        allowed.check()
        allowed.check_expansion(file, size, total)
    allowed.require(total)
    return _with_instants(pa.Table.from_batches(batches, opened.schema_arrow), opened)


def _with_instants(table: pa.Table, opened: ParquetFile) -> pa.Table:
    """The table of a file, in which timestamps of 96 bits are times in UTC. Spark and Hive mean them so, though nothing
    in the file says it."""
    for column in map(opened.schema.column, range(len(opened.schema))):
        if column.physical_type == "INT96" and column.path in table.column_names:
            place = table.column_names.index(column.path)
            table = table.set_column(place, column.path, table.column(place).cast(_INSTANT))
    return table


def _plain_bytes(array: pa.Array) -> int:
    """What a column takes once every row has its own text."""
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    lengths = pc.binary_length(array.dictionary).take(array.indices)
    return 4 * len(array) + (pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0)


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as the contents of a Parquet file."""
    from pyarrow import parquet

    if table.num_columns == 0:
        table = pa.table({NULLARY: pa.array([True] * table.num_rows, pa.bool_())})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def text_of(columns: list[pa.ChunkedArray], row: int) -> str:
    """A row of some columns, as it is shown."""
    return ", ".join(_spelled(array[row]) for array in columns)


def _spelled(value: pa.Scalar) -> str:
    try:
        return repr(value.as_py())
    except UnicodeDecodeError as error:
        return repr(error.object.decode("utf-8", "backslashreplace"))


_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called whose column has no value."""


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files in a folder and below it, in natural order; names that begin with `_` or `.` are hidden. No
    link may lead out. Raises ElastalogError if there is none."""
    below = (path.relative_to(folder) for path in folder.rglob("*.parquet") if path.is_file())
    shown = (p for p in below if not any(name.startswith((".", "_")) and "=" not in name for name in p.parts))
    found = [resolve_under(folder, str(part)) for part in shown]
    if not found:
        raise error("E0515.empty", location=folder, folder=folder)
    return sorted(found, key=lambda path: [natural_order(Path(name)) for name in path.parts])


def with_columns_of_folders(schema: Schema, table: pa.Table, folder: Path, part: Path) -> pa.Table:
    """The table of a part, with columns of the relation whose values are in the names of the folders around it."""
    for name in part.relative_to(folder).parent.parts:
        key, mark, text = name.partition("=")
        column = next((column for column in schema.columns if column.name.casefold() == unquote(key).casefold()), None)
        if mark and column is not None and unquote(key) not in table.column_names:
            value = pa.scalar(None if text == _NULL else unquote(text), pa.string())
            values: pa.Array = pa.repeat(value, table.num_rows)
            if column.base is not Base.SYMBOL and column.record is None:
                values = _numbers(values, schema.arrow().field(column.name).type)
            table = table.append_column(column.name, values)
    return table


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The numbers that texts are; the texts themselves if one is not a number, and they are refused later."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return texts
