"""Spark sessions; stores that Spark reads and makes; and relations that Spark writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, assert_never, get_args

import pyarrow as pa

from elastalog.diagnostics.arguments import require_one_of, require_path
from elastalog.pipeline.files.parquet import NULLARY
from elastalog.pipeline.spark.frames import absolute, arrow_fields, frame_of_shares, writing
from elastalog.pipeline.spark.session import require_session, spark_session
from elastalog.pipeline.spark.workplace import new_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elastalog.program import Program
    from elastalog.relations.schema import Schema
    from elastalog.session import Session
    from elastalog.spark.stored_rows import Share


_COLUMNS = ("relation", "file", "line", "code", "reason", "text")


def session(cores: int | None = None, *, memory: str = "2g", settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active Spark session if there is one, otherwise a local one with `cores` (all of them by default) and
    `memory` for the Java side. `settings` are added to ours, or replace them. The data source `elastalog` is known to
    it."""
    spark = spark_session(cores, memory=memory, settings=settings)
    from elastalog.spark.data_source import ElastalogSource

    spark.dataSource.register(ElastalogSource)
    return spark


def read_relation(
    spark: Any, store: str | os.PathLike[str], relation: str, *, epoch: int | None = None, annotations: bool = False
) -> Any:
    """A relation of a store at an epoch, the last one by default, as a DataFrame; with `annotations`, columns `@level`
    and `@count` follow. Tasks read the store's own files: the driver looks at the journal only, and evaluates nothing;
    a relation with records it reads itself. The epoch stays what it is, whatever a writer of the store does
    meanwhile."""
    import elastalog
    from elastalog.analysis.program import Base
    from elastalog.evaluation.stored import unmoved
    from elastalog.relations.schema import schema_named
    from elastalog.spark.stored_rows import folder_of, readable, shares_of, state_and_schemas
    from elastalog.storage.snapshots import set_aside

    root = folder_of(os.fspath(store))
    with unmoved(root):
        state, schemas = state_and_schemas(root, epoch)
        if any(column.base is Base.RECORD for column in schema_named(schemas, relation).columns):
            with elastalog.open(store=elastalog.Store(root, at=state.epoch)) as db:
                return db[relation].to_spark(annotations, spark)
        state, schema = readable(root, relation, epoch)
        shares = shares_of(state, relation, None)
        folder = new_folder(spark, "stored")
        set_aside(state, relation, folder)
    fields = arrow_fields(schema, annotations)
    return frame_of_shares(spark, len(shares), partial(_share, folder, schema, shares, list(fields)), fields)


def _share(folder: str, schema: Schema, shares: list[Share], names: list[str], number: int) -> Iterator[pa.Table]:
    """What a task does."""
    from elastalog.spark.stored_rows import folder_of, rows_of_share

    return rows_of_share(folder_of(folder), schema, shares[number], names)


def init_store(
    spark: Any,
    store: str | os.PathLike[str],
    program: str | os.PathLike[str] | Program,
    facts: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Makes a new store of what follows from facts, evaluated on Spark. What tasks have derived they write into the
    store themselves, levels and counts included: the driver never holds it. `options` are those of `elastalog.open`."""
    import elastalog
    from elastalog.storage.objects.writing import refuse_existing_at

    refuse_existing_at(store)
    elastalog.open(program, facts, store=store, engine="spark", spark=spark, **options).close()


_Kind = Literal["parquet", "orc", "csv", "json", "jdbc", "table"]
_Mode = Literal["overwrite", "append", "error", "errorifexists", "ignore"]

_CSV = {"emptyValue": "", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
"""Left to itself Spark strips texts, writes a backslash before a quote, and two quotes for an empty text."""


def write(
    db: Session,
    relation: str,
    kind: _Kind,
    place: str | os.PathLike[str],
    *,
    mode: _Mode = "error",
    options: Mapping[str, str] | None = None,
) -> None:
    """Writes a relation as it is now: `kind` is `parquet`, `orc`, `csv`, `json`, `jdbc` (`place` is the URL of the
    database, the table is `options["dbtable"]`) or `table`; `mode`, if something is there, `error`, `overwrite`,
    `append` or `ignore`."""
    require_one_of("kind", kind, get_args(_Kind))
    require_one_of("mode", mode, get_args(_Mode))
    require_path("what is written has a place", place, "give a path, the name of a table, or the URL of a database")
    place, frame = os.fspath(place), db[relation].to_spark()
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


def bad_rows(db: Session) -> Any:
    """A DataFrame of the rows that were set aside or skipped when the session was opened: relation, file, line, code,
    reason, text; of rows that were skipped, those that the reports name."""
    rows: list[dict[str, Any]] = []
    for report in db.reports:
        found = [row.as_json() for row in report.first_bad]
        if report.quarantine is not None and report.quarantine.exists():
            found = list(map(json.loads, report.quarantine.read_text(encoding="utf-8").splitlines()))
        rows += [{"relation": report.relation, **row} for row in found]
    columns = pa.schema([(name, pa.int64() if name == "line" else pa.string()) for name in _COLUMNS])
    return require_session(None).createDataFrame(pa.Table.from_pylist(rows, columns))
