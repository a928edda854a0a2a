"""Where Spark finds facts, and how they are read: every row is a fact of the declared columns, or is located and
handled by the policy for bad rows.

Plain text is split and cast by the JVM. Spark's CSV reader is not used: it turns empty texts into nulls, and with
column pruning lets bad rows pass in silence. The JVM casts only what is beyond doubt, such as `-12`; the rows with
anything else (`0x1f`, ` 7`, a field too many) are numbered in a second pass and read by the reader of `pipeline.files`,
so that a file means the same to both engines. A file that cannot be split by lines (headers, quoted fields, JSON) is
read whole by one task, with our own reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

import pyarrow as pa

from elastalog.analysis.program import Base, Directive, Relation
from elastalog.backends.spark.cluster import require_running
from elastalog.folders.addresses import without_secrets
from elastalog.folders.files import remove
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import unpacked
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, Format, Kind
from elastalog.pipeline.files.json_files import read_json_lines
from elastalog.pipeline.files.parquet import NULLARY, read_parquet_table
from elastalog.pipeline.files.paths import find_facts, resolve_under
from elastalog.pipeline.files.policy import BadRow, BadRows, settle
from elastalog.pipeline.files.read import FactsRead, read_input
from elastalog.pipeline.files.text import read_lines as read_these
from elastalog.pipeline.files.text import read_text
from elastalog.pipeline.spark.frames import (
    absolute,
    evaluating,
    frame_to_arrow,
    path_of,
    plain_frame,
    reading,
    require_columns,
)
from elastalog.pipeline.spark.large_facts import Destination, FiledFacts, alike, filed_facts, numbered_facts
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import joined, table_of_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SourceKind = Literal["text", "json", "parquet", "orc", "jdbc", "table"]


@dataclass(frozen=True, slots=True)
class Source:
    """Facts that Spark can read. `place`: a path, a URL or a table's name; of files also a folder or a pattern.
    `options`: the parameters of `.input` for text, those of Spark's reader otherwise."""

    kind: SourceKind
    place: str
    options: Mapping[str, str] = field(default_factory=dict)


Found: TypeAlias = tuple["pa.Table | FiledFacts", list[BadRow]]
"""Facts, in the driver or in files, and the bad rows."""


def facts_given(
    spark: SparkSession | None, schema: Schema, rows: Any, into: Destination | None = None
) -> tuple[pa.Table | FiledFacts, list[BadRow], str]:
    """The facts of a source, or of a DataFrame that a user has made, the bad rows, and where they are from; in files,
    if a destination is given and they are many. A source needs a session."""
    if isinstance(rows, Source):
        assert spark is not None
        return *_read(spark, schema, rows, into), without_secrets(rows.place)
    frame, place = plain_frame(rows), f"the DataFrame of `{schema.name}`"
    require_running(frame.sparkSession)
    with evaluating(schema.name):
        return *facts_of_frame(schema, frame, place, into), place


def settled(schema: Schema, found: Found, files: list[str], policy: BadRows) -> FactsRead:
    """What was found, bad rows dealt with as the policy says."""
    facts, bad = found
    report = settle(policy, schema.name, files, facts.num_rows, bad)
    if isinstance(facts, FiledFacts):
        return FactsRead(schema.arrow().empty_table(), report, facts.files)
    return FactsRead(facts, report)


def read_inputs(
    spark: SparkSession, relation: Relation, root: str, policy: BadRows, into: Destination | None = None
) -> FactsRead:
    """The facts of all `.input` directives of a relation, from files or folders of files under a root, read by Spark;
    in files of the destination, if one is given, there is one directive, and they are many."""
    schema = Schema.of(relation)
    tables = [schema.arrow().empty_table()]
    bad: list[BadRow] = []
    files: list[str] = []
    for directive in relation.inputs:
        if directive.parameters.get("IO") in ("json", "jsonfile", "sqlite", "rdf"):
            # One file that cannot be split: the driver reads it as it would without Spark.
            one = replace(relation, directives=(directive,))
            facts = read_input(one, root, policy)
            tables.append(facts.table)
            files.extend(facts.report.files)
            continue
        source = _input_source(relation.name, root, directive)
        table, bad_here = _read(spark, schema, source, into if len(relation.inputs) == 1 else None)
        if isinstance(table, FiledFacts):
            return settled(schema, (table, bad_here), [source.place], policy)
        tables.append(table)
        bad += bad_here
        files.append(source.place)
    table = tables[-1] if len(tables) <= 2 else joined(alike(tables))
    return FactsRead(table, settle(policy, relation.name, files, table.num_rows, bad))


def _input_source(name: str, root: str, directive: Directive) -> Source:
    parameters = directive.parameters
    given = parameters.get("filename")
    # A folder of part files, as Spark writes them, stands for one file.
    if given is None:
        return source_of_path(str(find_facts(root, name, for_spark=True)), parameters)
    return source_of_path(str(resolve_under(root, given, is_confined=directive.is_confined)), parameters)


def source_of_path(place: str, parameters: Mapping[str, str] | None = None) -> Source:
    """The source at a path, its kind from the name."""
    if place.lower().rstrip("/").endswith(".orc"):
        return Source("orc", place)
    match Format.of(parameters or {}, place.rstrip("/")).kind:
        case Kind.PARQUET:
            return Source("parquet", place)
        case Kind.JSON_LINES:
            return Source("json", place)
        case Kind.TEXT:
            return Source("text", place, dict(parameters or {}))


