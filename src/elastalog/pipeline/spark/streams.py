"""Streams of updates: Structured Streaming hands over micro-batches, in which updates are found.

Of a folder of diff files each file is an update and its name the batch, so that not even a lost checkpoint applies one
twice. Of any other stream a micro-batch is an update, or every step in it; its batch is Spark's number (and the step)
under the identity that the checkpoint gives the query. How they are applied: `applying`; tables: `streamed_tables`.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.diff import TABULAR, TEXTUAL, Diff, read_diff
from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import Policy, settle
from elastalog.pipeline.spark.applying import Arrived, StreamHandle, StreamOptions, Updatable, start
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.pipeline.spark.refusals import absolute, reading
from elastalog.pipeline.streams.changes import OPERATION, RELATION, numbered, read_changes, relation_column
from elastalog.relations.schema import Schema, schema_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"


def apply_updates(
    stream: DataFrame,
    db: Updatable,
    *,
    relation: str | None = None,
    source: str = "stream",
    step: str | None = None,
    **options: Unpack[StreamOptions],
) -> StreamHandle:
    """Applies a stream to a session. Rows have `op` (`+` or `-`) and the columns of `relation`; without one, a column
    `relation` says what a row is about, and `a1`, `a2`, … are the values in order. Every micro-batch is an epoch; a
    fact that it both inserts and deletes is inserted.

    `step`: a column of whole numbers; then all rows of a micro-batch with the same number are an epoch, in ascending
    order. `source`: the name of the stream in the log. For the rest see `StreamOptions`."""
    read: Callable[[pa.Table, int, Any], Diff]
    if relation is None:
        columns, read = [name for name in stream.columns if name != step], _mixed_diff
        _require_form(stream, [OPERATION, relation_column(stream.columns) or RELATION], step)
    else:
        schema = schema_named(db.schemas, relation)
        columns, read = [OPERATION, *schema.names], partial(_diff, schema)
        _require_form(stream, columns, step)
    selected = [f"`{name}`" for name in ([] if step is None else [step]) + columns]

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        rows = frame_to_arrow(batch.select(*selected))
        identity = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        parts = [(str(number), rows)] if step is None else _steps(rows, number)
        return [Arrived(f"{source}:{identity}", name, partial(read, part, number)) for name, part in parts]

    return start(stream, db, updates, **options)


def apply_diff_files(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    db: Updatable,
    *,
    files_at_once: int | None = None,
    **options: Unpack[StreamOptions],
) -> StreamHandle:
    """Applies the diff files that appear in a folder, each an epoch. Those that Spark finds together are applied
    in natural order of their names; with `files_at_once`, it takes no more at a time, the oldest first. Files must
    appear whole: write them elsewhere and rename them. For the rest see `StreamOptions`."""
    reader = spark.readStream.format("binaryFile").option("pathGlobFilter", "[!._]*")
    if files_at_once is not None:
        reader = reader.option("maxFilesPerTrigger", files_at_once)
    with reading("updates", os.fspath(folder)):
        stream = reader.schema(_BINARY_FILE).load(absolute(folder)).select("path", "content")
    source = f"files:{absolute(folder)}"

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        uris = {Path(path_of(row.path)): row.path for row in batch.select("path").collect()}
        return [
            Arrived(source, path.name, partial(_read_file, path, partial(_content, batch, uris[path])))
            for path in sorted(uris, key=natural_order)
            if path.suffix in TABULAR + TEXTUAL
        ]

    return start(stream, db, updates, **options)


def change_feed(
    spark: SparkSession, folder: str | os.PathLike[str], relation: str, *, stream: bool = False
) -> DataFrame:
    """The change feed of a relation: columns `op`, those of the relation, `epoch`. As a stream, with `stream`."""
    path = absolute(Path(folder) / relation)
    if not stream:
        return spark.read.parquet(path)
    schema = spark.read.parquet(path).schema
    return spark.readStream.schema(schema).parquet(path)


def _steps(rows: pa.Table, number: int) -> list[tuple[str, pa.Table]]:
    """The rows of every step of a micro-batch, in order, and what names it."""
    steps = rows.column(0)
    if steps.null_count or not pa.types.is_integer(steps.type):
        raise ElastalogError([_wrong_form(f"batch {number} has steps that are no whole numbers")])
    rest = rows.remove_column(0)
    return [(f"{number}.{step}", rest.filter(pc.equal(steps, step))) for step in sorted(pc.unique(steps).to_pylist())]


def _diff(schema: Schema, table: pa.Table, number: int, _pending: Any) -> Diff:
    """The facts to insert and those to delete."""
    operation = table.column(0)
    known = pc.is_in(operation, value_set=pa.array(["+", "-"]))
    if not pc.all(known).as_py():
        strange = table.filter(pc.invert(known)).column(0)[0].as_py()
        raise ElastalogError([_wrong_form(f"batch {number} has `{strange}` in column `op`, not `+` or `-`")])
    sides = []
    for sign in ("+", "-"):
        rows = table.filter(pc.equal(operation, sign)).drop_columns([OPERATION])
        facts, bad = read_parquet_table(schema, rows, f"batch {number}")
        settle(Policy(), schema.name, [f"batch {number}"], facts.num_rows, bad)
        sides.append(facts)
    return Diff({schema.name: sides[0]}, {schema.name: sides[1]})


def _mixed_diff(table: pa.Table, number: int, pending: Any) -> Diff:
    """The same for rows that say which relation they are about."""
    return read_changes(numbered(table), pending.schemas, RELATION, f"batch {number}")


def _read_file(path: Path, content: Callable[[], bytes], pending: Any) -> Diff:
    """The changes of a file. Of one that is not on this machine a copy is read; its name tells the relation and the
    format."""
    if path.exists():
        return read_diff(path, pending.schemas, pending.schemas_with)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / re.sub(r".*/", "", str(path))
        copy.write_bytes(content())
        return read_diff(copy, pending.schemas, pending.schemas_with)


def _content(batch: DataFrame, uri: str) -> bytes:
    return bytes(batch.filter(batch.path == uri).first().content)  # type: ignore[union-attr]  # it is in the batch


def _require_form(stream: DataFrame, wanted: Sequence[str], step: str | None) -> None:
    missing = [name for name in (*([] if step is None else [step]), *wanted) if name not in stream.columns]
    if missing:
        raise ElastalogError([_wrong_form(f"the stream has no column {', '.join(f'`{n}`' for n in missing)}", stream)])
    if not stream.isStreaming:
        raise ElastalogError([_wrong_form("the DataFrame is no stream: use `spark.readStream`, or `db.apply`")])


def _wrong_form(message: str, stream: DataFrame | None = None) -> Diagnostic:
    return Diagnostic(
        code="E1108",
        message=message,
        notes=() if stream is None else (f"its columns are {', '.join(stream.columns)}",),
        help="a stream of updates has a column `op` of `+` and `-`, and the columns of the relation; or a column"
        " `relation` and the values in `a1`, `a2`, …",
    )
