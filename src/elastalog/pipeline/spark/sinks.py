"""Relations out through Spark: DataFrames, and from these Parquet, CSV, tables and databases.

Relations in files of words, those of a store and those that tasks have derived, Spark reads and decodes itself, by
joins with the dictionary in files: nothing passes through the driver, which only says which files they are. They are
linked into the workplace first (copied, at an address), since a DataFrame is read when it is used, and by then their
owner may have removed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, Protocol, assert_never, get_args

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.spark.values import TextFile, TextFiles
from elastalog.diagnostics.arguments import require_one_of, require_path
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.folders.addresses import inside, name_in
from elastalog.folders.files import files_at
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.pipeline.spark.frames import SPARK_TYPES, absolute, arrow_to_frame, writing
from elastalog.pipeline.spark.workplace import new_folder, parquet_frame
from elastalog.relations.facts import Relation
from elastalog.relations.limits import WIDE
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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


def _in_file(folder: str, patterns: np.ndarray) -> tuple[Numbered, ...]:
    from pyarrow import parquet

    if not len(patterns):
        return ()
    path = inside(folder, "patterns.parquet")
    with files_at(path).writing(path) as sink:
        table = pa.table([pa.array(patterns, pa.int64())], schema=PATTERNS)
        parquet.write_table(table, sink, compression="zstd")
    return (TextFile(path, 0, len(patterns)),)


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
    """The facts that hold after changes, which have one row per changed fact, at level -1 if it is gone."""
    from pyspark.sql import functions as sql

    untouched = words.join(changes.select(*keys), list(keys), "left_anti")
    return untouched.unionByName(changes.filter(sql.col(LEVEL) >= 0))


def _keys(schema: Schema) -> list[str]:
    return [str(i) for i in range(max(1, schema.arity))]


LEVEL, COUNT = "@level", "@count"
TEXTS, PATTERNS = pa.schema([("text", pa.string())]), pa.schema([("pattern", pa.int64())])
_ID = "@id"
_NOT_THERE = "a word is not in the dictionary"


class Numbered(Protocol):
    """A Parquet file with one column, `text` or `pattern` (64 bits), with ids from `first` on in the order of rows."""

    @property
    def first(self) -> int: ...
    @property
    def path(self) -> str: ...


def decoded(
    spark: SparkSession,
    schema: Schema,
    words: DataFrame,
    symbols: Sequence[Numbered],
    patterns: Sequence[Numbered],
    annotations: bool,
) -> DataFrame:
    """The facts of a DataFrame with columns `0`, `1`, … of words; with `annotations`, its columns `@level` and `@count`
    follow."""
    from pyspark.sql import functions as sql

    frame = words
    values: list[Any] = []
    for i, column in enumerate(schema.columns):
        entries = symbols if column.base is Base.SYMBOL else patterns
        frame, value = _decoded(spark, frame, i, column.base, entries)
        values.append(value.cast(SPARK_TYPES[column.base]).alias(column.name))
    if not values:
        values = [sql.lit(True).alias(NULLARY)]
    if annotations:
        values += [sql.col(LEVEL), sql.col(COUNT)]
    return frame.select(*values)


def _decoded(
    spark: SparkSession, frame: DataFrame, i: int, base: Base, entries: Sequence[Numbered]
) -> tuple[DataFrame, Column]:
    """The frame, joined with what decodes a column, and the value of that column."""
    from pyspark.sql import functions as sql

    word = sql.col(f"`{i}`")
    name = f"@value{i}"
    if not entries:  # then no fact holds a symbol, a float, or a wide number
        narrow = base in (Base.NUMBER, Base.UNSIGNED)
        return frame, word if narrow else sql.when(word.isNotNull(), sql.raise_error(_NOT_THERE))
    meanings = _numbered(spark, entries, TEXTS if base is Base.SYMBOL else PATTERNS, name, i)
    number = sql.col(f"{_ID}{i}")
    match base:
        case Base.SYMBOL:
            return frame.join(meanings, word == number, "left"), _required(name)
        case Base.FLOAT:
            floats = meanings.mapInArrow(_as_floats, f"`{_ID}{i}` int, `{name}` double")
            return frame.join(floats, word - WIDE == number, "left"), _required(name)
        case Base.NUMBER | Base.UNSIGNED:
            # Narrow numbers find nothing; they get keys of their own, so that they do not all go to one task.
            key = sql.when(word >= WIDE, word - WIDE).when(word >= 0, -1 - word).otherwise(word)
            joined = frame.join(meanings, key == number, "left")
            return joined, sql.when(word < WIDE, word).otherwise(_integer(base, name))
        case Base.RECORD:
            raise InternalError("spark", "records are decoded by the driver")
        case _:
            assert_never(base)


def _integer(base: Base, name: str) -> Column:
    from pyspark.sql import functions as sql

    pattern = _required(name)
    if base is Base.NUMBER:
        return pattern
    # Spark has no unsigned numbers: the highest bit, read as a sign, means 2^64 less.
    return pattern.cast("decimal(20,0)") + sql.when(pattern < 0, sql.expr("18446744073709551616BD")).otherwise(0)


def _required(name: str) -> Column:
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.col(name), sql.raise_error(_NOT_THERE))


def _numbered(spark: SparkSession, files: Iterable[Numbered], schema: pa.Schema, name: str, i: int) -> DataFrame:
    """Entries of the dictionary with their ids."""
    from pyspark.sql import functions as sql

    def entries(file: Numbered) -> DataFrame:
        frame = parquet_frame(spark, [file.path], schema, _ID)
        return frame.select((sql.col(_ID) + file.first).alias(f"{_ID}{i}"), sql.col(schema.names[0]).alias(name))

    return reduce(lambda left, right: left.union(right), map(entries, files))


def _as_floats(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import numpy as np

    for batch in batches:
        bits = batch.column(1).to_numpy(zero_copy_only=False)
        floats = pa.array(bits.view(np.float64))
        yield pa.RecordBatch.from_arrays([batch.column(0), floats], names=batch.schema.names)


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
