"""Results that tasks keep in files become DataFrames without passing through the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
import elastalog.spark
from elastalog.analysis.program import Base
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.backends.spark.word_files import FiledRelation, write_changes, write_words
from elastalog.pipeline.spark.sinks import filed_relation
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.facts import FactWords
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import Dictionary
from tests.closures import CLOSURE as REACH
from tests.refusals import refused

KINDS = """
.decl item(n: number, u: unsigned, f: float, s: symbol)
.decl near(a: symbol, n: number, u: unsigned, f: float, s: symbol)
near(s, n, u, f, s) :- item(n, u, f, s).
near(a, n, u, f, t) :- near(a, _, _, _, s), item(n, u, f, t), s < t.
"""
ITEMS = [(-(2**40), 2**63 + 1, 0.5, "a"), (7, 7, -1.5, "b"), (2**30, 0, 0.0, "ü")]


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """In the block the driver does not read what tasks have written."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the driver fetches a relation")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FiledRelation, "read", refuse)
        yield


def values(frame: Any) -> set[tuple[Any, ...]]:
    return {tuple(int(v) if type(v).__name__ == "Decimal" else v for v in row) for row in frame.collect()}


@pytest.mark.parametrize("most", [1 << 20, 2], ids=["texts in a file", "texts in several"])
def test_every_type_with_annotations(spark: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.backends.spark.values.MOST_IN_A_FILE", most)
    with elastalog.open(KINDS, facts={"item": ITEMS}) as local:
        wanted = {tuple(row.values()) for row in local["near"].to_arrow(annotations=True).to_pylist()}
    with elastalog.open(KINDS, facts={"item": ITEMS}, engine="spark", spark=spark) as db, nothing_fetched():
        frame = db["near"].to_spark(annotations=True)
        assert [name for name, _ in frame.dtypes] == ["a", "n", "u", "f", "s", "@level", "@count"]
        assert values(frame) == wanted
        assert frame.filter("a = 'a' and s = 'b'").count() == 1


def test_they_are_written_and_stay_what_they_were(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": [(1, 2), (2, 3)]}, engine="spark", spark=spark) as db:
        with nothing_fetched():
            elastalog.spark.write(db, "path", "parquet", str(tmp_path / "path"))
            before = db["path"].to_spark()
        db.apply({"edge": [(3, 4)]}, {"edge": [(1, 2)]})
        after = db["path"].to_spark()
        assert values(before) == {(1, 2), (2, 3), (1, 3)}
        assert values(after) == {(2, 3), (3, 4), (2, 4)}
    assert values(spark.read.parquet(str(tmp_path / "path"))) == {(1, 2), (2, 3), (1, 3)}


def test_a_relation_without_facts(spark: Any) -> None:
    with elastalog.open(REACH, facts={"edge": []}, engine="spark", spark=spark) as db:
        frame = db["path"].to_spark()
        assert frame.columns == ["x", "y"]
        assert frame.count() == 0


def test_the_last_of_several_changes_holds(spark: Any) -> None:
    def state(rows: list[tuple[int, ...]]) -> list[Any]:
        array = np.array(rows, np.int32)
        return [array[:, :1], *(array[:, i] for i in range(1, array.shape[1]))]

    folder = new_folder(spark, "changes")
    base = write_words(folder, "p", FactWords(*state([(1, 0, 1), (2, 1, 2), (3, 1, 1)])))
    # 1 goes and comes back higher, 2 goes, 3 stays, 4 comes and goes, 5 comes: word, level before, level, count.
    first = write_changes(folder, "p", StateChanges(*state([(1, 0, GONE, 0), (4, GONE, 1, 1), (5, GONE, 2, 3)])))
    second = write_changes(folder, "p", StateChanges(*state([(1, GONE, 4, 2), (2, 1, GONE, 0), (4, 1, GONE, 0)])))
    schema = Schema("p", (Column("x", Base.NUMBER),))
    filed = FiledRelation((base,), (first, second))
    assert values(filed_relation(spark, schema, filed, Dictionary(), annotations=True)) == {
        (1, 4, 2), (3, 1, 1), (5, 2, 3),
    }  # fmt: skip


RECORDS = """
.type Pair = [n: unsigned, s: symbol]
.type Tree = Leaf {n: unsigned} | Node {of: Tree}
.decl given(n: unsigned, s: symbol)
.decl made(p: Pair, t: Tree)
made([n, s], $Leaf(n)) :- given(n, s).
made(p, $Node(t)) :- made(p, t), t = $Leaf(_).
"""


def test_records_become_structs_and_go_back(spark: Any, tmp_path: Path) -> None:
    given = [(2**64 - 1, "a"), (2, "b")]
    with elastalog.open(RECORDS, facts={"given": given}) as local:
        wanted = set(local["made"])
    facts = {"given": given}
    with elastalog.open(RECORDS, facts=facts, engine="spark", spark=spark, store=tmp_path / "store") as db:
        frame = db["made"].to_spark()
        assert frame.dtypes == [("p", "struct<n:decimal(20,0),s:string>"), ("t", "string")]
    for found in (frame, elastalog.spark.read_relation(spark, tmp_path / "store", "made")):
        with elastalog.open(RECORDS, facts={"made": found}, spark=spark) as back:
            assert set(back["made"]) == wanted


def test_a_relation_without_attributes_goes_there_and_back(spark: Any, tmp_path: Path) -> None:
    program = ".decl on()\n.decl off()\n"
    with elastalog.open(program, facts={"on": [()]}, spark=spark) as db:
        assert (list(db["on"]), list(db["off"])) == ([()], [])
        for name in db:
            elastalog.spark.write(db, name, "csv", tmp_path / name)
    with elastalog.open(
        program, facts={name: elastalog.spark.csv(tmp_path / name) for name in ("on", "off")}, spark=spark
    ) as db:
        assert (list(db["on"]), list(db["off"])) == ([()], [])


def test_slips_in_what_is_to_be_written_are_told(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(REACH, facts={"edge": [(1, 2)]}, spark=spark) as db:
        elastalog.spark.write(db, "path", "parquet", tmp_path / "path")
        for code, kind, place, mode in (
            ("E1111", "parquet", tmp_path / "path", "error"),
            ("E0612", "avro", tmp_path / "other", "error"),
            ("E0612", "parquet", tmp_path / "other", "replace"),
            ("E0617", "parquet", None, "error"),
        ):
            with refused(code):
                elastalog.spark.write(db, "path", kind, place, mode=mode)
