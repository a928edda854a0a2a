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
from elastalog.backends.spark import filed
from elastalog.backends.spark.routing import hashed
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.files import files_at
from elastalog.pipeline.spark import filed_facts, texts
from elastalog.relations.limits import LEAST_NARROW, WIDE
from tests.engine.judging import facts_of, levels_of

PROGRAM = """
.decl edge(x: symbol, n: number, y: symbol)
.input edge
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, _, y).
path(x, z) :- path(x, y), edge(y, _, z).
"""
COLUMNS = "x string, n bigint, y string"
ROWS = [(f"node {i}", i - 20, f"node {i + 1}") for i in range(40)]
UPDATES = [
    ([("node 40", 7, "new"), ("new", 8, "newer")], [("node 5", -15, "node 6")]),
    ([("node 5", -15, "node 6"), ROWS[0]], [("new", 8, "newer"), ("new", 8, "unknown")]),
]


@pytest.fixture(autouse=True)
def is_large(spark: Any) -> Iterator[None]:
    """Every DataFrame is large enough."""
    spark.conf.set(texts.SETTING, "0")
    yield
    spark.conf.unset(texts.SETTING)


def evicted(db: elastalog.Session) -> set[str]:
    """The relations that are in files only."""
    found: set[str] = db._backend.kernel.evicted  # type: ignore[attr-defined]
    return found


def test_no_fact_comes_into_the_driver(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS * 2, COLUMNS).repartition(3).select("y", "x", "n")
    with (
        elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark) as db,
        elastalog.open(PROGRAM, {"edge": ROWS}) as local,
    ):
        assert evicted(db) == {"edge", "path"}
        assert (len(db["edge"]), db.reports[0].loaded) == (40, 80)
        for inserted, deleted in UPDATES:
            changes, wanted = (each.apply({"edge": inserted}, {"edge": deleted}) for each in (db, local))
            for name in ("edge", "path"):
                assert set(changes[name].inserted) == set(wanted[name].inserted)
                assert set(changes[name].deleted) == set(wanted[name].deleted)
            assert evicted(db) == {"edge", "path"}
        assert levels_of(db) == levels_of(local)
        assert not evicted(db)  # somebody has looked
        for each in (db, local):
            each.apply({"edge": [("late", 1, "node 3")]}, {"edge": [ROWS[7]]})
        assert levels_of(db) == levels_of(local)


@pytest.mark.parametrize(
    "options", [{"strategy": "recompute"}, {"strategy": "dredc"}, {"levels": "global", "budget": None}], ids=str
)
def test_other_annotations(spark: Any, options: dict[str, Any]) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    with (
        elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark, **options) as db,
        elastalog.open(PROGRAM, {"edge": ROWS}, **options) as local,
    ):
        assert "edge" in evicted(db)
        for inserted, deleted in UPDATES:
            for each in (db, local):
                each.apply({"edge": inserted}, {"edge": deleted})
        assert (levels_of if "levels" in options else facts_of)(db) == (levels_of if "levels" in options else facts_of)(
            local
        )


def test_an_update_that_is_taken_back_leaves_the_files_as_they_were(spark: Any) -> None:
    with elastalog.open(PROGRAM, {"edge": spark.createDataFrame(ROWS, COLUMNS)}, engine="spark", spark=spark) as db:
        found = db.preview({"edge": [("node 40", 1, "far")]}, {"edge": [ROWS[3]]})
        assert set(found["edge"].inserted) == {("node 40", 1, "far")}
        assert evicted(db) == {"edge", "path"}
        assert set(db["edge"]) == set(ROWS)


def test_many_updates_have_tasks_write_the_files_anew(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filed, "_MOST_FILES", 2)
    with elastalog.open(PROGRAM, {"edge": spark.createDataFrame(ROWS, COLUMNS)}, engine="spark", spark=spark) as db:
        current = db._backend.relations.files.current  # type: ignore[attr-defined]
        numbers = []
        for i in range(5):
            db.apply({"edge": [("more", i, "node 0")]}, {"edge": [ROWS[i]]})
            numbers.append(len(current["edge"].changes))
            assert all(files_at(file.path).exists(file.path) for file in current["edge"].files)
        assert numbers == [1, 2, 3, 1, 2]
        assert evicted(db) == {"edge", "path"}
        assert set(db["edge"]) == {*ROWS[5:], *(("more", i, "node 0") for i in range(5))}


