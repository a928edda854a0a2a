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
from elastalog.backends.spark.filed import FiledRelation
from elastalog.backends.spark.word_files import write_changes, write_words
from elastalog.pipeline.spark.stored_relations import filed_relation
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.facts import FactWords
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import Dictionary

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
    from elastalog.backends.spark.relations import SparkRelations

    def refuse(*_: Any) -> Any:
        raise AssertionError("the driver fetches a relation")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkRelations, "_read", refuse)
        yield


def values(frame: Any) -> set[tuple[Any, ...]]:
    return {tuple(int(v) if type(v).__name__ == "Decimal" else v for v in row) for row in frame.collect()}


def test_every_type_with_annotations(spark: Any) -> None:
    with elastalog.open(KINDS, facts={"item": ITEMS}) as local:
        wanted = {tuple(row.values()) for row in local["near"].to_arrow(annotations=True).to_pylist()}
    with elastalog.open(KINDS, facts={"item": ITEMS}, engine="spark", spark=spark) as db, nothing_fetched():
        frame = db["near"].to_spark(annotations=True)
        assert [name for name, _ in frame.dtypes] == ["a", "n", "u", "f", "s", "@level", "@count"]
        assert values(frame) == wanted
        assert frame.filter("a = 'a' and s = 'b'").count() == 1


REACH = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


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
