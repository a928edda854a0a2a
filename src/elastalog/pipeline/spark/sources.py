"""Where Spark finds facts, and how they are read: every row is a fact of the declared columns, or is located and
handled by the policy for bad rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

import pyarrow as pa

from elastalog.analysis.program import Base, Directive, Relation
from elastalog.backends.spark.cluster import require_running
from elastalog.folders.addresses import without_secrets
from elastalog.late import dataclass
from elastalog.pipeline.files.format import Format, Kind
from elastalog.pipeline.files.parquet import NULLARY, read_parquet_table
from elastalog.pipeline.files.paths import find_facts, resolve_under
from elastalog.pipeline.files.policy import BadRow, BadRows, settle
from elastalog.pipeline.files.read import FactsRead, read_input
from elastalog.pipeline.spark.filed_facts import Destination, FiledFacts, filed_facts
from elastalog.pipeline.spark.frames import frame_to_arrow, path_of, plain_frame, require_columns
from elastalog.pipeline.spark.lines import read_lines
from elastalog.pipeline.spark.refusals import absolute, evaluating, reading
from elastalog.pipeline.spark.texts import alike, numbered_facts
from elastalog.pipeline.spark.whole_files import read_whole_files
from elastalog.relations.schema import Schema
from elastalog.relations.tables import joined

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
"""Facts, in the driver or in files, and the rows that are none."""


def read_source(
    spark: SparkSession, schema: Schema, source: Source, policy: BadRows, into: Destination | None = None
) -> FactsRead:
    """The facts of a source, and how the reading went; in files, if a destination is given and they are many."""
    place = without_secrets(source.place)
    return _settled(schema, _read(spark, schema, source, into), [place], policy)


def facts_of_source(spark: SparkSession, schema: Schema, source: Source) -> tuple[pa.Table, list[BadRow], str]:
    """The facts of a source, in the driver, the rows that are none, and where they are from."""
    return *_read(spark, schema, source, None), without_secrets(source.place)


def read_frame(schema: Schema, frame: Any, policy: BadRows, into: Destination | None = None) -> FactsRead:
    """The facts of a DataFrame, and how the reading went; in files, if a destination is given and they are many."""
    place = place_of_frame(schema)
    return _settled(schema, facts_of_given_frame(schema, frame, into), [place], policy)


def place_of_frame(schema: Schema) -> str:
    """Where rows of a DataFrame given for a relation are from, as diagnostics name it."""
    return f"the DataFrame of `{schema.name}`"


def facts_of_given_frame(schema: Schema, rows: Any, into: Destination | None = None) -> Found:
    """The rows of a DataFrame that a user has made which are facts, and those that are not."""
    frame = plain_frame(rows)
    require_running(frame.sparkSession)
    with evaluating(schema.name):
        return facts_of_frame(schema, frame, place_of_frame(schema), into)


def _settled(schema: Schema, found: Found, files: list[str], policy: BadRows) -> FactsRead:
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
    inputs = [directive for directive in relation.directives if directive.kind == "input"]
    for directive in inputs:
        if directive.parameters.get("IO") in ("json", "jsonfile", "sqlite", "rdf"):
            # One file that cannot be split: the driver reads it as it would without Spark.
            one = replace(relation, directives=(directive,))
            facts = read_input(one, root, policy)
            tables.append(facts.table)
            files.extend(facts.report.files)
            continue
        source = _input_source(relation.name, root, directive)
        table, bad_here = _read(spark, schema, source, into if len(inputs) == 1 else None)
        if isinstance(table, FiledFacts):
            return _settled(schema, (table, bad_here), [source.place], policy)
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
