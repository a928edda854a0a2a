"""Streams of updates: Structured Streaming hands over micro-batches, each becomes an epoch, once.

Spark may hand a batch over again after a failure. Every update carries a source and a batch, which the session
remembers, and a store with the epoch itself; a known one is skipped. Of a folder of diff files each file is an update
and its name the batch, so that not even a lost checkpoint applies one twice. Of any other stream a micro-batch is an
update; its batch is Spark's number under the identity that the checkpoint gives the query.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.diff import TABULAR, TEXTUAL, read_diff
from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import Policy, settle
from elastalog.pipeline.spark.feed import ChangeFeed
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.pipeline.spark.reading import absolute, reading
from elastalog.relations.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OPERATION = "op"


class Updatable(Protocol):
    """What a stream needs of a session."""

    @property
    def schemas(self) -> Mapping[str, Schema]: ...
    @property
    def epoch(self) -> int: ...

    def apply(self, inserted: Any = None, deleted: Any = None, *, source: Any = None, batch: Any = None) -> Any: ...

    def diff(self, first: int, last: int) -> Mapping[str, Any]: ...


@dataclass
class StreamHandle:
    """A stream that is being applied. `applied` and `repeated` count updates since it was started."""

    applied: int = 0
    repeated: int = 0
    error: BaseException | None = None
    query: StreamingQuery | None = field(default=None, repr=False)

    def wait(self, seconds: int | None = None) -> bool:
        """Waits until the stream ends; False if it has not within the time. An error of an update is raised here."""
        from pyspark.errors import StreamingQueryException

        assert self.query is not None
        try:
            ended = True
            if seconds is None:
                self.query.awaitTermination()
            else:
                ended = bool(self.query.awaitTermination(seconds))
        except StreamingQueryException:
            if self.error is not None:
                raise self.error from None
            raise
        return ended

    def stop(self) -> None:
        """Ends the stream after the update under way."""
        assert self.query is not None
        self.query.stop()


def apply_updates(
    stream: DataFrame,
    db: Updatable,
    *,
    relation: str,
    checkpoint: str | os.PathLike[str],
    source: str = "stream",
    changes: str | os.PathLike[str] | None = None,
    available_now: bool = False,
    interval: str | None = None,
) -> StreamHandle:
    """Applies a stream to a session: rows of `op` (`+` or `-`) and the columns of a relation. Every micro-batch is an
    epoch; a fact that it both inserts and deletes is inserted.

    `checkpoint`: where Spark keeps how far it has come. `changes`: a folder for the change feed. `available_now`: ends
    when everything there is has been applied; `interval`: how often to look, as `10 seconds`."""
    schema = _schema(db, relation)
    _require_form(stream, schema)
    columns = [OPERATION, *schema.names]

    def update(batch: DataFrame, number: int) -> list[_Update]:
        inserted, deleted = _split(schema, frame_to_arrow(batch.select(*(f"`{name}`" for name in columns))), number)
        identity = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        return [_Update({relation: inserted}, {relation: deleted}, f"{source}:{identity}", str(number))]

    return _start(stream, db, update, checkpoint, changes, available_now, interval)


def apply_diff_files(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    db: Updatable,
    *,
    checkpoint: str | os.PathLike[str],
    changes: str | os.PathLike[str] | None = None,
    available_now: bool = False,
    interval: str | None = None,
    files_at_once: int = 16,
) -> StreamHandle:
    """Applies the diff files that appear in a folder, each an epoch, in natural order of their names within a
    micro-batch. Files must appear whole: write them elsewhere and rename them."""
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

    def updates(batch: DataFrame, number: int) -> list[_Update]:
        rows = sorted(
            ((Path(path_of(row.path)), row.content) for row in batch.collect()), key=lambda r: natural_order(r[0])
        )
        found = []
        for path, content in rows:
            if path.suffix in TABULAR + TEXTUAL:
                diff = read_diff(path, db.schemas) if path.exists() else _read_copy(path, content, db.schemas)
                found.append(_Update(diff.inserted, diff.deleted, source, path.name))
        return found

    return _start(stream, db, updates, checkpoint, changes, available_now, interval)


@dataclass(frozen=True, slots=True)
class _Update:
    inserted: Mapping[str, pa.Table]
    deleted: Mapping[str, pa.Table]
    source: str
    batch: str


def _start(
    stream: DataFrame,
    db: Updatable,
    updates: Callable[[DataFrame, int], list[_Update]],
    checkpoint: str | os.PathLike[str],
    changes: str | os.PathLike[str] | None,
    available_now: bool,
    interval: str | None,
) -> StreamHandle:
    handle = StreamHandle()
    feed = None if changes is None else ChangeFeed(changes)
    if feed is not None:
        make_up(feed, db)
    lock = threading.Lock()

    def apply(batch: DataFrame, number: int) -> None:
        try:
            with lock:
                for update in updates(batch, number):
                    _apply(db, update, feed, handle)
        except BaseException as error:
            handle.error = error
            raise

    writer = stream.writeStream.foreachBatch(apply).option("checkpointLocation", absolute(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        writer = writer.trigger(processingTime=interval)
    handle.query = writer.start()
    return handle


def _apply(db: Updatable, update: _Update, feed: ChangeFeed | None, handle: StreamHandle) -> None:
    before = db.epoch
    changed = db.apply(update.inserted, update.deleted, source=update.source, batch=update.batch)
    if db.epoch == before:
        handle.repeated += 1
        return
    handle.applied += 1
    if feed is not None:
        feed.add(db.epoch, changed)


def make_up(feed: ChangeFeed, db: Updatable) -> None:
    """Writes the epochs that the session has and the feed has not. A new feed starts with the next epoch."""
    last = feed.last
    if last is None:
        feed.begin(db.epoch)
        return
    for epoch in range(last + 1, db.epoch + 1):
        feed.add(epoch, db.diff(epoch - 1, epoch))


def change_feed(
    spark: SparkSession, folder: str | os.PathLike[str], relation: str, *, stream: bool = False
) -> DataFrame:
    """The change feed of a relation: columns `op`, those of the relation, `epoch`. As a stream, with `stream`."""
    path = absolute(Path(folder) / relation)
    if not stream:
        return spark.read.parquet(path)
    schema = spark.read.parquet(path).schema
    return spark.readStream.schema(schema).parquet(path)


def _split(schema: Schema, table: pa.Table, number: int) -> tuple[pa.Table, pa.Table]:
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
    return sides[0], sides[1]


def _read_copy(path: Path, content: bytes, schemas: Mapping[str, Schema]) -> Any:
    """The changes of a file that is not on this machine; its name tells the relation and the format."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / re.sub(r".*/", "", str(path))
        copy.write_bytes(content)
        return read_diff(copy, schemas)


def _schema(db: Updatable, relation: str) -> Schema:
    if relation not in db.schemas:
        advice = "the program declares: " + ", ".join(db.schemas)
        raise ElastalogError([Diagnostic("E0606", f"there is no relation `{relation}`", help=advice)])
    return db.schemas[relation]


def _require_form(stream: DataFrame, schema: Schema) -> None:
    missing = [name for name in (OPERATION, *schema.names) if name not in stream.columns]
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
