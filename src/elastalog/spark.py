"""Elastalog on Spark: sessions, sources, sinks and streams.

import elastalog
import elastalog.spark

spark = elastalog.spark.session()
with elastalog.open("reach.dl", facts={"edge": elastalog.spark.parquet("edges")}, spark=spark) as db:
    db["path"].to_spark().groupBy("from").count().show()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elastalog.pipeline.spark import streams
from elastalog.pipeline.spark.session import spark_session as session
from elastalog.pipeline.spark.sinks import write_frame
from elastalog.pipeline.spark.sources import Source
from elastalog.pipeline.spark.streams import StreamHandle, apply_diff_files, change_feed

if TYPE_CHECKING:
    from elastalog.session import Session

__all__ = [
    "Source", "StreamHandle", "apply_diff_files", "apply_updates", "bad_rows", "change_feed", "csv", "facts", "jdbc",
    "json", "orc", "parquet", "session", "table", "tsv", "write",
]  # fmt: skip


def parquet(path: str, **options: str) -> Source:
    """Facts in Parquet files: a file, a folder or a pattern."""
    return Source("parquet", path, options)


def orc(path: str, **options: str) -> Source:
    """Facts in ORC files."""
    return Source("orc", path, options)


def facts(path: str, **parameters: str) -> Source:
    """Facts in text files as Soufflé writes them; `parameters` are those of `.input`: `delimiter`, `headers`,
    `rfc4180`."""
    return Source("text", path, parameters)


def tsv(path: str, **parameters: str) -> Source:
    """Facts in tab-separated files."""
    return facts(path, **parameters)


def csv(path: str, **parameters: str) -> Source:
    """Facts in comma-separated files with quoting as in RFC 4180; `headers="true"` if the first line names the
    columns."""
    return facts(path, **{"rfc4180": "true", **parameters})


def json(path: str) -> Source:
    """Facts in files of JSON lines."""
    return Source("json", path)


def jdbc(url: str, table: str, **options: str) -> Source:
    """Facts in a table of a database."""
    return Source("jdbc", url, {**options, "dbtable": table})


def table(name: str) -> Source:
    """Facts in a table or view of the Spark catalogue."""
    return Source("table", name)


def apply_updates(
    stream: Any,
    db: Session | str | os.PathLike[str],
    *,
    relation: str,
    checkpoint: str | os.PathLike[str],
    source: str = "stream",
    changes: str | os.PathLike[str] | None = None,
    available_now: bool = False,
    interval: str | None = None,
) -> StreamHandle:
    """Applies a stream to a session, or to the store at a path, which then stays open for writing while this process
    lives. Rows have `op` (`+` or `-`) and the columns of `relation`; every micro-batch is an epoch, applied once; a
    fact that one both inserts and deletes is inserted.

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
        changes=changes,
        available_now=available_now,
        interval=interval,
    )


def write(
    db: Session, relation: str, kind: Any, place: str, *, mode: Any = "error", options: Mapping[str, str] | None = None
) -> None:
    """Writes a relation as it is now: `kind` is `parquet`, `orc`, `csv`, `json`, `jdbc` or `table`."""
    write_frame(db[relation].to_spark(), kind, place, mode=mode, options=options)


def bad_rows(db: Session) -> Any:
    """A DataFrame of the rows that were set aside or skipped when the session was opened: relation, file, line, code,
    reason, text."""
    from elastalog.pipeline.spark.quarantine import bad_rows_frame

    return bad_rows_frame(db.reports)
