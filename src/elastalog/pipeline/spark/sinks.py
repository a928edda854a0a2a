"""Relations out through Spark, as DataFrames.

Relations in files of words, those of a store and those that tasks have derived, are read and decoded by tasks, a share
each: nothing passes through the driver, which only says which files they are. They are linked into the workplace first
(copied, at an address), since a DataFrame is read when it is used, and by then their owner may have removed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.rows import merged
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import TextFile, TextFiles
from elastalog.backends.spark.word_files import FiledRelation, WordFile
from elastalog.folders.addresses import inside, name_in
from elastalog.folders.files import files_at
from elastalog.pipeline.spark.frames import arrow_fields, arrow_to_frame, decoded, frame_of_shares
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


def relation_to_frame(spark: SparkSession, relation: Relation, annotations: bool = False) -> DataFrame:
    """The facts of a relation, as they are now, as a DataFrame; with `annotations`, columns `@level` and `@count`
    follow. Facts that tasks keep in files do not pass through the driver, unless they have records."""
    has_records = any(column.base is Base.RECORD for column in relation.schema.columns)
    filed = None if has_records else relation.filed(annotations)
    if filed is not None:
        return filed_relation(spark, relation.schema, filed, relation.dictionary, annotations)
    return arrow_to_frame(spark, relation.to_arrow(annotations))
