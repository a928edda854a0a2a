"""Facts whose texts are too many for the driver: Spark replaces them by numbers, and the driver sees each text once.

The distinct texts of all columns of a DataFrame, in the order of their bytes, are its *word list*. It is written to
files before anything is numbered by it, and a text's number is its place there: so numbers depend neither on how the
data were partitioned nor on tasks that were repeated. The facts reach the driver as columns of Arrow dictionaries over
the word list, which a session's own dictionary takes over in one step: known texts keep their ids, new ones get the
next, in the order of the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at
from elastalog.pipeline.spark.frames import frame_to_arrow
from elastalog.pipeline.spark.parquet_files import parquet_frame
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.checks import as_base_column, faults_of
from elastalog.relations.column_order import column_order
from elastalog.relations.large_interner import LargeInterner
from elastalog.relations.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING = "spark.elastalog.encodeBytes"
MOST_BYTES = 1 << 30
"""What Spark estimates a DataFrame to take, up to which its texts go to the driver as they are: that is faster."""

_UNKNOWN = 1 << 60
_PIECE = 1 << 20
"""Texts that are handled at once."""

_TYPE = pa.dictionary(pa.int32(), pa.large_string())
_TEXT, _NUMBER = "@text", "@number"


def numbered_facts(schema: Schema, frame: DataFrame) -> pa.Table | None:
    """The facts of a large DataFrame whose rows are all good, columns of symbols as Arrow dictionaries. None if it is
    not large, or if some row is bad: then it has to be read in the ordinary way, which names the row."""
    positions = [i for i, column in enumerate(schema.columns) if column.base is Base.SYMBOL]
    if not positions or not _is_large(frame):
        return None
    columns = [f"c{i}" for i in range(schema.arity)]
    ordered = frame.toDF(*columns).select(*(columns[i] for i in column_order(schema, frame.columns))).toDF(*columns)
    if any(ordered.dtypes[i][1] != "string" for i in positions):
        return None
    folder = new_folder(frame.sparkSession, "texts")
    try:
        words = _word_list(ordered, positions, folder)
        table = None if words is None else _numbered(ordered, positions, words, folder)
    finally:
        files_at(folder).remove_folder(folder)
    return None if table is None else _checked(schema, table)


def alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables of one relation in a form in which they can be put one after the other: if a column of one is a
    dictionary, that of all."""
    kinds = [
        next((f.type for f in fields if f.type == _TYPE), fields[0].type)
        for fields in zip(*(t.schema for t in tables), strict=True)
    ]
    schema = pa.schema([field.with_type(kind) for field, kind in zip(tables[0].schema, kinds, strict=True)])
    return [_as(schema, table) for table in tables]


def _as(schema: pa.Schema, table: pa.Table) -> pa.Table:
    columns = [
        column.cast(field.type.value_type).dictionary_encode().cast(field.type)
        if field.type == _TYPE and column.type != _TYPE
        else column
        for field, column in zip(schema, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema) if columns else table


def _is_large(frame: DataFrame) -> bool:
    """By Spark's estimate, since counting would evaluate the DataFrame once more. Where there is none, it is not."""
    plan = getattr(frame, "_jdf", None)  # a DataFrame of Spark Connect has none
    if plan is None:
        return False
    most = int(frame.sparkSession.conf.get(SETTING, None) or MOST_BYTES)
    size = int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return size >= most and (size < _UNKNOWN or most == 0)


def _word_list(frame: DataFrame, positions: list[int], folder: str) -> pa.LargeStringArray | None:
    """The distinct texts in the order of their bytes; None if one is no text."""
    from pyarrow import parquet
    from pyspark.sql import functions as sql

    texts = frame.select(sql.explode(sql.array(*(f"c{i}" for i in positions))).alias(_TEXT))
    sorted_texts = texts.filter(sql.col(_TEXT).isNotNull()).distinct().sort(_TEXT)
    words = LargeInterner()  # part by part, in a file of this process if they are many
    if is_address(folder):  # where Spark's Java side may have no rights
        words.extend(sorted_texts.toArrow().column(0))
    else:
        sorted_texts.write.parquet(f"file://{folder}/list")
        # Spark numbers part files in the order of the parts.
        for path in sorted(Path(folder, "list").glob("part-*.parquet")):
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(_PIECE):
                    words.extend(batch.column(0))
    listed = words.array(0, len(words))
    try:
        listed.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return listed


def _numbered(frame: DataFrame, positions: list[int], words: pa.LargeStringArray, folder: str) -> pa.Table | None:
    from pyspark.sql import functions as sql

    numbers = _numbers(frame.sparkSession, words, folder)
    columns = [f"c{i}" for i in range(len(frame.columns))]
    joined = frame
    for i in positions:
        own = numbers.select(sql.col(_TEXT).alias(f"{_TEXT}{i}"), sql.col(_NUMBER).alias(f"{_NUMBER}{i}"))
        joined = joined.join(own, sql.col(f"c{i}") == sql.col(f"{_TEXT}{i}"), "left")
    chosen = [sql.col(f"{_NUMBER}{i}" if i in positions else name) for i, name in enumerate(columns)]
    table = frame_to_arrow(joined.select(*chosen)).combine_chunks()
    arrays = []
    for i, column in enumerate(table.columns):
        chunk = column.combine_chunks()
        if i in positions:
            # A null: a bad row, or a DataFrame that is another whenever it is looked at.
            if chunk.null_count:
                return None
            chunk = pa.DictionaryArray.from_arrays(chunk.cast(pa.int32()), words)
        arrays.append(chunk)
    return pa.Table.from_arrays(arrays, names=columns)


def _numbers(spark: SparkSession, words: pa.LargeStringArray, folder: str) -> DataFrame:
    """The word list with its numbers, for Spark to join with: sent to all tasks if it is short, otherwise shuffled."""
    from pyarrow import parquet

    pieces = max(2, spark.sparkContext.defaultParallelism)
    size = min(max(1, -(-len(words) // pieces)), _PIECE)
    locations = []
    for first in range(0, max(1, len(words)), size):
        part = words.slice(first, size).cast(pa.string())
        numbers = array_of_numbers(np.arange(first, first + len(part), dtype=np.int32))
        locations.append(inside(folder, f"numbers-{first}.parquet"))
        with files_at(folder).writing(locations[-1]) as sink:
            parquet.write_table(pa.table({_TEXT: part, _NUMBER: numbers}), sink)
    return parquet_frame(spark, locations, pa.schema([(_TEXT, pa.string()), (_NUMBER, pa.int32())]))


def _checked(schema: Schema, table: pa.Table) -> pa.Table | None:
    columns = [as_base_column(schema, c, array) for c, array in zip(schema.columns, table.columns, strict=True)]
    if faults_of(schema.columns, columns):
        return None
    fields = [f.with_type(c.type if c.type == _TYPE else f.type) for f, c in zip(schema.arrow(), columns, strict=True)]
    return pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )
