"""Streams of updates: Structured Streaming hands over micro-batches, in which updates are found.

Of a folder of diff files each file is an update and its name the batch, so that not even a lost checkpoint applies one
twice. Of any other stream a micro-batch is an update, or every part of it: rows with the same step, or of the same
file. Its batch is Spark's number (and what the part is) under the identity that the checkpoint gives the query; batches
of parts are named so that a store remembers those of the latest micro-batch only (see `storage.entries`). A table of
the catalogue is about the relation that it is named after, or has a column `relation`; what is appended to it is
applied. How they are applied: `applying`.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.files.diff import OPERATION, TABULAR, TEXTUAL, Diff, read_diff
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.spark.frames import absolute, frame_to_arrow, path_of, reading
from elastalog.pipeline.streams import RELATION, named_relation, read_changes, relation_column
from elastalog.relations.schema import Schema, column_order, schema_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from elastalog.session.pending import PendingUpdate

EVERY_AGE = {"maxFileAge": "36500d"}
"""Left to itself Spark passes over files that are a week older than the newest it has seen."""

_BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"


@dataclass(frozen=True, slots=True)
class Arrived:
    """An update that has arrived but is not read yet, since its meaning may depend on rules that an earlier one
    changes. `read` is given the update to fill."""

    source: str
    batch: str
    read: Callable[[PendingUpdate], Diff]


@dataclass(frozen=True, slots=True)
class Arriving:
    """A stream of updates. `updates` finds them in a micro-batch, given its number."""

    stream: DataFrame
    updates: Callable[[DataFrame, int], Sequence[Arrived]]


def stream_of_parts(
    stream: DataFrame,
    schemas: Mapping[str, Schema],
    parting: Parting,
    relation: str | None,
    source: str,
    check: Callable[[Diff, str], None] | None = None,
) -> Arriving:
    """Rows with `op` (`+` or `-`) and the columns of `relation`; without one, a column `relation` says what a row is
    about, and `a1`, `a2`, … are the values in order. `source`: the name of the stream in the log. `check` may refuse an
    update; it is told where the update is from."""
    named: dict[str, str] = {}
    if relation is None:
        columns = [name for name in stream.columns if name not in parting.columns]
        _require_form(stream, [OPERATION, relation_column(stream.columns) or RELATION, *parting.columns])
    else:
        schema = schema_named(schemas, relation)
        _require_form(stream, [OPERATION, *parting.columns])
        rest = [name for name in stream.columns if name not in (OPERATION, *parting.columns)]
        order = column_order(schema, rest, what="the stream", warns=False)
        columns = [OPERATION, *schema.names]
        named = {name: rest[place] for name, place in zip(schema.names, order, strict=True)}
    selected = [f"`{named.get(name, name)}` AS `{name}`" for name in (*parting.columns, *columns)]

    def checked(part: Part, pending: PendingUpdate) -> Diff:
        diff = read_changes(part.rows, pending.schemas, relation, part.place, keep_bad=pending.keeps_bad)
        if check is not None:
            check(diff, part.place)
        return diff

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        # What values of a declared type become, the declaration says.
        rows = frame_to_arrow(batch.selectExpr(*selected), whole=None if relation is None else parting.columns)
        identity = f"{source}:{batch.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}"
        return [Arrived(identity, part.batch, partial(checked, part)) for part in parting.parts(rows, number)]

    return Arriving(stream, updates)


def stream_of_diff_files(spark: SparkSession, folder: str | os.PathLike[str], files_at_once: int | None) -> Arriving:
    """The diff files that appear in a folder, each an update. Those that Spark finds together come in natural order of
    their names; with `files_at_once`, it takes no more at a time, the oldest first."""
    reader = spark.readStream.options(**EVERY_AGE).format("binaryFile").option("pathGlobFilter", "[!._]*")
    if files_at_once is not None:
        reader = reader.option("maxFilesPerTrigger", files_at_once)
    with reading("updates", os.fspath(folder)):
        stream = reader.schema(_BINARY_FILE).load(absolute(folder)).select("path", "content")
    source = f"files:{absolute(folder)}"

    def updates(batch: DataFrame, number: int) -> list[Arrived]:
        uris = {Path(path_of(row.path)): row.path for row in batch.select("path").collect()}
        return [
            Arrived(source, path.name, partial(_read_file, path, partial(_content, batch, uris[path])))
            for path in sorted(uris, key=natural_order)
            if path.suffix in TABULAR + TEXTUAL
        ]

    return Arriving(stream, updates)


def change_feed(
    spark: SparkSession, folder: str | os.PathLike[str], relation: str, *, stream: bool = False
) -> DataFrame:
    """The change feed of a relation: columns `op`, those of the relation, `epoch`. As a stream, with `stream`."""
    path = absolute(Path(folder) / relation)
    with reading("a change feed", path):
        known = spark.read.parquet(path)
    if not stream:
        return known
    return spark.readStream.options(**EVERY_AGE).schema(known.schema).parquet(path)


def _read_file(path: Path, content: Callable[[], bytes], pending: PendingUpdate) -> Diff:
    """The changes of a file. Of one that is not on this machine a copy is read; its name tells the relation and the
    format."""
    if path.exists():
        return read_diff(path, pending.schemas, pending.schemas_with, keep_bad=pending.keeps_bad)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / re.sub(r".*/", "", str(path))
        copy.write_bytes(content())
        return read_diff(copy, pending.schemas, pending.schemas_with, keep_bad=pending.keeps_bad)


def _content(batch: DataFrame, uri: str) -> bytes:
    return bytes(batch.filter(batch.path == uri).first().content)  # type: ignore[union-attr]  # it is in the batch


def _require_form(stream: DataFrame, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in stream.columns]
    if missing:
        raise malformed(f"the stream has no column {', '.join(f'`{name}`' for name in missing)}", stream)
    if not stream.isStreaming:
        raise malformed("the DataFrame is not a stream: use `spark.readStream`, or `db.apply`")
    kind = dict(stream.dtypes)[OPERATION]
    if kind.split(" ")[0] != "string":
        raise malformed(f"column `op` is {kind}, not string")


_FORM = (
    "a stream of updates has a column `op` of `+` and `-`, and the columns of the relation; or a column"
    " `relation` and the values in `a1`, `a2`, …"
)


def malformed(message: str, stream: DataFrame | None = None, advice: str = _FORM) -> ElastalogError:
    """The stream, or a micro-batch of it, is not as updates are written."""
    notes = () if stream is None else (f"its columns are {', '.join(stream.columns)}",)
    return ElastalogError([Diagnostic("E1108", message, help=advice, notes=notes)])


_FILE, _TIME = "@file", "@time"


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a micro-batch that are an update. `batch` identifies it within its query, `place` is for diagnostics."""

    batch: str
    place: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Parting:
    """How micro-batches are taken apart. `columns`: those of the stream that say so, which come first in the rows.
    `parts`: the updates of a micro-batch, in order, their rows without these columns, given its number."""

    columns: tuple[str, ...]
    parts: Callable[[pa.Table, int], list[Part]]


