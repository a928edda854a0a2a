"""Many texts: facts reach the driver through files of tasks, or stay in files, and are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elastalog
import elastalog.spark
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.spark import large_facts
from elastalog.relations import large_interner
from elastalog.relations.large_interner import LargeInterner
from elastalog.settings import SETTINGS

PROGRAM = """
.decl item(name: symbol, number: number, kind: symbol)
.decl named(name: symbol)
named(n) :- item(n, _, _).
"""
COLUMNS = "name string, number bigint, kind string"
ROWS = [("zz", 1, "b"), ("ä", 2**40, "Z"), ("", -3, "zz"), ("😀", 4, "a"), ("b", 5, "")]
TEXTS = {"", "Z", "a", "b", "zz", "ä", "😀"}


@pytest.fixture(autouse=True)
def is_large(spark: Any) -> Iterator[None]:
    """Every DataFrame is large enough."""
    spark.conf.set(large_facts.SETTING, "0")
    yield
    spark.conf.unset(large_facts.SETTING)


def symbols(db: elastalog.Session) -> list[str]:
    return db._dictionary.symbols.strings_from(0)


def test_the_facts_are_the_same_however_they_are_parted(spark: Any) -> None:
    for parts in (1, 3):
        frame = spark.createDataFrame(ROWS, COLUMNS).repartition(parts)
        with elastalog.open(PROGRAM, facts={"item": frame.select("kind", "name", "number")}, spark=spark) as db:
            assert set(db["item"]) == set(ROWS)
            assert set(db["named"]) == {(name,) for name, _, _ in ROWS}
            assert sorted(symbols(db)) == sorted(TEXTS)


def test_texts_do_not_reach_the_driver_row_by_row(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS * 50, COLUMNS).coalesce(2)
    table = large_facts.frame_in_driver(frame)
    kind = pa.dictionary(pa.int32(), pa.string())
    assert [field.type for field in table.schema] == [kind, pa.int64(), kind]
    assert table.num_rows == 250
    assert [len(chunk.dictionary) for chunk in table.column(0).chunks] == [5] * table.column(0).num_chunks
    assert large_facts.frame_in_driver(frame.limit(0)).num_rows == 0


def test_tasks_that_are_repeated_change_no_id(spark: Any) -> None:
    def failing_at_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            raise OSError("the first attempt fails after its work")

    frame = spark.createDataFrame(ROWS, COLUMNS).repartition(2).mapInArrow(failing_at_first, COLUMNS)
    with elastalog.open(PROGRAM, facts={"item": frame}, spark=spark) as db:
        assert sorted(symbols(db)) == sorted(TEXTS)
        assert set(db["item"]) == set(ROWS)


def test_ids_stay_through_updates_and_in_a_store(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    with elastalog.open(PROGRAM, facts={"item": frame}, spark=spark, store=tmp_path / "store") as db:
        known = symbols(db)
        db.apply({"item": spark.createDataFrame([("new", 1, "zz"), ("Z", 2, "even newer")], COLUMNS)})
        assert symbols(db)[:-2] == known
        assert set(symbols(db)[-2:]) == {"even newer", "new"}
        known = symbols(db)
    with elastalog.open(store=tmp_path / "store") as db:
        assert symbols(db) == known
        # What comes in the ordinary way goes on from there.
        db.apply({"item": [("ä", 9, "last")]})
        assert symbols(db)[-1] == "last"
        assert set(db["item"]) == {*ROWS, ("new", 1, "zz"), ("Z", 2, "even newer"), ("ä", 9, "last")}


def test_texts_that_the_driver_has_no_memory_for_lie_in_files(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that tasks look into, which they read from files of their own."""
    monkeypatch.setenv(large_interner.VARIABLE, "10000")
    monkeypatch.setattr(SETTINGS, "few_texts", 100)
    monkeypatch.setattr(SETTINGS, "spark_few_texts", 100)
    monkeypatch.setattr(large_facts, "_PIECE", 500)
    frame = spark.range(3000).selectExpr("concat('left ', id) AS name", "id AS number", "concat('right ', id) AS kind")
    text = PROGRAM + '.decl round(name: symbol)\nround(k) :- item(n, _, k), match(".*00", n).\n'
    with elastalog.open(text, facts={"item": frame}, engine="spark", spark=spark) as db:
        known = db._dictionary.symbols._texts
        assert isinstance(known, LargeInterner)
        assert all(map(large_interner.is_mapped, (known._bytes, known._ends, known._index[0])))
        assert {placement.where for placement in db._backend.placements.values()} == {"tasks"}
        assert len(db["named"]) == 3000
        assert set(db["round"]) == {(f"right {i}",) for i in range(0, 3000, 100) if i}
        db.apply({"item": [("left 5", 5, "other"), ("new 00", 1, "newer")]}, {"item": [("left 100", 100, "right 100")]})
        assert ("newer",) in set(db["round"])
        assert ("right 100",) not in set(db["round"])


def test_bad_rows_are_named_as_ever(spark: Any) -> None:
    frame = spark.createDataFrame([*ROWS, (None, 6, "b")], COLUMNS).coalesce(1)
    with pytest.raises(ElastalogError, match="`name` is null") as raised:
        elastalog.open(PROGRAM, facts={"item": frame}, spark=spark)
    assert [d.location for d in raised.value.diagnostics] == ["the DataFrame of `item`:6"]


def test_text_files_with_lines_of_both_kinds(spark: Any, tmp_path: Path) -> None:
    """Numbers may be written in several ways."""
    (tmp_path / "item.facts").write_text("zz\t1\tb\nä\t0x1f\tZ\nb\t 7\tnew\n", encoding="utf-8")
    source = elastalog.spark.facts(str(tmp_path / "item.facts"))
    with elastalog.open(PROGRAM, facts={"item": source}, spark=spark) as db:
        assert set(db["item"]) == {("zz", 1, "b"), ("ä", 31, "Z"), ("b", 7, "new")}


def test_a_small_frame_comes_as_it_is(spark: Any) -> None:
    spark.conf.set(large_facts.SETTING, "1000000")
    table = large_facts.frame_in_driver(spark.createDataFrame(ROWS, COLUMNS))
    assert [field.type for field in table.schema] == [pa.string(), pa.int64(), pa.string()]
