"""Where Spark finds facts, and how they are read: every row is a fact of the declared columns, or is located and
handled by the policy for bad rows.

Text is read by tasks, with the readers of `pipeline.files`, so that a file means the same to both engines: plain text
by the block, a file that cannot be split by lines (headers, quoted fields, JSON) whole by one task. Spark's CSV reader
is not used: it turns empty texts into nulls, and with column pruning lets bad rows pass in silence. Only if there are
bad rows files are read once more, to tell where they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base, Directive, Relation
from elastalog.backends.spark.cluster import require_running
from elastalog.folders.addresses import without_secrets
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import unpacked
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, Format, Kind
from elastalog.pipeline.files.json_files import read_json_lines
from elastalog.pipeline.files.parquet import NULLARY, read_parquet_table
from elastalog.pipeline.files.paths import find_facts, resolve_under
from elastalog.pipeline.files.policy import BadRow, BadRows, settle
from elastalog.pipeline.files.read import FactsRead, read_input, without_dictionaries
from elastalog.pipeline.files.text import read_lines, read_text
from elastalog.pipeline.spark.frames import (
    absolute,
    arrow_fields,
    evaluating,
    frame_to_arrow,
    path_of,
    plain_frame,
    reading,
    with_columns_of,
)
from elastalog.pipeline.spark.large_facts import Destination as Destination
from elastalog.pipeline.spark.large_facts import FiledFacts, filed_facts, frame_in_driver
from elastalog.pipeline.spark.session import require_session
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema
from elastalog.relations.tables import joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pc = late.module("pyarrow.compute")

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
    if a destination is given and they are many."""
    if isinstance(rows, Source):
        return *_read(require_session(spark), schema, rows, into), without_secrets(rows.place)
    frame, place = plain_frame(rows), f"the DataFrame of `{schema.name}`"
    require_running(frame.sparkSession)
    with evaluating(schema.name):
        return *facts_of_frame(schema, frame, place, into), place


def read_rows(
    spark: SparkSession | None, schema: Schema, rows: Any, policy: BadRows, into: Destination | None = None
) -> FactsRead:
    """As `facts_given`, bad rows dealt with as the policy says."""
    return _settled(schema, *facts_given(spark, schema, rows, into), policy)


def _settled(schema: Schema, facts: pa.Table | FiledFacts, bad: list[BadRow], place: str, policy: BadRows) -> FactsRead:
    report = settle(policy, schema.name, [place], facts.num_rows, bad)
    if isinstance(facts, FiledFacts):
        return FactsRead(schema.arrow().empty_table(), report, facts.files)
    return FactsRead(facts, report)


def read_inputs(
    spark: SparkSession | None,
    relation: Relation,
    root: Path,
    policy: BadRows,
    into: Destination | None = None,
) -> FactsRead:
    """The facts of all `.input` directives of a relation, from files or folders of files under a root, read by Spark;
    in files of the destination, if one is given, there is one directive, and they are many."""
    spark, schema = require_session(spark), Schema.of(relation)
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
            return _settled(schema, table, bad_here, source.place, policy)
        tables.append(table)
        bad += bad_here
        files.append(source.place)
    table = tables[-1] if len(tables) <= 2 else joined(list(map(without_dictionaries, tables)))
    return FactsRead(table, settle(policy, relation.name, files, table.num_rows, bad))


def _input_source(name: str, root: Path, directive: Directive) -> Source:
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
                given, read = (_lines_at, _read_lines) if is_plain else (_files_at, _read_whole)
                return _read_by_tasks(schema, partial(given, spark, place), partial(read, form), into)
            case "json":
                form = Format(kind=Kind.JSON_LINES, is_gzip=source.place.endswith(".gz"))
                return _read_by_tasks(schema, partial(_files_at, spark, place), partial(_read_whole, form), into)
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
    frame = with_columns_of(schema, frame, place)
    filed = None if into is None else filed_facts(schema, frame, into)
    if filed is not None:
        return filed, []
    return read_parquet_table(schema, frame_in_driver(frame), place, keeps_dictionaries=True)


def _frame_of_files(spark: SparkSession, schema: Schema, source: Source, place: str) -> DataFrame:
    """The rows of columnar files. Where names of folders may be numbers or dates, `code=007`, Spark takes them for
    such; those of symbols stay texts."""
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
    for place, row in enumerate(bad):
        line = int(numbers[row.line - 1].as_py()) + 1 if source.kind == "parquet" else row.line
        bad[place] = replace(row, file=path_of(files[row.line - 1].as_py()), line=line)
    return table, sorted(bad, key=lambda row: (row.file, row.line))


_TOLD = pa.schema({"@bad": pa.int64(), "@told": pa.string()})
"""Of what a task has read: columns behind those of facts, null in their rows. Other rows are of a part of a block: how
many bad rows it has, and as JSON its file and block, the number of its lines, and the bad rows."""

Reader: TypeAlias = Callable[[Schema, pa.Array, str, int, bool], tuple[pa.Table, list[BadRow]]]
"""Reads lines, from one on, of a block, which may begin a file; or the only content of a file."""


