"""Streams of updates: Structured Streaming hands over micro-batches, in which updates are found.

Of a folder of diff files each file is an update and its name the batch, so that not even a lost checkpoint applies one
twice. Of any other stream a micro-batch is an update, or every part of it (`parts`); its batch is Spark's number (and
what the part is) under the identity that the checkpoint gives the query. How they are applied: `applying`; tables:
`streamed_tables`.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.files.diff import TABULAR, TEXTUAL, Diff, changes_by_op, read_diff
from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import BadRows, settle
from elastalog.pipeline.spark.applying import Arrived, Arriving
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.pipeline.spark.malformed import malformed
from elastalog.pipeline.spark.parts import BySteps, Part, Parting, Whole
from elastalog.pipeline.spark.refusals import absolute, reading
from elastalog.pipeline.streams.changes import OPERATION, RELATION, numbered, read_changes, relation_column
from elastalog.relations.schema import Column, Schema, goes_by_name, places_by_name, schema_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERY_AGE = {"maxFileAge": "36500d"}
"""Left to itself Spark passes over files that are a week older than the newest it has seen."""

_BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"


def stream_of_rows(
    stream: DataFrame, schemas: Mapping[str, Schema], relation: str | None, source: str, step: str | None
) -> Arriving:
    """Rows with `op` (`+` or `-`) and the columns of `relation`; without one, a column `relation` says what a row is
    about, and `a1`, `a2`, … are the values in order. Every micro-batch is an update, or, with `step`, a column of whole
    numbers, all rows of one with the same number. `source`: the name of the stream in the log."""
    parting = Whole() if step is None else BySteps(step)
    return stream_of_parts(stream, schemas, parting, relation, source)


def stream_of_parts(
    stream: DataFrame,
    schemas: Mapping[str, Schema],
    parting: Parting,
    relation: str | None,
    source: str,
    check: Callable[[Diff, str], None] | None = None,
) -> Arriving:
    """The same for micro-batches that are taken apart in any way. `check` may refuse an update; it is told where the
    update is from."""
    read: Callable[[pa.Table, str, Any], Diff]
    named: dict[str, str] = {}
    if relation is None:
        columns, read = [name for name in stream.columns if name not in parting.columns], _mixed_diff
        _require_form(stream, [OPERATION, relation_column(stream.columns) or RELATION, *parting.columns])
    else:
        schema = schema_named(schemas, relation)
        _require_form(stream, [OPERATION, *parting.columns])
        given = _columns_of_facts(stream, schema, (OPERATION, *parting.columns))
        columns, read = [OPERATION, *schema.names], partial(_diff, schema)
        named = dict(zip(schema.names, given, strict=True))
    selected = [f"`{named.get(name, name)}` AS `{name}`" for name in (*parting.columns, *columns)]

    def checked(part: Part, pending: Any) -> Diff:
        diff = read(part.rows, part.place, pending)
        if check is not None:
            check(diff, part.place)
        return diff

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        # What values of a declared type become, the declaration says.
        rows = frame_to_arrow(batch.selectExpr(*selected), whole=None if relation is None else parting.columns)
        identity = f"{source}:{batch.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}"
        return [Arrived(identity, part.batch, partial(checked, part)) for part in parting.parts(rows, number)]

    return Arriving(stream, updates)


def stream_of_diff_files(spark: SparkSession, folder: str | os.PathLike[str], files_at_once: int | None) -> Arriving:
    """The diff files that appear in a folder, each an update. Those that Spark finds together come in natural order of
    their names; with `files_at_once`, it takes no more at a time, the oldest first."""
    reader = spark.readStream.options(**EVERY_AGE).format("binaryFile").option("pathGlobFilter", "[!._]*")
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

    return Arriving(stream, updates)


def change_feed(
    spark: SparkSession, folder: str | os.PathLike[str], relation: str, *, stream: bool = False
) -> DataFrame:
    """The change feed of a relation: columns `op`, those of the relation, `epoch`. As a stream, with `stream`."""
    path = absolute(Path(folder) / relation)
    with reading("a change feed", path):
        known = spark.read.parquet(path)
    if not stream:
        return known
    return spark.readStream.options(**EVERY_AGE).schema(known.schema).parquet(path)


def _diff(schema: Schema, table: pa.Table, place: str, pending: Any) -> Diff:
    """The facts to insert and those to delete."""
    operation = table.column(0)
    known = pc.is_in(operation, value_set=pa.array(["+", "-"]))
    if not pending.keeps_bad and not pc.all(known).as_py():
        strange = table.filter(pc.invert(known)).column(0)[0].as_py()
        raise malformed(f"{place} has `{strange}` in column `op`, not `+` or `-`")
    wanted = Schema(schema.name, (Column(OPERATION, Base.SYMBOL), *schema.columns))
    facts, bad = read_parquet_table(wanted, table, place, (OPERATION,))
    if not pending.keeps_bad:
        settle(BadRows(), schema.name, [place], facts.num_rows, bad)
    return changes_by_op(schema, facts, bad, place)


def _mixed_diff(table: pa.Table, place: str, pending: Any) -> Diff:
    """The same for rows that say which relation they are about."""
    return read_changes(numbered(table), pending.schemas, None, place, keep_bad=pending.keeps_bad)


def _read_file(path: Path, content: Callable[[], bytes], pending: Any) -> Diff:
    """The changes of a file. Of one that is not on this machine a copy is read; its name tells the relation and the
    format."""
    if path.exists():
        return read_diff(path, pending.schemas, pending.schemas_with, keep_bad=pending.keeps_bad)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / re.sub(r".*/", "", str(path))
        copy.write_bytes(content())
        return read_diff(copy, pending.schemas, pending.schemas_with, keep_bad=pending.keeps_bad)


def _content(batch: DataFrame, uri: str) -> bytes:
    return bytes(batch.filter(batch.path == uri).first().content)  # type: ignore[union-attr]  # it is in the batch


def _columns_of_facts(stream: DataFrame, schema: Schema, others: Sequence[str]) -> list[str]:
    """The columns of a stream that hold the values of facts, in order: by name, and then there may be others; by
    position if none has the name of an attribute and there are as many."""
    rest = [name for name in stream.columns if name not in others]
    if len(rest) == schema.arity and not goes_by_name(schema.names, rest):
        return rest
    places = places_by_name(schema.names, rest)
    missing = [name for name, place in zip(schema.names, places, strict=True) if place is None]
    if missing:
        raise _no_columns(stream, missing)
    return [rest[place] for place in places if place is not None]


def _no_columns(stream: DataFrame, missing: Sequence[str]) -> ElastalogError:
    return malformed(f"the stream has no column {', '.join(f'`{name}`' for name in missing)}", stream)


def _require_form(stream: DataFrame, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in stream.columns]
    if missing:
        raise _no_columns(stream, missing)
    if not stream.isStreaming:
        raise malformed("the DataFrame is no stream: use `spark.readStream`, or `db.apply`")
    kind = dict(stream.dtypes)[OPERATION]
    if kind.split(" ")[0] != "string":
        raise malformed(f"column `op` is {kind}, not string")
