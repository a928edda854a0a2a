"""Elastalog on Spark: sessions, sources, sinks, streams and stores.

import elastalog
import elastalog.spark

spark = elastalog.spark.session()
with elastalog.open("reach.dl", facts={"edge": elastalog.spark.parquet("edges")}, spark=spark) as db:
    db["path"].to_spark().groupBy("from").count().show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastalog.pipeline.spark.sources import Source
    from elastalog.spark.applying import StreamHandle, StreamOptions, apply_diff_files, apply_table, apply_updates
    from elastalog.spark.data_source import ElastalogSource
    from elastalog.spark.sources import csv, facts, jdbc, json, orc, parquet, table, tsv
    from elastalog.spark.stores import bad_rows, init_store, read_relation, session, write
    from elastalog.spark.streams import change_feed

# Imported when they are asked for: every task and every plan of the data source begins with this package.
_HOMES = {
    "elastalog.pipeline.spark.sources": ("Source",),
    "elastalog.spark.applying": ("StreamHandle", "StreamOptions", "apply_diff_files", "apply_table", "apply_updates"),
    "elastalog.spark.streams": ("change_feed",),
    "elastalog.spark.data_source": ("ElastalogSource",),
    "elastalog.spark.sources": ("csv", "facts", "jdbc", "json", "orc", "parquet", "table", "tsv"),
    "elastalog.spark.stores": ("bad_rows", "init_store", "read_relation", "session", "write"),
}

__all__ = [
    "ElastalogSource", "Source", "StreamHandle", "StreamOptions", "apply_diff_files", "apply_table", "apply_updates",
    "bad_rows", "change_feed", "csv", "facts", "init_store", "jdbc", "json", "orc", "parquet", "read_relation",
    "session", "table", "tsv", "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