def _read_by_tasks(
    schema: Schema, source: Callable[[bool], DataFrame], read: Reader, into: Destination | None
) -> Found:
    """The good rows of files and the bad ones with file and line; in files of the destination, if one is given and they
    are many. `source`: what tasks are given, bytes with their file and block; files need their names only when they are
    read again, since there are bad rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_schema

    kinds = arrow_fields(schema, annotations=False)
    # To Spark the names of two attributes may be one, `a` and `A`.
    fields = pa.schema([*(pa.field(f"c{i}", kind) for i, kind in enumerate(kinds.values())), *_TOLD])
    work, seen = partial(_read_in_task, schema, read, fields), Observation()
    found = source(False).mapInArrow(work, from_arrow_schema(fields))
    rows = found.observe(seen, sql.sum("@bad").alias("bad")).filter("`@told` IS NULL")
    good = rows.select(*fields.names[: len(kinds)]).toDF(*kinds)
    table: pa.Table | FiledFacts | None = None if into is None else filed_facts(schema, good, into)
    if table is None:
        table, _ = read_parquet_table(schema, frame_in_driver(good), "", keeps_dictionaries=True)
    if not seen.get["bad"]:
        return table, []
    placed = source(True).mapInArrow(work, from_arrow_schema(fields)).filter("`@told` IS NOT NULL")
    return table, _located([json.loads(row["@told"]) for row in placed.select("@told").toArrow().to_pylist()])


def _located(parts: list[Any]) -> list[BadRow]:
    """Bad rows at the lines of their files. Blocks of a file may be read in any order."""
    sizes = Counter[tuple[str, int]]()
    for file, block, number, _ in parts:
        sizes[file, block] += number
    before, lines = dict[tuple[str, int], int](), Counter[str]()
    for file, block in sorted(sizes):
        before[file, block] = lines[file]
        lines[file] += sizes[file, block]
    bad = [
        BadRow(path_of(file), before[file, block] + line, Fault(*fault), text)
        for file, block, _, rows in parts
        for line, text, *fault in rows
    ]
    return sorted(bad, key=lambda row: (row.file, row.line))


def _read_in_task(
    schema: Schema, read: Reader, fields: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields a row for every fact, and one for every part of a block."""
    known, lines = None, 0
    for batch in batches:
        for start, stop in _runs(batch):
            content, file, block = batch.column(0)[start:stop], *(batch.column(i)[start].as_py() for i in (1, 2))
            lines = lines if known == (file, block) else 0
            known = file, block
            table, bad = read(schema, content, file, lines + 1, block == 0)
            columns = [*(table.columns or [pa.array([True] * table.num_rows)])]
            columns += [pa.nulls(table.num_rows)] * len(_TOLD)
            facts = [column.cast(field.type) for column, field in zip(columns, fields, strict=True)]
            yield from pa.table(facts, schema=fields).to_batches()
            rows = [(row.line, row.text, row.fault.code, row.fault.reason, row.fault.advice) for row in bad]
            told = {"@bad": len(bad), "@told": json.dumps([file, block, stop - start, rows])}
            yield pa.RecordBatch.from_pylist([told], schema=fields)
            lines += stop - start


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """From which row to which one block of a file goes."""
    files = batch.column(1).dictionary_encode().indices.to_numpy()
    blocks = batch.column(2).to_numpy()
    borders = np.flatnonzero((files[1:] != files[:-1]) | (blocks[1:] != blocks[:-1])) + 1
    yield from pairwise([0, *borders.tolist(), len(files)] if len(files) else ())


def _lines_at(spark: SparkSession, place: str, is_placed: bool) -> DataFrame:
    """The lines of text files. Where no names are needed, numbers stand for them."""
    from pyspark.sql import functions as sql

    file = sql.col("_metadata.file_path")
    text = spark.read.option("lineSep", "\n").text(place)
    named = file if is_placed else sql.xxhash64(file).cast("string")
    block = sql.col("_metadata.file_block_start")
    return text.select(sql.col("value").cast("binary").alias("line"), named.alias("file"), block.alias("block"))


def _files_at(spark: SparkSession, place: str, is_placed: bool) -> DataFrame:
    files = spark.read.format("binaryFile").load(place)
    return files.selectExpr("content", "path", "CAST(0 AS BIGINT)")


def _read_lines(
    form: Format, schema: Schema, lines: pa.Array, file: str, first: int, is_beginning: bool
) -> tuple[pa.Table, list[BadRow]]:
    data: bytes = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), b"\n")[0].as_py() + b"\n"
    if is_beginning and first == 1:
        data = data.removeprefix(BYTE_ORDER_MARK)
    return read_lines(schema, data, file, form, first)


def _read_whole(form: Format, schema: Schema, files: pa.Array, file: str, *_: object) -> tuple[pa.Table, list[BadRow]]:
    (content,), file = files.to_pylist(), path_of(file)
    data = unpacked(content, file) if form.is_gzip or content[:2] == b"\x1f\x8b" else content
    return read_json_lines(schema, data, file) if form.kind is Kind.JSON_LINES else read_text(schema, data, file, form)
