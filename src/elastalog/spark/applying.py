"""Streams of updates, applied to a session or to a store: every update is an epoch, once, in order, and may know which
one follows. And the change feed, what every epoch changed, as Parquet files that other Spark jobs read.

Spark may hand a micro-batch over again after a failure. Every update carries a source and a batch, which the session
remembers, and a store with the epoch itself; a known one is skipped.

The feed has a folder a relation, in it a file for every epoch that changed it; columns `op` (`+` or `-`), those of the
relation, and `epoch`. Files are named after the epoch and appear whole, so that writing an epoch again changes nothing;
`_epoch` holds the last one that is complete, and when it was committed. What a crash between a commit and its files has
left out is made up from the store.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import pyarrow as pa

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.pipeline.files.paths import replacing
from elastalog.pipeline.spark.frames import absolute
from elastalog.spark.stored_rows import with_operation
from elastalog.spark.streams import (
    WHOLE,
    Arrived,
    Arriving,
    by_steps,
    stream_of_diff_files,
    stream_of_parts,
    stream_of_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from elastalog.session import Session
    from elastalog.session.pending import PendingUpdate


class StreamOptions(TypedDict, total=False):
    """How a stream is applied.

    `checkpoint`: where Spark keeps how far it has come. `marks`: how each update prepares for the next of its
    micro-batch, `eager`, `linked` or `auto`; see `Engine.announce`. `changes`: a folder for the change feed, which
    belongs to one store. `available_now`: ends when everything there is has been applied; `interval`: how often to
    look, as `10 seconds`. `on_update`: is called after each update, in another thread, with the update: its `changes`
    and `stats`."""

    checkpoint: Required[str | os.PathLike[str]]
    marks: str
    changes: str | os.PathLike[str] | None
    available_now: bool
    interval: str | None
    on_update: Callable[[Any], None] | None


@dataclass
class StreamHandle:
    """A stream that is being applied, as a context manager that ends it. `applied` and `repeated` count updates since
    it was started. `release`: called when the stream has ended, for whatever reason."""

    applied: int = 0
    repeated: int = 0
    error: BaseException | None = None
    query: StreamingQuery | None = field(default=None, repr=False)
    release: Callable[[], None] | None = field(default=None, repr=False)

    def __enter__(self) -> StreamHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

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
            self._let_go()
            if self.error is not None:
                raise self.error from None
            raise
        if ended:
            self._let_go()
        return ended

    def stop(self) -> None:
        """Ends the stream after the update under way."""
        assert self.query is not None
        self.query.stop()
        self._let_go()

    def close(self) -> None:
        """Ends the stream, if it has not ended. A store that it has opened is free for another writer then."""
        self.stop()

    def owning(self, release: Callable[[], None]) -> StreamHandle:
        """This handle, which calls `release` as soon as the stream ends, even if no thread waits for that."""
        self.release = release
        threading.Thread(target=self._watch, name="elastalog-stream-end", daemon=True).start()
        return self

    def _watch(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        assert self.query is not None
        # Who waits is told of errors; the connection to Spark may be gone before the stream, at the end of a process.
        with suppress(PySparkException, OSError, Py4JError):
            self.query.awaitTermination()
        self._let_go()

    def _let_go(self) -> None:
        if self.release is not None:
            self.release()  # closing twice is harmless


def apply_updates(
    stream: Any,
    db: Session | str | os.PathLike[str],
    *,
    relation: str | None = None,
    source: str = "stream",
    step: str | None = None,
    **options: Unpack[StreamOptions],
) -> StreamHandle:
    """Applies a stream to a session, or to the store at a path, which is open for writing until the stream ends. Rows
    have `op` (`+` or `-`) and the columns of `relation`; without one, a column `relation` says what a row is about, and
    `a1`, `a2`, … are the values in order. Every micro-batch is an epoch, applied once; a fact that one both inserts and
    deletes is inserted. The handle is a context manager: leaving it ends the stream.

    `step`: a column of whole numbers; then all rows of a micro-batch with the same number are an epoch, in ascending
    order. `checkpoint`, `marks`, `changes`, `available_now`, `interval`, `on_update`: see `StreamOptions`."""
    parting = WHOLE if step is None else by_steps(step)
    return _applied(db, lambda known: stream_of_parts(stream, known.schemas, parting, relation, source), options)


def apply_diff_files(
    spark: Any,
    folder: str | os.PathLike[str],
    db: Session | str | os.PathLike[str],
    *,
    files_at_once: int | None = None,
    **options: Unpack[StreamOptions],
) -> StreamHandle:
    """Applies the diff files that appear in a folder, each an epoch, to a session or to the store at a path. Those that
    Spark finds together are applied in natural order of their names; with `files_at_once`, it takes no more at a time,
    the oldest first. Files must appear whole: write them elsewhere and rename them. For the rest see
    `StreamOptions`."""
    return _applied(db, lambda known: stream_of_diff_files(spark, folder, files_at_once), options)


def apply_table(
    spark: Any,
    name: str,
    db: Session | str | os.PathLike[str],
    *,
    relation: str | None = None,
    **options: Unpack[StreamOptions],
) -> StreamHandle:
    """Applies what a table of the catalogue holds, then what is appended to it, to a session or to the store at a path.
    Rows have `op` (`+` or `-`) and the columns of `relation`, by default the one that the table is named after; or a
    column `relation` and values `a1`, `a2`, ….

    Rows with the same whole number in a column `step`, `epoch` or `batch` are an epoch, in ascending order, as far as
    they arrive together; without one, every file of the table is, the oldest first. Where Spark does not tell files
    apart (a view, Iceberg) every micro-batch is one, and must not both insert and delete a fact. For the rest see
    `StreamOptions`."""
    return _applied(db, lambda known: stream_of_table(spark, name, known.schemas, relation), options)


def _applied(
    db: Session | str | os.PathLike[str], arriving: Callable[[Session], Arriving], options: StreamOptions
) -> StreamHandle:
    """Starts applying a stream. A session that is opened here is closed when the stream ends, or if it does not
    start."""
    if not isinstance(db, str | os.PathLike):
        return _start(arriving(db), db, options)
    import elastalog

    session = elastalog.open(store=db)
    try:
        return _start(arriving(session), session, options).owning(session.close)
    except BaseException:
        session.close()
        raise


def _start(arriving: Arriving, db: Session, options: StreamOptions) -> StreamHandle:
    marks, changes, on_update = options.get("marks", "none"), options.get("changes"), options.get("on_update")
    if marks != "none":
        db.engine.announce(db.update(), marks)  # a strategy that has no such marks says so now
    handle = StreamHandle()
    feed = None if changes is None else ChangeFeed(changes)
    if feed is not None:
        make_up(feed, db)
    lock = threading.Lock()

    def committed(update: PendingUpdate) -> None:
        if feed is not None and not update.stats.is_unchanged:
            feed.add(update.stats.epoch, update.stats.time, update.changes)
        if on_update is not None:
            on_update(update)

    def apply(batch: DataFrame, number: int) -> None:
        try:
            with lock:
                _apply_all(db, arriving.updates(batch, number), marks, committed, handle)
        except BaseException as error:
            handle.error = error
            raise

    place = absolute(options["checkpoint"])
    writer = arriving.stream.writeStream.foreachBatch(apply).option("checkpointLocation", place)
    interval = options.get("interval")
    if options.get("available_now"):
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        writer = _every(interval, writer)
    handle.query = writer.start()
    return handle


def _every(interval: str, writer: DataStreamWriter) -> DataStreamWriter:
    from pyspark.errors import IllegalArgumentException

    try:
        return writer.trigger(processingTime=interval)
    except (IllegalArgumentException, ValueError):
        raise error("E0612", interval=interval) from None


def _apply_all(
    db: Session,
    arrived: Sequence[Arrived],
    marks: str,
    committed: Callable[[PendingUpdate], None],
    handle: StreamHandle,
) -> None:
    ahead: PendingUpdate | None = None
    for update, following in zip(arrived, (*arrived[1:], None), strict=True):
        pending = ahead or _pending(db, update)
        ahead = None if marks == "none" or following is None else _announced(db, pending, following, marks)
        pending.commit()
        if pending.stats.is_repeated:
            handle.repeated += 1
        else:
            handle.applied += 1
            committed(pending)


def _announced(db: Session, present: PendingUpdate, following: Arrived, marks: str) -> PendingUpdate | None:
    """The following update, announced; None if it cannot be, since one of the two changes rules, or since it has an
    error, which is told in its turn."""
    if present.program is not db.program:
        return None
    try:
        upcoming = _pending(db, following)
    except ElastalogError:
        return None
    if upcoming.program is not db.program:
        return None
    db.engine.announce(upcoming, marks)
    return upcoming


def _pending(db: Session, update: Arrived) -> PendingUpdate:
    pending = db.update(update.source, update.batch)
    pending.is_compared = False  # Spark sends the same again
    if not db.engine.is_applied(update.source, update.batch):  # what it names may be gone since
        pending.take(update.read(pending))
    return pending


def make_up(feed: ChangeFeed, db: Session) -> None:
    """Writes the epochs that the session has and the feed has not. A new feed starts with the next epoch. Raises
    ElastalogError if the feed belongs to another store."""
    times = {entry.epoch: entry.timestamp for entry in db.log()}
    noted = feed.last
    if noted is None:
        feed.note(db.epoch, times[db.epoch])
        return
    last, time = noted
    # Epochs are numbered from 1 in every store: only the time of one tells whose it is. That of an epoch before the
    # retention is not known any more, and `diff` says so.
    if last > db.epoch or (time is not None and times.get(last, time) != time):
        raise error("E1112", location=feed.folder, folder=feed.folder, last=last)
    for epoch in range(last + 1, db.epoch + 1):
        changed = db.diff(epoch - 1, epoch)
        feed.add(epoch, times[epoch], changed)


_LAST = "_epoch"


class ChangeFeed:
    """The feed in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def last(self) -> tuple[int, float | None] | None:
        """The last epoch that the feed has, and when it was committed, if the feed says that; None if it has none."""
        path = self.folder / _LAST
        noted = path.read_text(encoding="ascii").split() if path.exists() else []
        return (int(noted[0]), float(noted[1]) if len(noted) > 1 else None) if noted else None

    def add(self, epoch: int, time: float, changes: Mapping[str, Any]) -> None:
        """Writes what an epoch changed, which was committed at a time."""
        from pyarrow import parquet

        for name, changed in changes.items():
            table = pa.concat_tables(list(_signed(changed, epoch)))
            if not table.num_rows:
                continue
            with replacing(self.folder / name / f"epoch-{epoch:012}.parquet") as out:
                parquet.write_table(table, out)
        self.note(epoch, time)

    def note(self, epoch: int, time: float) -> None:
        """Says that the feed has all changes until an epoch, which was committed at a time."""
        with replacing(self.folder / _LAST) as out:
            out.write(f"{epoch} {time!r}".encode())


def _signed(changed: Any, epoch: int) -> Iterator[pa.Table]:
    for sign, table in (("-", changed.deleted.to_arrow()), ("+", changed.inserted.to_arrow())):
        yield with_operation(table, [sign] * table.num_rows, [epoch] * table.num_rows)
