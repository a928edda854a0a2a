"""Tables of the catalogue as streams of updates."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elastalog
import elastalog.spark
from tests.commands import run
from tests.refusals import refused

PROGRAM = """
.decl edge(x: number, y: number)
.decl name(x: number, text: symbol)
.decl path(x: number, y: number)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def database(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A database of tables that nobody else has."""
    spark.sql(f"CREATE DATABASE updates LOCATION '{tmp_path / 'lake'}'")
    yield "updates"
    spark.sql("DROP DATABASE updates CASCADE")


def append(spark: Any, table: str, columns: str, *rows: tuple[Any, ...]) -> None:
    """One file more in a table; the first makes it."""
    spark.createDataFrame(list(rows), columns).coalesce(1).write.mode("append").format("parquet").saveAsTable(table)


def apply(spark: Any, table: str, db: Any, notes: Path, **options: Any) -> elastalog.spark.StreamHandle:
    handle = elastalog.spark.apply_table(spark, table, db, checkpoint=notes, available_now=True, **options)
    handle.wait()
    return handle


LONG = pytest.mark.long
EDGES = "op string, x bigint, y bigint"


def test_every_file_of_a_table_is_an_epoch_once(spark: Any, database: str, tmp_path: Path) -> None:
    table = f"{database}.edge"
    append(spark, table, EDGES, ("+", 1, 2), ("+", 2, 3))
    append(spark, table, EDGES, ("-", 2, 3))
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        # One after the other: in one epoch, a fact that is inserted and deleted would stay.
        assert apply(spark, table, db, tmp_path / "notes").applied == 2
        assert set(db["path"]) == {(1, 2)}
    before = {*(tmp_path / "lake" / "edge").glob("*.parquet")}
    append(spark, table, EDGES, ("+", 2, 4))
    for path in {*(tmp_path / "lake" / "edge").glob("*.parquet")} - before:
        os.utime(path, (time.time() - 30 * 86400,) * 2)  # its age does not matter
    with elastalog.open(store=tmp_path / "store") as db:
        assert apply(spark, table, db, tmp_path / "notes").applied == 1
        assert (db.epoch, set(db["path"])) == (4, {(1, 2), (2, 4), (1, 4)})


def test_files_that_come_together_are_applied_one_by_one(spark: Any, database: str, tmp_path: Path) -> None:
    """The oldest first, whatever its name and its age. A failure in between repeats none of them."""
    table = f"{database}.edge"
    append(spark, table, EDGES, ("+", 7, 8))
    written = [*(tmp_path / "lake" / "edge").glob("part-*.parquet")]
    for name, age, row in (("b", 900, ("+", 1, 2)), ("a", 800, ("-", 1, 2)), ("c", 800, ("+", 2, 3))):
        append(spark, table, EDGES, row)
        (path,) = {*(tmp_path / "lake" / "edge").glob("*.parquet")} - {*written}
        written.append(path.rename(path.with_name(f"{name} 1.parquet")))
        (path.parent / f".{path.name}.crc").rename(path.parent / f".{written[-1].name}.crc")
        os.utime(written[-1], (time.time() - age * 86400,) * 2)
    spark.catalog.refreshTable(table)
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "store") as db:
        commit = db._updates.commit

        def failing(update: Any, *rest: Any) -> Any:
            if update.batch.endswith("c 1.parquet"):
                raise OSError("the power failed")
            return commit(update, *rest)

        db._updates.commit = failing
        with pytest.raises(OSError, match="the power failed"):
            apply(spark, table, db, tmp_path / "notes")
        assert (db.epoch, len(db["edge"])) == (3, 0)
        del db._updates.commit
        handle = apply(spark, table, db, tmp_path / "notes")
        assert (handle.applied, handle.repeated) == (2, 2)
        folder = tmp_path / "lake" / "edge"
        assert [entry.batch for entry in db.log()][1:4] == [f"0 file {folder / name} 1.parquet" for name in "bac"]
        assert set(db["edge"]) == {(2, 3), (7, 8)}


@pytest.mark.parametrize(
    "column", ["step", *(pytest.param(name, marks=pytest.mark.long) for name in ("epoch", "batch"))]
)
def test_rows_with_the_same_number_are_an_epoch(spark: Any, database: str, tmp_path: Path, column: str) -> None:
    table = f"{database}.links"
    columns = f"{column} int, {EDGES}"
    append(spark, table, columns, (2, "-", 1, 2), (1, "+", 1, 2))
    append(spark, table, columns, (2, "+", 3, 4), (3, "+", 5, 6))
    with elastalog.open(PROGRAM, facts={}) as db:
        assert apply(spark, table, db, tmp_path / "notes", relation="edge").applied == 3
        assert set(db["edge"]) == {(3, 4), (5, 6)}


def test_a_column_may_say_which_relation_a_row_is_about(spark: Any, database: str, tmp_path: Path) -> None:
    table = f"{database}.changes"
    columns = "relation string, op string, a1 string, a2 string"
    append(spark, table, columns, ("edge", "+", "1", "2"), ("name", "+", "1", "one"), ("name", "+", "2", ""))
    append(spark, table, columns, ("name", "-", "1", "one"), ("edge", "+", "2", "3"))
    with elastalog.open(PROGRAM, facts={}) as db:
        assert apply(spark, table, db, tmp_path / "notes").applied == 2
        assert set(db["name"]) == {(2, "")}
        assert set(db["path"]) == {(1, 2), (2, 3), (1, 3)}


def test_an_attribute_may_have_the_name_of_such_a_column(spark: Any, database: str, tmp_path: Path) -> None:
    program = ".decl edge(pred: number, relation: symbol)\n.decl a1(a1: number)\n"
    append(spark, f"{database}.edge", "op string, pred bigint, relation string", ("+", 1, "a1"))
    append(spark, f"{database}.a1", "op string, relation string, a1 bigint", ("+", "a1", 7))
    with elastalog.open(program, facts={}) as db:
        apply(spark, f"{database}.edge", db, tmp_path / "notes")
        apply(spark, f"{database}.a1", db, tmp_path / "more")
        assert (set(db["edge"]), set(db["a1"])) == ({(1, "a1")}, {(7,)})


def test_a_row_about_no_relation_is_refused(spark: Any, database: str, tmp_path: Path) -> None:
    table = f"{database}.changes"
    append(spark, table, "relation string, op string, a1 bigint, a2 bigint", ("edge", "+", 1, 2), ("egde", "+", 1, 2))
    with elastalog.open(PROGRAM, facts={}) as db:
        with refused(match="no relation `egde`", help="did you mean `edge`?"):
            apply(spark, table, db, tmp_path / "notes")
        assert db.epoch == 1


def test_the_change_feed_of_one_session_drives_another(spark: Any, database: str, tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts={}, store=tmp_path / "first") as first:
        append(spark, f"{database}.edge", EDGES, ("+", 1, 2), ("+", 2, 3))
        append(spark, f"{database}.edge", EDGES, ("-", 1, 2))
        apply(spark, f"{database}.edge", first, tmp_path / "notes", changes=tmp_path / "feed")
    spark.sql(f"CREATE TABLE {database}.path USING parquet LOCATION '{tmp_path / 'feed' / 'path'}'")
    farther = ".decl path(x: number, y: number)\n.decl far(y: number)\n.input path\nfar(y) :- path(_, y).\n"
    with elastalog.open(farther, facts={}) as second:
        assert apply(spark, f"{database}.path", second, tmp_path / "more").applied == 2
        assert set(second["far"]) == {(3,)}


def test_a_streaming_view_is_a_table(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame([("+", 1, 2)], EDGES).coalesce(1).write.parquet(str(tmp_path / "in"))
    spark.readStream.schema(EDGES).parquet(str(tmp_path / "in")).createOrReplaceTempView("edge")
    with elastalog.open(PROGRAM, facts={}) as db:
        assert apply(spark, "edge", db, tmp_path / "notes").applied == 1
        assert set(db["edge"]) == {(1, 2)}
        # Spark does not say of which file a row of a view is, nor which of them is the later one.
        spark.createDataFrame([("-", 1, 2), ("+", 3, 4)], EDGES).coalesce(1).write.parquet(str(tmp_path / "in" / "a"))
        spark.createDataFrame([("+", 1, 2)], EDGES).coalesce(1).write.parquet(str(tmp_path / "in" / "b"))
        stream = spark.readStream.schema(EDGES).option("recursiveFileLookup", True).parquet(str(tmp_path / "in"))
        stream.createOrReplaceTempView("edge")
        with refused("E1108", match=r"inserts and deletes edge\(1, 2\), and nothing says"):
            apply(spark, "edge", db, tmp_path / "more")
        assert db.epoch == 2
    spark.catalog.dropTempView("edge")


def test_what_cannot_be_a_source_is_said_before_anything_starts(spark: Any, database: str, tmp_path: Path) -> None:
    append(spark, f"{database}.edge", "x bigint, y bigint", (1, 2))
    spark.range(3).createOrReplaceTempView("numbers_of_a_test")
    with elastalog.open(PROGRAM, facts={}) as db:
        with refused("E1110", match=f"no table `{database}.edges`", help=f"did you mean `{database}.edge`?"):
            apply(spark, f"{database}.edges", db, tmp_path / "notes")
        with refused("E1108", match="no column `op`"):
            apply(spark, f"{database}.edge", db, tmp_path / "notes")
        with refused("E1105", match="numbers_of_a_test"):
            apply(spark, "numbers_of_a_test", db, tmp_path / "notes")
    spark.catalog.dropTempView("numbers_of_a_test")


def test_the_command_applies_a_table(
    spark: Any, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAM.replace(".decl name(x: number, text: symbol)\n", "")
    (tmp_path / "reach.dl").write_text(program, encoding="utf-8")
    (tmp_path / "edge.facts").write_text("1\t2\n", encoding="utf-8")
    append(spark, f"{database}.edge", EDGES, ("+", 2, 3))
    command = ["stream", "reach.dl", "--source", f"{database}.edge", "--store", "store", "--once"]
    monkeypatch.chdir(tmp_path)
    first = run(*command)
    assert (first.exit_code, first.stderr) == (0, "epoch 2: 1 update applied\n"), first.output
    append(spark, f"{database}.edge", EDGES, ("-", 1, 2))
    assert run(*command).stderr == "epoch 3: 1 update applied\n"
    for wrong, code, told in (
        ([*command[:3], "incoming", *command[4:]], 1, "error[E1110]: no table `incoming` in the catalogue of Spark"),
        ([*command[:3], "incoming", *command[4:]], 1, "there is no folder `incoming` either"),
        ([*command[:3], "store", *command[4:], "--relation", "edge"], 2, "--relation: only for a table"),
        ([*command, "--conf", "spark.jars"], 2, "'spark.jars' is not KEY=VALUE"),
    ):
        failed = run(*wrong)
        assert (failed.exit_code, told in failed.stderr) == (code, True)
    with elastalog.open(store=elastalog.Store(tmp_path / "store", read_only=True)) as db:
        assert set(db["path"]) == {(2, 3)}
