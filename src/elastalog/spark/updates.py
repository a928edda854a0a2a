"""Streams of updates, applied to a session or to a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from elastalog.pipeline.spark import streams
from elastalog.pipeline.spark.applying import StreamHandle

if TYPE_CHECKING:
    from elastalog.session import Session


def apply_updates(
    stream: Any,
    db: Session | str | os.PathLike[str],
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
    """Applies a stream to a session, or to the store at a path, which then stays open for writing while this process
    lives. Rows have `op` (`+` or `-`) and the columns of `relation`; every micro-batch is an epoch, applied once; a
    fact that one both inserts and deletes is inserted.

    `step`: a column of whole numbers; then all rows of a micro-batch with the same number are an epoch, in ascending
    order. `marks`: how each prepares for the next of its micro-batch, `eager` or `linked`; see `Session.announce`.
    `checkpoint`: where Spark keeps how far it has come. `changes`: a folder for the change feed. `available_now`: ends
    when everything there is has been applied; `interval`: how often to look, as `10 seconds`."""
    if isinstance(db, str | os.PathLike):
        import elastalog

        db = elastalog.open(store=db)
    return streams.apply_updates(
        stream,
        db,
        relation=relation,
        checkpoint=checkpoint,
        source=source,
        step=step,
        marks=marks,
        changes=changes,
        available_now=available_now,
        interval=interval,
    )
