"""Tables of the Spark catalogue as streams of updates: what is appended to one is applied.

A table is about the relation that it is named after, or has a column `relation`. Its rows are changes in both cases;
see `elastalog.pipeline.streams.changes`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Unpack

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest
from elastalog.pipeline.spark.applying import StreamHandle, StreamOptions, Updatable
from elastalog.pipeline.spark.refusals import reading
from elastalog.pipeline.spark.streams import apply_updates
from elastalog.pipeline.streams.changes import relation_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = ("step", "epoch", "batch")
"""Columns that say which update a row belongs to; the first that there is counts."""

_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_MOST_LISTED = 10


def is_table_name(text: str) -> bool:
    """Whether a text may name a table, as `edge` or `lake.graphs.edge`."""
    return _NAME.fullmatch(text) is not None


def apply_table(
    spark: SparkSession, name: str, db: Updatable, *, relation: str | None = None, **options: Unpack[StreamOptions]
) -> StreamHandle:
    """Applies what a table holds, then what is appended to it. Rows have `op` (`+` or `-`) and the columns of
    `relation`, by default the one that the table is named after; or a column `relation` and values `a1`, `a2`, ….

    Rows with the same whole number in a column `step`, `epoch` or `batch` are an epoch, in ascending order, as far as
    they arrive together; without one, every file of the table is. For the rest see `StreamOptions`."""
    require_table(spark, name)
    with reading("a stream", f"table {name}"):
        stream = spark.readStream.table(name)
    if relation is None and relation_column(stream.columns) is None:
        relation = _last_part(name)
    step = _step(stream, db, relation)
    if step is None:
        # A fact that one file inserts and a later one deletes has to be gone.
        with reading("a stream", f"table {name}"):
            stream = spark.readStream.option("maxFilesPerTrigger", 1).table(name)
    return apply_updates(stream, db, relation=relation, source=f"table:{name}", step=step, **options)


def _step(stream: DataFrame, db: Updatable, relation: str | None) -> str | None:
    schema = None if relation is None else db.schemas.get(relation)
    attributes = () if schema is None else schema.names
    return next((name for name in STEPS if name in stream.columns and name not in attributes), None)


def require_table(spark: SparkSession, name: str) -> None:
    """A diagnostic unless the catalogue has a table, or a view, of this name."""
    with reading("the catalogue", name):
        if spark.catalog.tableExists(name):
            return
    database = ".".join(re.findall(_PART, name)[:-1])
    tables = sorted(_tables(spark, database))
    near = nearest(name, tables)
    listed = ", ".join(tables[:_MOST_LISTED]) + (", …" if len(tables) > _MOST_LISTED else "")
    advice = "make the table, or name its database too; which catalogues there are is set with the Spark session"
    raise ElastalogError(
        [
            Diagnostic(
                code="E1110",
                message=f"no table `{name}` in the catalogue of Spark",
                notes=(f"there are {listed}" if tables else "there are no tables beside which it could be",),
                help=f"did you mean `{near}`?" if near else advice,
            )
        ]
    )


def _tables(spark: SparkSession, database: str) -> list[str]:
    """The names of the tables of a database, or of the current one; none if there is no such database."""
    from pyspark.errors import PySparkException

    try:
        found = spark.catalog.listTables(database or None)
    except PySparkException:
        return []
    return [f"{database}.{table.name}" if database and not table.isTemporary else table.name for table in found]


def _last_part(name: str) -> str:
    parts: list[str] = re.findall(_PART, name)
    return parts[-1].strip("`")