def test_explicit_facts_of_a_relation_that_has_rules(spark: Any) -> None:
    text = PROGRAM.replace(".input edge", "").replace("path(x, y) :- edge(x, _, y).\n", "")
    paths = [(x, y) for x, _, y in ROWS[:3]]
    given = {"path": spark.createDataFrame(paths, "x string, y string"), "edge": spark.createDataFrame(ROWS, COLUMNS)}
    with (
        elastalog.open(text, given, engine="spark", spark=spark) as db,
        elastalog.open(text, {"path": paths, "edge": ROWS}) as local,
    ):
        for each in (db, local):
            each.apply({"path": [("node 9", "node 8")]}, {"path": paths[:2]})
        assert evicted(db) == {"edge", "path"}
        assert levels_of(db) == levels_of(local)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([("a", 2**40, "b")], COLUMNS),
        ([("a", 1, "b")], "x string, n float, y string"),
    ],
    ids=["a wide number", "a column of another type"],
)
def test_what_tasks_cannot_write_takes_the_ordinary_way(spark: Any, rows: list[Any], columns: str) -> None:
    frame = spark.createDataFrame([(x, float(n) if "float" in columns else n, y) for x, n, y in rows], columns)
    with elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark) as db:
        assert "edge" not in evicted(db)
        assert set(db["edge"]) == set(rows)


def test_bad_rows_are_named_as_ever(spark: Any) -> None:
    frame = spark.createDataFrame([*ROWS, ("a", None, "b")], COLUMNS).coalesce(1)
    with pytest.raises(ElastalogError, match="`n` is null") as raised:
        elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark)
    assert [d.location for d in raised.value.diagnostics] == ["the DataFrame of `edge`:41"]


def test_facts_of_the_text_and_a_frame(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    with elastalog.open(PROGRAM + 'edge("a", 1, "b").\n', {"edge": frame}, engine="spark", spark=spark) as db:
        assert set(db["edge"]) == {*ROWS, ("a", 1, "b")}


@pytest.mark.parametrize(("line", "is_filed"), [("a\t1\tb\n", True), ("a\t0x1\tb\n", False)])
def test_a_folder_of_text_files(spark: Any, tmp_path: Path, line: str, is_filed: bool) -> None:
    """Lines that the driver has to judge bring the others there too."""
    text = "".join("\t".join(map(str, row)) + "\n" for row in ROWS) + line
    (tmp_path / "edge.facts").write_text(text, encoding="utf-8")
    with elastalog.open(PROGRAM, tmp_path, engine="spark", spark=spark) as db:
        assert ("edge" in evicted(db)) is is_filed
        assert set(db["edge"]) == {*ROWS, ("a", 1, "b")}


def test_a_store_of_facts_in_files(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    with elastalog.open(PROGRAM, {"edge": frame}, engine="spark", spark=spark, store=tmp_path / "store") as db:
        db.apply(*({"edge": side} for side in UPDATES[0]))
        assert evicted(db) == {"edge", "path"}
        assert {tuple(row) for row in db["edge"].to_spark().collect()} == {*ROWS, *UPDATES[0][0]} - {*UPDATES[0][1]}
    with elastalog.open(store=tmp_path / "store") as db:
        assert set(db["edge"]) == {*ROWS, *UPDATES[0][0]} - {*UPDATES[0][1]}


def test_spark_shares_rows_as_tasks_do(spark: Any) -> None:
    words = [0, 1, -1, 65535, 65536, WIDE - 1, LEAST_NARROW, 2**31 - 1, -(2**31), *range(-500, 70_000, 777)]
    for shares in (1, 2, 7, 200):
        found = spark.createDataFrame([(word,) for word in words], "c0 int").select(filed_facts._share(shares))
        assert [row[0] for row in found.collect()] == hashed(np.array(words, np.int32), shares).tolist()


def test_a_task_given_several_shares_writes_a_file_for_each(tmp_path: Path) -> None:
    batches = [pa.record_batch({"c0": [1, 2, 1], "@share": [3, 5, 3]}), pa.record_batch({"c0": [4], "@share": [5]})]
    found = pa.Table.from_batches(filed_facts._write_shares(str(tmp_path), "r", iter(batches))).to_pylist()
    assert [(row["share"], row["rows"], row["found"]) for row in found] == [(3, 1, 2), (5, 2, 2)]
    assert len({row["location"] for row in found}) == 2
