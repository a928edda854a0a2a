"""Facts of large DataFrames go to files without passing through the driver, and stay there through updates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import elastalog
import elastalog.spark
from elastalog.backends.spark import word_files
from elastalog.backends.spark.routing import hashed
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.files import files_at
from elastalog.pipeline.spark import large_facts
from elastalog.relations.limits import LEAST_NARROW, WIDE
from tests.spark.following import are_same, both

CLOSURE = "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
"""
CLOSED = PROGRAM + CLOSURE
COLUMNS = "x bigint, y bigint"
ROWS = [(i, i + 1) for i in range(-20, 20)]
UPDATES = [([(20, 30), (30, 31)], [(-15, -14)]), ([(-15, -14), ROWS[0]], [(30, 31), (30, 99)])]

NAMED = CLOSED.replace("number", "symbol").replace("edge(x: symbol", "edge(x: symbol, n: unsigned").replace(
    "edge(x, y)", "edge(x, _, y)").replace("edge(y, z)", "edge(y, _, z)")  # fmt: skip
NAMED_COLUMNS = "x string, n bigint, y string"
NAMED_ROWS = [(f"node {i}", i * 7, f"node {i + 1}") for i in range(40)]


@pytest.fixture(autouse=True)
def is_large(spark: Any) -> Iterator[None]:
    """Every DataFrame is large enough."""
    spark.conf.set(large_facts.SETTING, "0")
    yield
    spark.conf.unset(large_facts.SETTING)


def evicted(db: elastalog.Session) -> set[str]:
    """The relations that are in files only."""
    found: set[str] = db._backend.kernel.evicted
    return found


def frame_of(spark: Any, rows: list[tuple[int, int]]) -> Any:
    return spark.createDataFrame(rows, COLUMNS)


def test_no_fact_comes_into_the_driver(spark: Any) -> None:
    frames = {"edge": frame_of(spark, ROWS * 2).select("y", "x")}
    with both(CLOSED, {"edge": ROWS}, spark, frames=frames) as sessions:
        db = sessions.db
        assert evicted(db) == {"edge", "path"}
        assert (len(db["edge"]), db.reports[0].loaded) == (40, 80)
        for inserted, deleted in UPDATES:
            tried = db.preview({"edge": [(20, 99)]}, {"edge": [ROWS[3]]})  # and is taken back
            assert set(tried["edge"].inserted) == {(20, 99)}
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert evicted(db) == {"edge", "path"}
        are_same(db, sessions.local)
        assert not evicted(db)  # somebody has looked
        sessions.apply({"edge": [(99, 3)]}, {"edge": [ROWS[7]]})


def test_texts_are_numbered_and_seen_once(spark: Any) -> None:
    frame = spark.createDataFrame(NAMED_ROWS * 2, NAMED_COLUMNS).repartition(3).select("y", "x", "n")
    with both(NAMED, {"edge": NAMED_ROWS}, spark, frames={"edge": frame}) as sessions:
        sessions.apply({"edge": [("node 40", 1, "new")]}, {"edge": [NAMED_ROWS[5], ("new", 1, "unknown")]})
        assert evicted(sessions.db) == {"edge", "path"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"strategy": "recompute"}, marks=pytest.mark.long),
        {"strategy": "dredc"},
        pytest.param({"levels": "global", "budget": None}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_other_annotations(spark: Any, options: dict[str, Any]) -> None:
    with both(CLOSED, {"edge": ROWS}, spark, frames={"edge": frame_of(spark, ROWS)}, **options) as sessions:
        assert "edge" in evicted(sessions.db)
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})


def test_many_updates_have_tasks_write_the_files_anew(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_files, "_MOST_FILES", 1)
    with elastalog.open(PROGRAM, {"edge": frame_of(spark, ROWS)}, engine="spark", spark=spark) as db:
        current = db._backend.relations.files.current
        numbers = []
        for i in range(4):
            db.apply({"edge": [(100, i)]}, {"edge": [ROWS[i]]})
            numbers.append(len(current["edge"].changes))
            assert all(files_at(file.path).exists(file.path) for file in current["edge"].files)
        assert numbers == [1, 2, 1, 2]
        assert "edge" in evicted(db)
        assert set(db["edge"]) == {*ROWS[4:], *((100, i) for i in range(4))}