WHOLE = Parting((), lambda rows, number: [Part(str(number), f"batch {number}", rows)])
"""A micro-batch is an update."""


def by_steps(column: str) -> Parting:
    """All rows with the same whole number in a column are an update, in ascending order."""

    def parts(rows: pa.Table, number: int) -> list[Part]:
        place = f"batch {number}"
        steps, rest = rows.column(0), rows.remove_column(0)
        if steps.null_count or not pa.types.is_integer(steps.type):
            raise malformed(f"{place} has steps that are not whole numbers")
        return [
            Part(f"{number} step {step}", place, rest.filter(pc.equal(steps, step)))
            for step in sorted(pc.unique(steps).to_pylist())
        ]

    return Parting((column,), parts)


def _files_in(rows: pa.Table, number: int) -> list[Part]:
    files, rest = rows.column(_FILE), rows.drop_columns([*BY_FILES.columns])
    found = rows.select([*BY_FILES.columns]).group_by([*BY_FILES.columns]).aggregate([])
    ordered = found.sort_by([(name, "ascending") for name in BY_FILES.columns]).column(_FILE).to_pylist()
    return [
        Part(f"{number} file {path_of(file)}", path_of(file), rest.filter(pc.equal(files, file))) for file in ordered
    ]


BY_FILES = Parting((_TIME, _FILE), _files_in)
"""Every file is an update, the oldest first, those of the same age in the order of their paths. For streams that
`with_files` gives."""


