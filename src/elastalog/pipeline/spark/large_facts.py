"""Facts too many for the driver: it sees every text once, to number it, and, where tasks write them to files, no fact.

The distinct texts of all columns of a DataFrame, in the order of their bytes, are its *word list*. It is written to
files before anything is numbered by it, and a text's number is its place there: so numbers depend neither on how the
data were partitioned nor on tasks that were repeated. Tasks write the words of the share of facts that falls to each.
Known texts keep their ids, new ones get the next, in the order of the list. Facts with wide numbers, floats or records
have no word before the driver has numbered them: they reach it, as all do where no task evaluates, through files of
rows, whose texts are Arrow dictionaries.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.rows import distinct
from elastalog.backends.spark.placement import shares_for
from elastalog.backends.spark.routing import MULTIPLIER, Routing
from elastalog.backends.spark.word_files import FiledRelation, WordFile, write_words
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, remove
from elastalog.late import dataclass
from elastalog.pipeline.spark.frames import frame_to_arrow, with_integers
from elastalog.pipeline.spark.workplace import new_folder, parquet_frame
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.checks import is_text
from elastalog.relations.facts import FactWords
from elastalog.relations.limits import LEAST_NARROW, WIDE, Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile
    from pyspark.sql import Column, DataFrame, SparkSession

_LEAST = {Base.NUMBER: LEAST_NARROW, Base.UNSIGNED: 0}
_WHOLE = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,0\)")
_SHARE = "@share"
_WRITTEN = pa.schema({"share": pa.int32(), "location": pa.string(), "rows": pa.int64(), "found": pa.int64()})


@dataclass(frozen=True, slots=True)
class Destination:
    """Where tasks write facts: in a `folder` that driver and executors see, as words of a dictionary."""

    folder: str
    dictionary: Dictionary


@dataclass(frozen=True, slots=True)
class FiledFacts:
    """Facts in files. `num_rows`: how many rows there were, duplicates included."""

    files: FiledRelation
    num_rows: int


def filed_facts(schema: Schema, frame: DataFrame, into: Destination) -> FiledFacts | None:
    """The facts of a large DataFrame, written by tasks. None if it is not large, or if some row is bad or has a value
    that they cannot write: then it has to be read in the ordinary way."""
    if not schema.columns or not is_large(frame):
        return None
    rows = frame.toDF(*(f"c{i}" for i in range(schema.arity)))
    if not all(_is_fit(column.base, kind) for column, (_, kind) in zip(schema.columns, rows.dtypes, strict=True)):
        return None
    folder = new_folder(frame.sparkSession, "texts")
    try:
        words = _in_words(schema, rows, into.dictionary, folder)
        return None if words is None else _written(schema.name, words, into)
    finally:
        files_at(folder).remove_folder(folder)


def _is_fit(base: Base, kind: str) -> bool:
    return kind == "string" if base is Base.SYMBOL else base in _LEAST and _WHOLE.fullmatch(kind) is not None


def _in_words(schema: Schema, rows: DataFrame, dictionary: Dictionary, folder: str) -> DataFrame | None:
    """The rows as words, null where a value has none. None if a text is invalid."""
    from pyspark.sql import functions as sql

    positions = [i for i, column in enumerate(schema.columns) if column.base is Base.SYMBOL]
    if positions:
        try:
            pieces = ((texts, dictionary.symbols.encode(texts)) for texts in sorted_texts(rows, positions, folder))
            rows = with_numbers(rows, positions, numbers_frame(rows.sparkSession, pieces, folder))
        except pa.ArrowInvalid:
            return None
    for i, column in enumerate(schema.columns):
        if i not in positions:
            value = sql.col(f"c{i}")
            narrow = sql.when(value.between(_LEAST[column.base], WIDE - 1), value.cast("int"))
            rows = rows.withColumn(f"c{i}", narrow)
    return rows


def _written(name: str, words: DataFrame, into: Destination) -> FiledFacts | None:
    """The files that tasks write, one for every share."""
    from pyspark.sql.pandas.types import from_arrow_schema

    routing = Routing(0, shares_for(words.sparkSession, are_together=False))
    shared = words.withColumn(_SHARE, _share(routing.shares))
    # Older versions of Spark may give several shares to one task.
    parted = getattr(shared, "repartitionById", shared.repartition)(routing.shares, _SHARE)
    found = parted.mapInArrow(partial(_write_shares, into.folder, name), from_arrow_schema(_WRITTEN)).collect()
    if any(row.location is None for row in found):
        remove([row.location for row in found if row.location is not None])
        return None
    files = tuple(
        WordFile(row.location, row.rows, routing, row.share, grown=row.rows, explicit=row.rows)
        for row in sorted(found, key=lambda row: (row.share, row.location))
    )
    return FiledFacts(FiledRelation(files), sum(row.found for row in found)) if files else None


def _share(shares: int) -> Column:
    """The share of a row, as `routing.hashed` gives it. The product is made of two halves: whole, it would not fit."""
    from pyspark.sql import functions as sql

    low = sql.col("c0").bitwiseAND(0xFFFF).cast("bigint")
    high = sql.shiftrightunsigned("c0", 16).cast("bigint")
    above = sql.shiftleft((high * MULTIPLIER).bitwiseAND(0xFFFF), 16)
    mixed = (low * MULTIPLIER + above).bitwiseAND(0xFFFFFFFF)
    return (sql.shiftright(mixed, 16) % shares).cast("int")


def _write_shares(folder: str, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does: a file for every share that it is given, each fact once, and a row that names it; a row without
    a file if some value has no word. A repeated task writes other files."""
    found: dict[int, list[np.ndarray]] = {}
    is_good = True
    for batch in batches:
        is_good = is_good and not any(column.null_count for column in batch.columns)
        if is_good:
            *columns, shares = (column.to_numpy() for column in batch.columns)
            words = np.stack(columns, axis=1).astype(np.int32, copy=False)
            for share in np.unique(shares).tolist():
                found.setdefault(share, []).append(words[shares == share])
    told: list[dict[str, object]] = [] if is_good else [{"share": 0, "rows": 0, "found": 0}]
    for share, parts in found.items() if is_good else ():
        facts = distinct(np.concatenate(parts))
        nothing = np.zeros(len(facts), np.int32)
        location = write_words(folder, name, FactWords(facts, nothing, nothing + 1)).path
        told.append({"share": share, "location": location, "rows": len(facts), "found": sum(map(len, parts))})
    yield pa.RecordBatch.from_pylist(told, _WRITTEN)


SETTING = "spark.elastalog.encodeBytes"
MOST_BYTES = 1 << 30
"""What Spark estimates a DataFrame to take, up to which its texts go to the driver as they are: that is faster."""

_UNKNOWN = 1 << 60
_PIECE = 1 << 20
"""Texts that are handled at once."""

_TEXT, _NUMBER = "@text", "@number"


def frame_in_driver(frame: DataFrame) -> pa.Table:
    """The rows of a DataFrame, in the driver; of a large one from files that tasks write, in which a text that occurs
    often is there once for each part. Decimals become integers inside of records only: they may be unsigned there."""
    if not is_large(frame):
        return frame_to_arrow(frame, whole=())
    folder = new_folder(frame.sparkSession, "rows")
    try:
        tables = [file.read() for file in _parts(frame, folder, are_encoded=True)]
        return with_integers(pa.concat_tables(tables or [frame.limit(0).toArrow()]), whole=())
    finally:
        files_at(folder).remove_folder(folder)


def is_large(frame: DataFrame) -> bool:
    """By Spark's estimate, since counting would evaluate the DataFrame once more. Where there is none, it is not."""
    plan = getattr(frame, "_jdf", None)  # a DataFrame of Spark Connect has none
    if plan is None:
        return False
    most = int(frame.sparkSession.conf.get(SETTING, None) or MOST_BYTES)
    size = int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return size >= most and (size < _UNKNOWN or most == 0)


def sorted_texts(frame: DataFrame, positions: list[int], folder: str) -> Iterator[pa.Array]:
    """The distinct texts of some columns in the order of their bytes, piece by piece, from files that tasks write.
    Raises ArrowInvalid if one is invalid."""
    from pyspark.sql import functions as sql

    texts = frame.select(sql.explode(sql.array(*(f"c{i}" for i in positions))).alias(_TEXT))
    listed = texts.filter(sql.col(_TEXT).isNotNull()).distinct().sort(_TEXT)
    for file in _parts(listed, folder, are_encoded=False):
        for batch in file.iter_batches(_PIECE):
            batch.validate(full=True)
            yield batch.column(0)


def _parts(frame: DataFrame, folder: str, are_encoded: bool) -> Iterator[ParquetFile]:
    """The rows of a DataFrame in files that tasks write, in order; texts may be encoded by dictionaries."""
    parts = frame.mapInArrow(partial(_write_part, folder, are_encoded), "part int, location string").collect()
    for _, location in sorted(parts):
        with files_at(location).parquet(location) as file:
            yield file


def _write_part(folder: str, are_encoded: bool, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does: a file of its part. A repeated task writes another."""
    from pyarrow import parquet
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    location, writer = inside(folder, f"part-{uuid.uuid4().hex}.parquet"), None
    with ExitStack() as opened:
        for batch in batches:
            columns = [c.dictionary_encode() if are_encoded and is_text(c.type) else c for c in batch.columns]
            table = pa.table(columns, names=batch.schema.names)
            if writer is None:
                sink = opened.enter_context(files_at(location).writing(location))
                writer = opened.enter_context(parquet.ParquetWriter(sink, table.schema, use_dictionary=are_encoded))
            writer.write_table(table)
    if writer is not None:
        part = pa.array([context.partitionId()], pa.int32())
        yield pa.RecordBatch.from_arrays([part, pa.array([location])], names=["part", "location"])


def with_numbers(frame: DataFrame, positions: list[int], numbers: DataFrame) -> DataFrame:
    """The frame with numbers for the texts of some columns, null where one has none."""
    from pyspark.sql import functions as sql

    joined = frame
    for i in positions:
        own = numbers.select(sql.col(_TEXT).alias(f"{_TEXT}{i}"), sql.col(_NUMBER).alias(f"{_NUMBER}{i}"))
        joined = joined.join(own, sql.col(f"c{i}") == sql.col(f"{_TEXT}{i}"), "left")
    chosen = (f"{_NUMBER}{i}" if i in positions else name for i, name in enumerate(frame.columns))
    return joined.select(*(sql.col(name) for name in chosen)).toDF(*frame.columns)


def numbers_frame(spark: SparkSession, pieces: Iterable[tuple[pa.Array, Words]], folder: str) -> DataFrame:
    """Texts with their numbers, for Spark to join with: sent to all tasks if they are few, otherwise shuffled."""
    from pyarrow import parquet

    schema = pa.schema([(_TEXT, pa.string()), (_NUMBER, pa.int32())])
    locations: list[str] = []
    for texts, numbers in chain(pieces, [(pa.array([], pa.string()), np.empty(0, np.int32))]):
        locations.append(inside(folder, f"numbers-{len(locations)}.parquet"))
        table = pa.Table.from_arrays([texts.cast(pa.string()), array_of_numbers(numbers)], schema=schema)
        with files_at(folder).writing(locations[-1]) as sink:
            parquet.write_table(table, sink)
    return parquet_frame(spark, locations, schema)
