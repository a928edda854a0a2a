"""Plain text files through Spark: split and cast by the JVM, judged by the language's own rules where that is not
enough.

Spark's CSV reader is not used: it turns empty texts into nulls, and with column pruning lets bad rows pass in silence.
The JVM casts only what is beyond doubt, such as `-12`; the rows with anything else (`0x1f`, ` 7`, a field too many) are
numbered in a second pass and read by the reader of `pipeline.files`, so that a file means the same to both engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.folders.files import remove
from elastalog.pipeline.files.fields import BYTE_ORDER_MARK
from elastalog.pipeline.files.format import Format
from elastalog.pipeline.files.policy import BadRow
from elastalog.pipeline.files.text import read_lines as read_these
from elastalog.pipeline.spark.filed_facts import Destination, FiledFacts, filed_facts
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of
from elastalog.pipeline.spark.texts import alike, numbered_facts
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What both the JVM and the language read alike. A byte order mark or a carriage return at the end is left to the
# latter.
_CERTAIN = {
    Base.NUMBER: ("^-?[0-9]{1,18}$", "bigint"),
    Base.UNSIGNED: ("^[0-9]{1,19}$", "decimal(20,0)"),
    Base.FLOAT: ("^-?[0-9]{1,15}(\\\\.[0-9]{1,15})?$", "double"),
}
_FILE, _BLOCK, _LINE, _TEXT, _IS_CERTAIN = "@file", "@block", "@line", "@text", "@certain"


def read_lines(
    spark: SparkSession, schema: Schema, place: str, form: Format, into: Destination | None = None
) -> tuple[pa.Table | FiledFacts, list[BadRow]]:
    """The good rows of text files without header and quotes, and the bad ones with file and line; in files of the
    destination, if one is given, they are many, and no line is in doubt."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    seen = Observation()
    rows = _split(_text(spark, place), schema, form)
    rows = rows.observe(seen, sql.count_if(~sql.col(_IS_CERTAIN)).alias("doubtful"))
    certain = rows.filter(sql.col(_IS_CERTAIN)).select(*map(_place, range(schema.arity))).toDF(*schema.names)
    filed = None if into is None else filed_facts(schema, certain, into)
    if filed is not None:
        if not seen.get["doubtful"]:
            return filed, []
        remove([file.path for file in filed.files.base])
    table = numbered_facts(schema, certain)
    if table is None:
        table = frame_to_arrow(certain).cast(schema.arrow())
    if not seen.get["doubtful"]:
        return table, []
    doubtful = _split(_numbered(spark, place), schema, form).filter(~sql.col(_IS_CERTAIN))
    # As bytes: text that is not UTF-8 would be changed on its way here.
    rows_to_judge = doubtful.select(_FILE, _LINE, sql.col(_TEXT).cast("binary").alias(_TEXT)).orderBy(_FILE, _LINE)
    more, bad = _judge(schema, rows_to_judge.collect(), form)
    return joined(alike([table, more])), bad


def _text(spark: SparkSession, place: str) -> DataFrame:
    from pyspark.sql import functions as sql

    text = spark.read.option("lineSep", "\n").text(place)
    file, block = sql.col("_metadata.file_path"), sql.col("_metadata.file_block_start")
    return text.select(sql.col("value").alias(_TEXT), file.alias(_FILE), block.alias(_BLOCK))


def _numbered(spark: SparkSession, place: str) -> DataFrame:
    """The lines with their numbers in their files, from 1. Blocks of a file may be read in any order, and with those of
    others between them; the lines of one follow each other."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    lines = _text(spark, place).zipWithIndex("@all")
    blocks = lines.groupBy(_FILE, _BLOCK).agg(sql.min("@all").alias("@first"), sql.count("*").alias("@lines"))
    before = sql.sum("@lines").over(Window.partitionBy(_FILE).orderBy(_BLOCK)) - sql.col("@lines")
    placed = lines.join(blocks.withColumn("@before", before), [_FILE, _BLOCK])
    return placed.withColumn(_LINE, sql.col("@before") + sql.col("@all") - sql.col("@first") + 1)


def _split(lines: DataFrame, schema: Schema, form: Format) -> DataFrame:
    import re

    from pyspark.sql import functions as sql

    fields = lines.withColumn("@fields", sql.split(_TEXT, re.escape(form.delimiter), -1))
    # A carriage return may belong to the line's end, and a byte order mark to the file's beginning.
    certain = (sql.size("@fields") == schema.arity) & ~sql.col(_TEXT).rlike("[\\r\\ufeff]") & sql.is_valid_utf8(_TEXT)
    for i, column in enumerate(schema.columns):
        value = _value(i, column)
        certain = certain & value.isNotNull()
        fields = fields.withColumn(_place(i), value)
    return fields.withColumn(_IS_CERTAIN, certain)


def _place(position: int) -> str:
    """The name of a column: to Spark those of two attributes may be one, `a` and `A`."""
    return f"c{position}"


def _value(position: int, column: Column) -> Any:
    from pyspark.sql import functions as sql

    field = f"get(`@fields`, {position})"
    if column.base is Base.SYMBOL:
        return sql.expr(field)
    if column.base is Base.RECORD:
        return sql.lit(None).cast("string")  # its text is for the driver to judge
    pattern, kind = _CERTAIN[column.base]
    return sql.expr(f"case when {field} rlike '{pattern}' then try_cast({field} as {kind}) end")


def _judge(schema: Schema, rows: list[Any], form: Format) -> tuple[pa.Table, list[BadRow]]:
    tables = [schema.arrow().empty_table()]
    bad: list[BadRow] = []
    for row in rows:
        file, line, raw = path_of(row[_FILE]), int(row[_LINE]), bytes(row[_TEXT])
        text = raw.removeprefix(BYTE_ORDER_MARK) if line == 1 else raw
        table, bad_here = read_these(schema, text + b"\n", file, form, line)
        tables.append(table)
        bad += bad_here
    return joined(tables), bad
