"""Streams of updates, applied to a session or to a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Unpack

from elastalog.pipeline.spark import streams
from elastalog.pipeline.spark.applying import StreamHandle, StreamOptions

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
    """Applies a stream to a session, or to the store at a path, which then stays open for writing while this process
    lives. Rows have `op` (`+` or `-`) and the columns of `relation`; without one, a column `relation` says what a row
    is about, and `a1`, `a2`, … are the values in order. Every micro-batch is an epoch, applied once; a fact that one
    both inserts and deletes is inserted.

    `step`: a column of whole numbers; then all rows of a micro-batch with the same number are an epoch, in ascending
    order. `checkpoint`, `marks`, `changes`, `available_now`, `interval`: see `StreamOptions`."""
    if isinstance(db, str | os.PathLike):
        import elastalog

        db = elastalog.open(store=db)
    return streams.apply_updates(stream, db, relation=relation, source=source, step=step, **options)