def _read(spark: SparkSession, schema: Schema, source: Source, into: Destination | None) -> Found:
    place = absolute(source.place) if source.kind in ("text", "json", "parquet", "orc") else source.place
    with reading(source.kind, source.place):
        match source.kind:
            case "text":
                form = Format.of(source.options, source.place.rstrip("/"))
                is_plain = not (form.has_header or form.is_rfc4180 or form.columns or not schema.columns)
                if is_plain:
                    return read_lines(spark, schema, place, form, into)
                return read_whole_files(spark, schema, place, form)
            case "json":
                form = Format(kind=Kind.JSON_LINES, is_gzip=source.place.endswith(".gz"))
                return read_whole_files(spark, schema, place, form)
            case "parquet" | "orc":
                return _columnar(schema, _frame_of_files(spark, schema, source, place), source, into)
            case "jdbc":
                # The url stands in the place, the table among the options.
                frame = spark.read.format("jdbc").option("url", source.place).options(**source.options).load()
                return facts_of_frame(schema, frame, f"table {source.options.get('dbtable', '')}", into)
            case "table":
                return facts_of_frame(schema, spark.table(source.place), source.place, into)
            case _:
                assert_never(source.kind)


def facts_of_frame(schema: Schema, frame: DataFrame, place: str, into: Destination | None = None) -> Found:
    """The rows of a DataFrame that are facts, and those that are not (nulls, values out of range), placed by their
    number."""
    if not frame.columns and not schema.columns:
        frame = frame.selectExpr(f"true AS `{NULLARY}`")  # Arrow does not tell how many rows without columns there are
    require_columns(schema, frame, place)
    filed = None if into is None else filed_facts(schema, frame, into)
    if filed is not None:
        return filed, []
    table = numbered_facts(schema, frame)
    return (table, []) if table is not None else read_parquet_table(schema, frame_to_arrow(frame, whole=()), place)


def _frame_of_files(spark: SparkSession, schema: Schema, source: Source, place: str) -> DataFrame:
    """The rows of columnar files. Spark takes names of folders, `code=007`, for numbers and dates where they may be
    some: those of symbols are texts."""
    from pyspark.sql.types import StringType, StructField, StructType

    reader = spark.read.options(**source.options).format(source.kind)
    frame = reader.load(place)
    symbols = {column.name.casefold() for column in schema.columns if column.base is Base.SYMBOL}
    others = [f.name for f in frame.schema if f.name.casefold() in symbols and not isinstance(f.dataType, StringType)]
    files = frame.inputFiles()[:1] if others else []
    told = [name for name in others if any(f"/{name}=" in file for file in files)]
    if not told:
        return frame
    fields = [StructField(f.name, StringType()) if f.name in told else f for f in frame.schema]
    return reader.schema(StructType(fields)).load(place)


def _columnar(schema: Schema, frame: DataFrame, source: Source, into: Destination | None) -> Found:
    """Bad rows are rare: only when there are some, the files are read again to name them and the rows in them."""
    from pyspark.sql import functions as sql

    table, bad = facts_of_frame(schema, frame, source.place, into)
    if not bad:
        return table, bad
    number = "_metadata.row_index" if source.kind == "parquet" else "monotonically_increasing_id()"
    placed = frame.select("*", sql.col("_metadata.file_path").alias("@file"), sql.expr(number).alias("@row"))
    rows = frame_to_arrow(placed, whole=())
    table, bad = read_parquet_table(schema, rows.select(frame.columns), source.place)
    files, numbers = rows.column("@file"), rows.column("@row")
    located = [
        BadRow(
            path_of(files[row.line - 1].as_py()),
            int(numbers[row.line - 1].as_py()) + 1 if source.kind == "parquet" else row.line,
            row.fault,
            row.text,
        )
        for row in bad
    ]
    return table, sorted(located, key=lambda row: (row.file, row.line))


_COLUMNS = "file string, line bigint, code string, reason string, text string, facts binary"


def read_whole_files(spark: SparkSession, schema: Schema, place: str, form: Format) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of files and the bad ones with file and line."""
    files = spark.read.format("binaryFile").load(place).select("path", "content")
    found = frame_to_arrow(files.mapInArrow(partial(_read_batches, schema, form), _COLUMNS)).to_pylist()
    bad = [
        BadRow(row["file"], row["line"], Fault(row["code"], row["reason"]), row["text"])
        for row in found
        if row["facts"] is None
    ]
    tables = [pa.ipc.open_stream(row["facts"]).read_all() for row in found if row["facts"] is not None]
    empty = schema.arrow().empty_table()
    if not schema.columns:
        count = sum(int(row["line"]) for row in found if row["facts"] is not None)
        return table_of_columns(schema.arrow(), count, []), bad
    return pa.concat_tables([empty, *tables]), sorted(bad, key=lambda row: (row.file, row.line))


def _read_batches(schema: Schema, form: Format, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields, in a task, a row with the good facts of each file as an Arrow stream, and a row for every bad one."""
    for batch in batches:
        for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            file = path_of(path)
            data = unpacked(content, file) if form.is_gzip or content[:2] == b"\x1f\x8b" else content
            if form.kind is Kind.JSON_LINES:
                table, bad = read_json_lines(schema, data, file)
            else:
                table, bad = read_text(schema, data, file, form)
            rows: list[tuple[Any, ...]] = [
                (row.file, row.line, row.fault.code, row.fault.reason, row.text, None) for row in bad
            ]
            rows.append((file, table.num_rows, None, None, None, _stream(table)))
            columns = list(zip(*rows, strict=True))
            kinds = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.binary())
            names = ("file", "line", "code", "reason", "text", "facts")
            yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=list(names))


def _stream(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


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
