"""Facts between Spark DataFrames and Arrow tables, and what Spark says about a place that it cannot read or write, as a
diagnostic. Spark has no unsigned numbers: they are decimals of 20 digits there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import error
from elastalog.folders.addresses import without_secrets
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.relations.arrays import ARROW_TYPES
from elastalog.relations.facts import COUNT, LEVEL, FactWords
from elastalog.relations.meanings import Entries, own_words
from elastalog.relations.schema import Schema, column_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNSIGNED = pa.decimal128(20, 0)
_ROWS_OF_A_BATCH = 1 << 16
_MOST_DIRECT = 1_000_000
"""Rows up to which a table is handed to Spark directly; more go through a Parquet file, which is faster and splits
well."""


def is_spark_frame(rows: Any) -> bool:
    """Whether rows are a Spark DataFrame, classic or Connect, or one with the interface of pandas. Does not import
    pyspark by itself."""
    return "pyspark" in sys.modules and (_is_frame_of("pyspark.sql", rows) or _is_frame_of("pyspark.pandas", rows))


def plain_frame(rows: Any) -> DataFrame:
    """A Spark DataFrame, without the interface of pandas, and without its index."""
    frame: DataFrame = rows.to_spark() if _is_frame_of("pyspark.pandas", rows) else rows
    return frame


def _is_frame_of(package: str, rows: Any) -> bool:
    return any(kind.__module__.startswith(package) and kind.__name__ == "DataFrame" for kind in type(rows).__mro__)


def path_of(uri: str) -> str:
    """A file as people name it: local ones by their path."""
    if not uri.startswith("file:/"):
        return uri
    return unquote("/" + uri.removeprefix("file:").lstrip("/"))


def frame_to_arrow(frame: DataFrame, whole: Collection[str] | None = None) -> pa.Table:
    """The rows of a DataFrame, in the driver. Decimals without fraction become integers, since Spark's unsigned numbers
    are such: in the columns that are named as `whole`, in all unless given, and in records."""
    return with_integers(frame.toArrow(), whole)


def with_integers(table: pa.Table, whole: Collection[str] | None = None) -> pa.Table:
    """The table with integers for decimals without fraction. `whole` as in `frame_to_arrow`."""
    for i, field in enumerate(table.schema):
        if whole is None or field.name in whole or pa.types.is_struct(field.type):
            table = table.set_column(i, field.name, _integers(table.column(i)))
    return table


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    for integer in (pa.int64(), pa.uint64()):
        kind = _with_integers(column.type, integer)
        try:
            return column if kind == column.type else pc.cast(column, kind)
        except pa.ArrowInvalid:
            continue
    return column


def _with_integers(kind: pa.DataType, integer: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_integers(field.type, integer)) for field in kind])
    return integer if pa.types.is_decimal(kind) and kind.scale == 0 else kind


def with_columns_of(schema: Schema, frame: DataFrame, place: str) -> DataFrame:
    """The columns of a relation, as `column_order` finds them, by their names. Raises ElastalogError for a stream."""
    if frame.isStreaming:
        raise error("E1105", location=place, place=place)
    if not schema.columns:
        return frame
    order = column_order(schema, frame.columns, what=place, location=place)
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    return numbered.select(*(f"c{i}" for i in order)).toDF(*schema.names)


def arrow_to_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of the rows of a table."""
    if table.num_columns == 0:
        table = pa.table({NULLARY: pa.array([True] * table.num_rows, pa.bool_())})
    table = table.cast(pa.schema([field.with_type(_type_for_spark(field.type)) for field in table.schema]))
    if table.num_rows > _MOST_DIRECT:
        from elastalog.pipeline.spark.workplace import through_parquet

        return through_parquet(spark, table)
    return spark.createDataFrame(table)


def arrow_fields(schema: Schema, annotations: bool) -> dict[str, pa.DataType]:
    """The columns of a relation as Spark has them, by name; a relation without any has one that is true."""
    kinds = {**ARROW_TYPES, Base.UNSIGNED: UNSIGNED}
    fields = {column.name: kinds[column.base] for column in schema.columns} or {NULLARY: pa.bool_()}
    return {**fields, **({LEVEL: pa.int32(), COUNT: pa.int32()} if annotations else {})}


