"""Streams of updates, applied to a session or to a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from elastalog.pipeline.spark.applying import StreamHandle, StreamOptions, start
from elastalog.pipeline.spark.streams import stream_of_diff_files, stream_of_rows, stream_of_table

if TYPE_CHECKING:
    from elastalog.session import Session


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
    with _opened(db) as (session, started):
        return started(start(stream_of_rows(stream, session.schemas, relation, source, step), session, **options))


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
    with _opened(db) as (session, started):
        return started(start(stream_of_diff_files(spark, folder, files_at_once), session, **options))


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
    with _opened(db) as (session, started):
        return started(start(stream_of_table(spark, name, session.schemas, relation), session, **options))


@contextmanager
def _opened(db: Session | str | os.PathLike[str]) -> Iterator[tuple[Session, Callable[[StreamHandle], StreamHandle]]]:
    """The session to apply updates to, and what becomes of the handle. A session that is opened here is closed when the
    stream ends, or if it does not start."""
    if not isinstance(db, str | os.PathLike):
        yield db, lambda handle: handle
        return
    import elastalog

    session = elastalog.open(store=db)
    try:
        yield session, lambda handle: handle.owning(session.close)
    except BaseException:
        session.close()
        raise
