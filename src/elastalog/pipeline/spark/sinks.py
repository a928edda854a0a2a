"""Relations out through Spark: DataFrames, Parquet, CSV, tables and databases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, assert_never, get_args

from elastalog.analysis.program import Base
from elastalog.diagnostics.arguments import require_one_of, require_path
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.pipeline.spark.frames import absolute, arrow_to_frame, writing
from elastalog.pipeline.spark.stored_relations import filed_relation
from elastalog.relations.facts import Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SinkKind = Literal["parquet", "orc", "csv", "json", "jdbc", "table"]
Mode = Literal["overwrite", "append", "error", "errorifexists", "ignore"]

_CSV = {"emptyValue": "", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Left to itself Spark strips texts, writes a backslash before a quote, and two quotes for an empty text."""


def relation_to_frame(spark: SparkSession, relation: Relation, annotations: bool = False) -> DataFrame:
    """The facts of a relation, as they are now, as a DataFrame; with `annotations`, columns `@level` and `@count`
    follow. Facts that tasks keep in files do not pass through the driver, unless they have records."""
    has_records = any(column.base is Base.RECORD for column in relation.schema.columns)
    filed = None if has_records else relation.filed(annotations)
    if filed is not None and any(file.rows for file in filed.base):
        return filed_relation(spark, relation.schema, filed, relation.dictionary, annotations)
    return arrow_to_frame(spark, relation.to_arrow(annotations))


def write_frame(
    frame: DataFrame,
    kind: SinkKind,
    place: str | os.PathLike[str],
    *,
    mode: Mode = "error",
    options: Mapping[str, str] | None = None,
) -> None:
    """Writes a DataFrame to a path, a table, or a database (`place` is its URL; the table is `options["dbtable"]`)."""
    require_one_of("kind", kind, get_args(SinkKind))
    require_one_of("mode", mode, get_args(Mode))
    require_path("what is written has a place", place, "give a path, the name of a table, or the URL of a database")
    place = os.fspath(place)
    if kind == "csv" and frame.columns == [NULLARY]:
        frame = frame.selectExpr(f"'{NULLARY}' AS `{NULLARY}`")  # as a text file has the only fact
    writer = frame.write.mode(mode).options(**(_CSV if kind == "csv" else {})).options(**(options or {}))
    with writing(kind, place):
        match kind:
            case "parquet" | "orc" | "csv" | "json":
                writer.format(kind).save(absolute(place))
            case "jdbc":
                writer.format("jdbc").option("url", place).save()
            case "table":
                writer.saveAsTable(place)
            case _:
                assert_never(kind)