def decoded(
    schema: Schema, facts: FactWords, names: Sequence[str], texts: Iterable[Entries], patterns: Iterable[Entries]
) -> Iterator[pa.Table]:
    """Some of the columns of facts as Spark has them, with a dictionary that lies in parts."""
    wanted = {column.name: (i, column.base) for i, column in enumerate(schema.columns) if column.name in names}
    places, bases = [i for i, _ in wanted.values()], [base for _, base in wanted.values()]
    dictionary, words = own_words(bases, facts.words[:, places], texts, patterns)
    kinds = arrow_fields(schema, annotations=True)
    for start in range(0, len(words), _ROWS_OF_A_BATCH):
        part, own = facts.taken(slice(start, start + _ROWS_OF_A_BATCH)), words[start : start + _ROWS_OF_A_BATCH]
        columns: dict[str, Any] = {LEVEL: part.level, COUNT: part.count, NULLARY: np.ones(len(own), np.bool_)}
        for i, name in enumerate(wanted):
            columns[name] = dictionary.decode_column(bases[i], np.ascontiguousarray(own[:, i]))
        yield pa.table([pa.array(columns[name]).cast(kinds[name]) for name in names], names=list(names))


def frame_of_shares(
    spark: SparkSession, shares: int, read: Callable[[int], Iterator[pa.Table]], fields: Mapping[str, pa.DataType]
) -> DataFrame:
    """A DataFrame of what tasks read, a share each, when it is used."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # To Spark names of two attributes may be one, `a` and `A`.
    places = pa.schema([(f"c{i}", kind) for i, kind in enumerate(fields.values())])
    work = partial(_read_shares, read, places)
    return spark.range(0, shares, 1, shares).mapInArrow(work, from_arrow_schema(places)).toDF(*fields)


def _read_shares(
    read: Callable[[int], Iterator[pa.Table]], fields: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    for batch in batches:
        for share in batch.column(0).to_pylist():
            for table in read(share):
                yield from pa.table(table.columns, schema=fields).to_batches()


def _type_for_spark(kind: pa.DataType) -> pa.DataType:
    """The type that Spark has for values of one, of fields of records too."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_type_for_spark(field.type)) for field in kind])
    if pa.types.is_large_string(kind):
        return pa.string()
    return UNSIGNED if kind == pa.uint64() else kind


_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/|file:")


def absolute(place: str | os.PathLike[str]) -> str:
    """A path as Java understands it, whose working folder may be another; addresses as they are."""
    text = os.fspath(place)
    return text if _ADDRESS.match(text) else os.path.abspath(text)


def reading(kind: str, place: str) -> AbstractContextManager[None]:
    """Turns what Spark says about an unreadable source into a diagnostic."""
    return _told("E1105", f"cannot read {kind} from", place, "check the place, its format and your rights to it")


def evaluating(relation: str) -> AbstractContextManager[None]:
    """Turns what Spark says about the DataFrame given for a relation, whose rows it cannot give, into a diagnostic."""
    advice = "evaluate the DataFrame alone, with `collect`: the error is in how it is made"
    return _told("E1105", "cannot evaluate the DataFrame of", relation, advice)


def writing(kind: str, place: str) -> AbstractContextManager[None]:
    """Turns what Spark says about a place that it does not write to into a diagnostic."""
    advice = (
        "check the place and your rights to it; `mode` says what happens to what is there: overwrite, append, ignore"
    )
    return _told("E1111", f"cannot write {kind} to", place, advice)


@contextmanager
def _told(code: str, what: str, place: str, advice: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except PythonException as fault:  # the last line of a traceback says what was wrong
        reason, text = type(fault).__name__, str(fault).rstrip().rpartition("\n")[2]
    except PySparkException as fault:
        reason, text = fault.getCondition() or type(fault).__name__, str(fault)
    except Py4JJavaError as fault:  # of a database, say
        reason, text = fault.java_exception.getClass().getSimpleName(), str(fault.java_exception.getMessage())
    else:
        return
    place = without_secrets(place)
    first = next((without_secrets(line)[:300] for line in text.splitlines()), None)
    told = {"what": what, "place": place, "reason": reason, "first": first, "advice": advice}
    raise error("E1105.told", code=code, location=place, **told)
