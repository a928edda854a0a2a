"""Streams of updates: Structured Streaming hands over micro-batches, in which updates are found.

Of a folder of diff files each file is an update and its name the batch, so that not even a lost checkpoint applies one
twice. Of any other stream a micro-batch is an update, or every step in it; its batch is Spark's number (and the step)
under the identity that the checkpoint gives the query. How they are applied: `applying`.
"""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.diff import TABULAR, TEXTUAL, Diff, read_diff
from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import Policy, settle
from elastalog.pipeline.spark.applying import Arrived, StreamHandle, Updatable, start
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.pipeline.spark.reading import absolute, reading
from elastalog.relations.schema import Schema, schema_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATION = "op"


def apply_updates(
    stream: DataFrame,
    db: Updatable,
    *,
    relation: str,
    checkpoint: str | os.PathLike[str],
    source: str = "stream",
    step: str | None = None,
    marks: str = "none",
    changes: str | os.PathLike[str] | None = None,
    available_now: bool = False,
    interval: str | None = None,
) -> StreamHandle:
    """Applies a stream to a session: rows of `op` (`+` or `-`) and the columns of a relation. Every micro-batch is an
    epoch; a fact that it both inserts and deletes is inserted.

    `step`: a column of whole numbers; then all rows of a micro-batch with the same number are an epoch, in ascending
    order. `marks`: how each prepares for the next of its micro-batch, `eager` or `linked`; see `Session.announce`.
    `checkpoint`: where Spark keeps how far it has come. `changes`: a folder for the change feed. `available_now`: ends
    when everything there is has been applied; `interval`: how often to look, as `10 seconds`."""
    schema = schema_named(db.schemas, relation)
    _require_form(stream, schema, step)
    columns = [*([] if step is None else [step]), OPERATION, *schema.names]

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        rows = frame_to_arrow(batch.select(*(f"`{name}`" for name in columns)))
        identity = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        parts = [(str(number), rows)] if step is None else _steps(schema, rows, number)
        return [Arrived(f"{source}:{identity}", name, partial(_diff, schema, part, number)) for name, part in parts]

    return start(
        stream, db, updates, checkpoint=checkpoint, marks=marks, changes=changes, available_now=available_now,
        interval=interval,
    )  # fmt: skip


def apply_diff_files(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    db: Updatable,
    *,
    checkpoint: str | os.PathLike[str],
    marks: str = "none",
    changes: str | os.PathLike[str] | None = None,
    available_now: bool = False,
    interval: str | None = None,
    files_at_once: int = 16,
) -> StreamHandle:
    """Applies the diff files that appear in a folder, each an epoch, in natural order of their names within a
    micro-batch. Files must appear whole: write them elsewhere and rename them. For the rest see `apply_updates`."""
    with reading("updates", os.fspath(folder)):
        stream = (
            spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length bigint, content binary")
            .option("maxFilesPerTrigger", files_at_once)
            .option("pathGlobFilter", "[!._]*")
            .load(absolute(folder))
            .select("path", "content")
        )
    source = f"files:{absolute(folder)}"

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        rows = sorted(
            ((Path(path_of(row.path)), row.content) for row in batch.collect()), key=lambda r: natural_order(r[0])
        )
        return [
            Arrived(source, path.name, partial(_read_file, path, content))
            for path, content in rows
            if path.suffix in TABULAR + TEXTUAL
        ]

    return start(
        stream, db, updates, checkpoint=checkpoint, marks=marks, changes=changes, available_now=available_now,
        interval=interval,
    )  # fmt: skip


def change_feed(
    spark: SparkSession, folder: str | os.PathLike[str], relation: str, *, stream: bool = False
) -> DataFrame:
    """The change feed of a relation: columns `op`, those of the relation, `epoch`. As a stream, with `stream`."""
    path = absolute(Path(folder) / relation)
    if not stream:
        return spark.read.parquet(path)
    schema = spark.read.parquet(path).schema
    return spark.readStream.schema(schema).parquet(path)


def _steps(schema: Schema, rows: pa.Table, number: int) -> list[tuple[str, pa.Table]]:
    """The rows of every step of a micro-batch, in order, and what names it."""
    steps = rows.column(0)
    if steps.null_count or not pa.types.is_integer(steps.type):
        raise ElastalogError([_wrong_form(schema, f"batch {number} has steps that are no whole numbers")])
    rest = rows.remove_column(0)
    return [(f"{number}.{step}", rest.filter(pc.equal(steps, step))) for step in sorted(pc.unique(steps).to_pylist())]


def _diff(schema: Schema, table: pa.Table, number: int, _pending: Any) -> Diff:
    """The facts to insert and those to delete."""
    operation = table.column(0)
    known = pc.is_in(operation, value_set=pa.array(["+", "-"]))
    if not pc.all(known).as_py():
        strange = table.filter(pc.invert(known)).column(0)[0].as_py()
        raise ElastalogError([_wrong_form(schema, f"batch {number} has `{strange}` in column `op`, not `+` or `-`")])
    sides = []
    for sign in ("+", "-"):
        rows = table.filter(pc.equal(operation, sign)).drop_columns([OPERATION])
        facts, bad = read_parquet_table(schema, rows, f"batch {number}")
        settle(Policy(), schema.name, [f"batch {number}"], facts.num_rows, bad)
        sides.append(facts)
    return Diff({schema.name: sides[0]}, {schema.name: sides[1]})


def _read_file(path: Path, content: bytes, pending: Any) -> Diff:
    """The changes of a file. Of one that is not on this machine a copy is read; its name tells the relation and the
    format."""
    if path.exists():
        return read_diff(path, pending.schemas, pending.schemas_with)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / re.sub(r".*/", "", str(path))
        copy.write_bytes(content)
        return read_diff(copy, pending.schemas, pending.schemas_with)


def _require_form(stream: DataFrame, schema: Schema, step: str | None) -> None:
    wanted = (OPERATION, *schema.names) if step is None else (step, OPERATION, *schema.names)
    missing = [name for name in wanted if name not in stream.columns]
    if missing:
        raise ElastalogError([_wrong_form(schema, f"the stream has no column {', '.join(f'`{n}`' for n in missing)}")])
    if not stream.isStreaming:
        raise ElastalogError([_wrong_form(schema, "the DataFrame is no stream: use `spark.readStream`, or `db.apply`")])


def _wrong_form(schema: Schema, message: str) -> Diagnostic:
    return Diagnostic(
        code="E1108",
        message=message,
        notes=(f"declared as {schema}",),
        help="a stream of updates has a column `op` of `+` and `-`, and the columns of the relation",
    )
