"""Elastalog on Spark: sessions, sources, sinks, streams and stores.

import elastalog
import elastalog.spark

spark = elastalog.spark.session()
with elastalog.open("reach.dl", facts={"edge": elastalog.spark.parquet("edges")}, spark=spark) as db:
    db["path"].to_spark().groupBy("from").count().show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elastalog.pipeline.spark.applying import StreamHandle, StreamOptions
from elastalog.pipeline.spark.sources import Source
from elastalog.pipeline.spark.streams import change_feed
from elastalog.spark.results import bad_rows, write
from elastalog.spark.sessions import session
from elastalog.spark.sources import csv, facts, jdbc, json, orc, parquet, table, tsv
from elastalog.spark.stores import init_store, read_relation
from elastalog.spark.updates import apply_diff_files, apply_table, apply_updates

if TYPE_CHECKING:
    from elastalog.spark.native.source import ElastalogSource

__all__ = [
    "ElastalogSource", "Source", "StreamHandle", "StreamOptions", "apply_diff_files", "apply_table", "apply_updates",
    "bad_rows", "change_feed", "csv", "facts", "init_store", "jdbc", "json", "orc", "parquet", "read_relation",
    "session", "table", "tsv", "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "ElastalogSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from elastalog.spark.native.source import ElastalogSource  # its base is a class of pyspark

    return ElastalogSource
