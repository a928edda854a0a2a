"""Tables of the Spark catalogue as streams of updates: what is appended to one is applied.

A table is about the relation that it is named after, or has a column `relation`. Its rows are changes in both cases;
see `elastalog.pipeline.streams.changes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.files.diff import Diff
from elastalog.pipeline.spark.applying import Arriving
from elastalog.pipeline.spark.malformed import malformed
from elastalog.pipeline.spark.parts import ByFiles, BySteps, Whole, with_files
from elastalog.pipeline.spark.refusals import reading
from elastalog.pipeline.spark.streams import EVERY_AGE, stream_of_parts
from elastalog.pipeline.streams.changes import named_relation
from elastalog.relations.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = ("step", "epoch", "batch")
"""Columns that say which update a row belongs to; the first that there is counts."""

_ORDERED = (
    f"give the table a column `{'`, `'.join(STEPS[:-1])}` or `{STEPS[-1]}`: rows with the same number there are an"
    " update, in ascending order"
)
_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_MOST_LISTED = 10
_MOST_BYTES = 1 << 28
"""Files of a table that are taken at a time, all rows of which are in the driver then; at least one."""


def is_table_name(text: str) -> bool:
    """Whether a text may name a table, as `edge` or `lake.graphs.edge`."""
    return _NAME.fullmatch(text) is not None


def stream_of_table(
    spark: SparkSession, name: str, schemas: Mapping[str, Schema], relation: str | None = None
) -> Arriving:
    """What a table holds, then what is appended to it. Rows are about `relation`, by default the one that the table is
    named after; or a column `relation` says so. Those with the same number in a column of `STEPS` are an update;
    without one, every file of the table is, or every micro-batch where Spark does not tell files apart."""
    require_table(spark, name)
    stream = _table_stream(spark, name, {})
    if relation is None:
        relation = _relation_of(name, stream.columns, schemas)
    step = _step(stream, schemas, relation)
    source = f"table:{name}"
    if step is not None:
        return stream_of_parts(stream, schemas, BySteps(step), relation, source)
    # A fact that one file inserts and a later one deletes has to be gone, however many files come together.
    known = with_files(_table_stream(spark, name, {"maxBytesPerTrigger": str(_MOST_BYTES)}))
    if known is not None:
        return stream_of_parts(known, schemas, ByFiles(), relation, source)
    # One file at a time is not promised, and not every kind of table knows the option.
    stream = _table_stream(spark, name, {"maxFilesPerTrigger": "1"})
    return stream_of_parts(stream, schemas, Whole(), relation, source, _require_order)


def _table_stream(spark: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    with reading("a stream", f"table {name}"):
        return spark.readStream.options(**EVERY_AGE, **options).table(name)


def _relation_of(name: str, columns: Sequence[str], schemas: Mapping[str, Schema]) -> str | None:
    """The relation that a table is named after; None if a column, which is no attribute of that, names relations."""
    last = _last_part(name)
    return last if named_relation(columns, schemas.get(last)) is None else None


def _require_order(diff: Diff, place: str) -> None:
    """A diagnostic if a fact comes and goes in an update, which may be several that have arrived together."""
    for name in diff.inserted.keys() & diff.deleted.keys():
        inserted, deleted = diff.inserted[name], diff.deleted[name]
        if inserted.num_columns:
            both = inserted.join(deleted, inserted.column_names, join_type="left semi").slice(0, 1).to_pylist()
        else:  # with rows, but nothing to join by
            both = [{}] if inserted.num_rows and deleted.num_rows else []
        for fact in both:
            text = f"{name}({', '.join(map(repr, fact.values()))})"
            raise malformed(f"{place} inserts and deletes {text}, and nothing says which comes last", advice=_ORDERED)


def _step(stream: DataFrame, schemas: Mapping[str, Schema], relation: str | None) -> str | None:
    schema = None if relation is None else schemas.get(relation)
    attributes = () if schema is None else schema.names
    return next((name for name in STEPS if name in stream.columns and name not in attributes), None)


def require_table(spark: SparkSession, name: str) -> None:
    """A diagnostic unless the catalogue has a table, or a view, of this name."""
    with reading("the catalogue", name):
        if spark.catalog.tableExists(name):
            return
    database = ".".join(re.findall(_PART, name)[:-1])
    tables = sorted(_tables(spark, database))
    listed = ", ".join(tables[:_MOST_LISTED]) + (", …" if len(tables) > _MOST_LISTED else "")
    advice = "make the table, or name its database too; which catalogues there are is set with the Spark session"
    raise ElastalogError(
        [
            Diagnostic(
                code="E1110",
                message=f"no table `{name}` in the catalogue of Spark",
                notes=(f"there are {listed}" if tables else "there are no tables beside which it could be",),
                help=did_you_mean(name, tables) or advice,
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
