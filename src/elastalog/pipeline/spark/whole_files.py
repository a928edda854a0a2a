"""Files that cannot be split by lines (headers, quoted fields, JSON): one task reads a whole file with our own
reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastalog.pipeline.files.allowance import unpacked
from elastalog.pipeline.files.format import Format, Kind
from elastalog.pipeline.files.json_lines import read_json_lines
from elastalog.pipeline.files.policy import BadRow
from elastalog.pipeline.files.text import read_text
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema
from elastalog.relations.tables import table_of_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "file string, line bigint, code string, reason string, text string, facts binary"


def read_whole_files(spark: SparkSession, schema: Schema, place: str, form: Format) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of files and the bad ones with file and line."""
    files = spark.read.format("binaryFile").load(place).select("path", "content")
    found = frame_to_arrow(files.mapInArrow(_task(schema, form), _COLUMNS)).to_pylist()
    bad = [
        BadRow(row["file"], row["line"], Fault(row["code"], row["reason"]), row["text"])
        for row in found
        if row["facts"] is None
    ]
    tables = [pa.ipc.open_stream(row["facts"]).read_all() for row in found if row["facts"] is not None]
    empty = schema.arrow().empty_table()
    if not schema.columns:
        count = sum(int(row["line"]) for row in found if row["facts"] is not None)
        return table_of_columns(schema.arrow(), count, []), bad
    return pa.concat_tables([empty, *tables]), sorted(bad, key=lambda row: (row.file, row.line))


def _task(schema: Schema, form: Format) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return partial(_read_batches, schema, form)


def _read_batches(schema: Schema, form: Format, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: a row with the good facts of each file as an Arrow stream, and a row for every bad one."""
    for batch in batches:
        for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            file = path_of(path)
            data = unpacked(content, file) if form.is_gzip or content[:2] == b"\x1f\x8b" else content
            if form.kind is Kind.JSON_LINES:
                table, bad = read_json_lines(schema, data, file)
            else:
                table, bad = read_text(schema, data, file, form)
            rows: list[tuple[Any, ...]] = [
                (row.file, row.line, row.fault.code, row.fault.reason, row.text, None) for row in bad
            ]
            rows.append((file, table.num_rows, None, None, None, _stream(table)))
            columns = list(zip(*rows, strict=True))
            kinds = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.binary())
            names = ("file", "line", "code", "reason", "text", "facts")
            yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=list(names))


def _stream(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data
