"""Relations in files of words as DataFrames: those of a store, and those that tasks have derived.

Spark reads the files and decodes them; the driver only says which they are. They are linked into the workplace first
(copied, at an address), since a DataFrame is read when it is used, and by then their owner may have removed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.spark.text_files import TextFiles
from elastalog.folders.addresses import inside, name_in
from elastalog.folders.files import files_at
from elastalog.pipeline.spark.decoding import COUNT, LEVEL, PATTERNS, Numbered, decoded
from elastalog.pipeline.spark.parquet_files import parquet_frame
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from elastalog.backends.protocol import FactFile, FactFiles


class Parts(Protocol):
    """See `storage.parts.RelationParts`."""

    @property
    def facts(self) -> str: ...
    @property
    def changes(self) -> str | None: ...
    @property
    def symbols(self) -> Sequence[Numbered]: ...
    @property
    def patterns(self) -> Sequence[Numbered]: ...


def stored_relation(spark: SparkSession, schema: Schema, parts: Parts, annotations: bool = False) -> DataFrame:
    """The facts of a relation of a store, whose files have been set aside already."""
    keys = _keys(schema)
    columns = pa.schema([(name, pa.int32()) for name in (*keys, LEVEL, COUNT)])
    words = parquet_frame(spark, [parts.facts], columns)
    if parts.changes is not None:
        words = _after(words, parquet_frame(spark, [parts.changes], columns), keys)
    return decoded(spark, schema, words, parts.symbols, parts.patterns, annotations)


def filed_relation(
    spark: SparkSession, schema: Schema, filed: FactFiles, dictionary: Dictionary, annotations: bool = False
) -> DataFrame:
    """The facts of a relation that tasks have derived, and maintained, as they are now."""
    from pyspark.sql import functions as sql

    folder = new_folder(spark, "frame")
    keys = _keys(schema)
    words = _read(spark, filed.base, folder, keys)
    changes = [
        _read(spark, [file], folder, keys).withColumn("@order", sql.lit(i))
        for i, file in enumerate(filed.changes)
        if file.rows
    ]
    if changes:
        state = sql.max(sql.struct("@order", LEVEL, COUNT)).alias("@last")
        last = reduce(lambda one, other: one.union(other), changes).groupBy(*keys).agg(state)
        words = _after(words, last.select(*keys, f"`@last`.`{LEVEL}`", f"`@last`.`{COUNT}`"), keys)
    bases = {column.base for column in schema.columns}
    texts = TextFiles(folder, dictionary).all() if Base.SYMBOL in bases else ()
    numbers = _in_file(folder, dictionary.wide.patterns_from(0)) if bases - {Base.SYMBOL} else ()
    return decoded(spark, schema, words, texts, numbers, annotations)


@dataclass(frozen=True, slots=True)
class _Entries:
    first: int
    path: str


def _in_file(folder: str, patterns: np.ndarray) -> tuple[Numbered, ...]:
    from pyarrow import parquet

    if not len(patterns):
        return ()
    path = inside(folder, "patterns.parquet")
    with files_at(path).writing(path) as sink:
        table = pa.table([pa.array(patterns, pa.int64())], schema=PATTERNS)
        parquet.write_table(table, sink, compression="zstd")
    return (_Entries(0, path),)


def _read(spark: SparkSession, files: Sequence[FactFile], folder: str, keys: Sequence[str]) -> DataFrame:
    """Files of words (see `backends.spark.word_files`) with the columns of those of a store."""
    from pyspark.sql import functions as sql

    kept = []
    for file in files:
        if file.rows:
            kept.append(inside(folder, name_in(file.path)))
            files_at(folder).copy(file.path, kept[-1])
    names = {**{f"c{key}": key for key in keys}, "level": LEVEL, "count": COUNT}
    frame = parquet_frame(spark, kept, pa.schema([(name, pa.int32()) for name in names]))
    return frame.select(*(sql.col(name).alias(other) for name, other in names.items()))


def _after(words: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The facts that hold after changes, of which there is one for every changed fact, at level -1 if it is gone."""
    from pyspark.sql import functions as sql

    untouched = words.join(changes.select(*keys), list(keys), "left_anti")
    return untouched.unionByName(changes.filter(sql.col(LEVEL) >= 0))


def _keys(schema: Schema) -> list[str]:
    return [str(i) for i in range(max(1, schema.arity))]
