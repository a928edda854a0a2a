"""Relations out through Spark: DataFrames, and from these Parquet, CSV, tables and databases.

Relations in files of words, those of a store and those that tasks have derived, are read and decoded by tasks, a share
each: nothing passes through the driver, which only says which files they are. They are linked into the workplace first
(copied, at an address), since a DataFrame is read when it is used, and by then their owner may have removed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, assert_never, get_args

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.rows import merged
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import TextFile, TextFiles
from elastalog.backends.spark.word_files import FiledRelation, WordFile
from elastalog.diagnostics.arguments import require_one_of, require_path
from elastalog.folders.addresses import inside, name_in
from elastalog.folders.files import files_at
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.pipeline.spark.frames import absolute, arrow_fields, arrow_to_frame, decoded, frame_of_shares, writing
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.facts import Relation
from elastalog.relations.meanings import Entries
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def filed_relation(
    spark: SparkSession, schema: Schema, filed: FiledRelation, dictionary: Dictionary, annotations: bool = False
) -> DataFrame:
    """The facts of a relation that tasks have derived, and maintained, as they are now."""
    folder = new_folder(spark, "frame")
    base, changes = (tuple(_kept(file, folder) for file in files if file.rows) for files in (filed.base, filed.changes))
    routing = FiledRelation(base).routing
    has_texts = any(column.base is Base.SYMBOL for column in schema.columns)
    texts = TextFiles(folder, dictionary).all() if has_texts else ()
    fields = arrow_fields(schema, annotations)
    read = partial(
        _share, schema, FiledRelation(base, changes), routing, texts, dictionary.wide.patterns_from(0), list(fields)
    )
    return frame_of_shares(spark, 1 if routing is None else routing.shares, read, fields)


def _kept(file: WordFile, folder: str) -> WordFile:
    path = inside(folder, name_in(file.path))
    files_at(folder).copy(file.path, path)
    return replace(file, path=path)


def _share(
    schema: Schema,
    filed: FiledRelation,
    routing: Routing | None,
    texts: tuple[TextFile, ...],
    patterns: np.ndarray,
    names: list[str],
    share: int,
) -> Iterator[pa.Table]:
    """What a task does."""
    facts = merged(*filed.read(max(1, schema.arity), routing, share))
    known = [Entries(file.first, file.last, file.read) for file in texts]
    return decoded(schema, facts, names, known, [Entries(0, len(patterns), lambda: patterns)])


SinkKind = Literal["parquet", "orc", "csv", "json", "jdbc", "table"]
Mode = Literal["overwrite", "append", "error", "errorifexists", "ignore"]

_CSV = {"emptyValue": "", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Left to itself Spark strips texts, writes a backslash before a quote, and two quotes for an empty text."""


def relation_to_frame(spark: SparkSession, relation: Relation, annotations: bool = False) -> DataFrame:
    """The facts of a relation, as they are now, as a DataFrame; with `annotations`, columns `@level` and `@count`
    follow. Facts that tasks keep in files do not pass through the driver, unless they have records."""
    has_records = any(column.base is Base.RECORD for column in relation.schema.columns)
    filed = None if has_records else relation.filed(annotations)
    if filed is not None:
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