def with_files(stream: DataFrame) -> DataFrame | None:
    """A stream with the columns that tell its files apart; None if Spark does not know from which file a row is."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as sql

    if "_metadata" in stream.columns:  # of the user
        return None
    time, file = sql.col("_metadata.file_modification_time"), sql.col("_metadata.file_path")
    try:
        known = stream.select("*", time.alias(_TIME), file.alias(_FILE))
        return known if known.columns[-2:] == [_TIME, _FILE] else None  # Spark Connect looks at the select only now
    except AnalysisException:
        return None


STEPS = ("step", "epoch", "batch")
"""Columns that say which update a row belongs to; the first that there is counts."""

_ORDERED = (
    f"give the table a column `{'`, `'.join(STEPS[:-1])}` or `{STEPS[-1]}`: rows with the same number there are an"
    " update, in ascending order"
)
_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_MOST_LISTED = 10
_MOST_BYTES = 1 << 28
"""Files of a table that are taken at a time, all rows of which are in the driver then; at least one."""


def is_table_name(text: str) -> bool:
    """Whether a text may name a table, as `edge` or `lake.graphs.edge`."""
    return _NAME.fullmatch(text) is not None


def stream_of_table(
    spark: SparkSession, name: str, schemas: Mapping[str, Schema], relation: str | None = None
) -> Arriving:
    """What a table holds, then what is appended to it. Rows are about `relation`, by default the one that the table is
    named after; or a column `relation` says so. Those with the same number in a column of `STEPS` are an update;
    without one, every file of the table is, or every micro-batch where Spark does not tell files apart."""
    require_table(spark, name)
    stream = _table_stream(spark, name, {})
    if relation is None:
        relation = _relation_of(name, stream.columns, schemas)
    step = _step(stream, schemas, relation)
    source = f"table:{name}"
    if step is not None:
        return stream_of_parts(stream, schemas, by_steps(step), relation, source)
    # A fact that one file inserts and a later one deletes has to be gone, however many files come together.
    known = with_files(_table_stream(spark, name, {"maxBytesPerTrigger": str(_MOST_BYTES)}))
    if known is not None:
        return stream_of_parts(known, schemas, BY_FILES, relation, source)
    # One file at a time is not promised, and not every kind of table knows the option.
    stream = _table_stream(spark, name, {"maxFilesPerTrigger": "1"})
    return stream_of_parts(stream, schemas, WHOLE, relation, source, _require_order)


def _table_stream(spark: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    with reading("a stream", f"table {name}"):
        return spark.readStream.options(**EVERY_AGE, **options).table(name)


def _relation_of(name: str, columns: Sequence[str], schemas: Mapping[str, Schema]) -> str | None:
    """The relation that a table is named after; None if a column, which is no attribute of that, names relations."""
    last = _last_part(name)
    return last if named_relation(columns, schemas.get(last)) is None else None


def _require_order(diff: Diff, place: str) -> None:
    """A diagnostic if a fact comes and goes in an update, which may be several that have arrived together."""
    for name in diff.inserted.keys() & diff.deleted.keys():
        inserted, deleted = diff.inserted[name], diff.deleted[name]
        if inserted.num_columns:
            both = inserted.join(deleted, inserted.column_names, join_type="left semi").slice(0, 1).to_pylist()
        else:  # with rows, but nothing to join by
            both = [{}] if inserted.num_rows and deleted.num_rows else []
        for fact in both:
            text = f"{name}({', '.join(map(repr, fact.values()))})"
            raise malformed(f"{place} inserts and deletes {text}, and nothing says which comes last", advice=_ORDERED)


def _step(stream: DataFrame, schemas: Mapping[str, Schema], relation: str | None) -> str | None:
    schema = None if relation is None else schemas.get(relation)
    attributes = () if schema is None else schema.names
    return next((name for name in STEPS if name in stream.columns and name not in attributes), None)


def require_table(spark: SparkSession, name: str) -> None:
    """A diagnostic unless the catalogue has a table, or a view, of this name."""
    with reading("the catalogue", name):
        if spark.catalog.tableExists(name):
            return
    database = ".".join(re.findall(_PART, name)[:-1])
    tables = sorted(_tables(spark, database))
    listed = ", ".join(tables[:_MOST_LISTED]) + (", …" if len(tables) > _MOST_LISTED else "")
    advice = "make the table, or name its database too; which catalogues there are is set with the Spark session"
    raise error(
        "E1110",
        name=name,
        why=f"there are {listed}" if tables else "there are no tables beside which it could be",
        advice=advice,
        near=did_you_mean(name, tables),
    )


def _tables(spark: SparkSession, database: str) -> list[str]:
    """The names of the tables of a database, or of the current one; none if there is no such database."""
    from pyspark.errors import PySparkException

    try:
        found = spark.catalog.listTables(database or None)
    except PySparkException:
        return []
    return [f"{database}.{table.name}" if database and not table.isTemporary else table.name for table in found]


def _last_part(name: str) -> str:
    parts: list[str] = re.findall(_PART, name)
    return parts[-1].strip("`")