def test_explicit_facts_of_a_relation_that_has_rules(spark: Any) -> None:
    text = CLOSED.replace("path(x, y) :- edge(x, y).\n", "")
    given = {"path": frame_of(spark, ROWS[:3]), "edge": frame_of(spark, ROWS)}
    with both(text, {"path": ROWS[:3], "edge": ROWS}, spark, frames=given) as sessions:
        sessions.apply({"path": [(9, 8)]}, {"path": ROWS[:2]})
        assert evicted(sessions.db) == {"edge", "path"}


@pytest.mark.parametrize(
    ("rows", "columns"),
    [([(1, 2**40)], COLUMNS), ([(1, 2.0)], "x bigint, y double")],
    ids=["a wide number", "a column of another type"],
)
def test_what_tasks_cannot_write_takes_the_ordinary_way(spark: Any, rows: list[Any], columns: str) -> None:
    frame = spark.createDataFrame(rows, columns)
    with elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark) as db:
        assert "edge" not in evicted(db)
        assert set(db["edge"]) == set(rows)


def test_bad_rows_are_named_as_ever(spark: Any) -> None:
    frame = spark.createDataFrame([*ROWS, (7, None)], COLUMNS).coalesce(1)
    with pytest.raises(ElastalogError, match="`y` is null") as raised:
        elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark)
    assert [d.location for d in raised.value.diagnostics] == ["the DataFrame of `edge`:41"]


def test_facts_of_the_text_and_a_frame(spark: Any) -> None:
    given = {"edge": frame_of(spark, ROWS)}
    with elastalog.open(PROGRAM + "edge(7, 7).\n", given, engine="spark", spark=spark) as db:
        assert set(db["edge"]) == {*ROWS, (7, 7)}


def test_a_stratum_that_the_driver_evaluates_fetches_them(spark: Any) -> None:
    with elastalog.open(CLOSED, {"edge": frame_of(spark, ROWS)}, engine="auto", spark=spark) as db:
        assert not evicted(db)
        assert len(db["path"]) == 40 * 41 // 2


def test_a_folder_of_text_files(spark: Any, tmp_path: Path) -> None:
    """Bad lines do not bring the others into the driver."""
    lines = [f"{x}\t{y}\n" for x, y in ROWS]
    (tmp_path / "edge.facts").write_text("".join([*lines[:30], "7\n", *lines[30:], "7\t0x7\n"]), encoding="utf-8")
    with elastalog.open(PROGRAM, tmp_path, engine="spark", spark=spark, bad_rows="skip") as db:
        assert "edge" in evicted(db)
        (report,) = db.reports
        assert (report.loaded, [row.line for row in report.first_bad]) == (41, [31])
        assert set(db["edge"]) == {*ROWS, (7, 7)}


def test_a_store_of_facts_in_files(spark: Any, tmp_path: Path) -> None:
    (inserted, deleted), store = UPDATES[0], tmp_path / "store"
    with elastalog.open(CLOSED, {"edge": frame_of(spark, ROWS)}, engine="spark", spark=spark, store=store) as db:
        db.apply({"edge": inserted}, {"edge": deleted})
        assert evicted(db) == {"edge", "path"}
        assert {tuple(row) for row in db["edge"].to_spark().collect()} == {*ROWS, *inserted} - {*deleted}
    with elastalog.open(store=store) as db:
        assert set(db["edge"]) == {*ROWS, *inserted} - {*deleted}


def test_spark_shares_rows_as_tasks_do(spark: Any) -> None:
    words = [0, 1, -1, 65535, 65536, WIDE - 1, LEAST_NARROW, 2**31 - 1, -(2**31), *range(-500, 70_000, 777)]
    for shares in (1, 2, 7, 200):
        found = spark.createDataFrame([(word,) for word in words], "c0 int").select(large_facts._share(shares))
        assert [row[0] for row in found.collect()] == hashed(np.array(words, np.int32), shares).tolist()


def test_a_task_given_several_shares_writes_a_file_for_each(tmp_path: Path) -> None:
    batches = [pa.record_batch({"c0": [1, 2, 1], "@share": [3, 5, 3]}), pa.record_batch({"c0": [4], "@share": [5]})]
    found = pa.Table.from_batches(large_facts._write_shares(str(tmp_path), "r", iter(batches))).to_pylist()
    assert [(row["share"], row["rows"], row["found"]) for row in found] == [(3, 1, 2), (5, 2, 2)]
    assert len({row["location"] for row in found}) == 2
