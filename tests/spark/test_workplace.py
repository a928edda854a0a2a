"""A workplace at an address: driver and executors have nothing in common but a server that speaks S3."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elastalog
import elastalog.spark as es
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.folders.remote import Patience
from elastalog.pipeline.spark import large_facts, workplace
from tests.engine.judging import levels_of
from tests.object_server import Trouble
from tests.object_store import Bucket
from tests.spark.exchanging import DOUBLING, LINEAR
from tests.spark.without_spark import tasks_in_this_process

TEXTS = """
.decl likes(who: symbol, whom: symbol)
.decl fond(who: symbol, whom: symbol, how: float)
fond(x, z, 0.5) :- likes(x, y), likes(y, z).
"""
CYCLE = {"edge": [(1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]}


@pytest.fixture
def far(spark: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session of Spark whose workplace is at an address."""
    monkeypatch.setattr(workplace, "_made", {})
    spark.conf.set(workplace.SETTING, bucket.address("spark"))
    yield spark
    spark.conf.unset(workplace.SETTING)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [pytest.param(LINEAR, id="decomposed"), pytest.param(DOUBLING, id="exchanging", marks=pytest.mark.long)]
)
def test_a_server_that_is_slow_and_fails(
    bucket: Bucket, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Patience, "first_pause", 0.01)
    with (
        tasks_in_this_process(bucket.address(tmp_path.name), 2) as session,
        bucket.troubled(Trouble(("503", "500", "late 503"), share=0.1, delay=0.002)),
        elastalog.open(text, CYCLE, budget=None, engine="spark", spark=session) as db,
        elastalog.open(text, CYCLE, budget=None) as local,
    ):
        for inserted, deleted in (([(5, 6)], []), ([(6, 1)], [(2, 3)])):
            db.apply({"edge": inserted}, {"edge": deleted})
            local.apply({"edge": inserted}, {"edge": deleted})
        assert db._backend.kernel.evicted == {"path"}
        assert levels_of(db) == levels_of(local)


def test_what_nobody_needs_is_removed(bucket: Bucket) -> None:
    with tasks_in_this_process(bucket.address("clean"), 2) as session:
        with elastalog.open(DOUBLING, CYCLE, budget=None, engine="spark", spark=session) as db:
            for i in range(3):
                db.apply({"edge": [(5 + i, 6 + i)]}, {"edge": [(4 + i, 5 + i)]})
            current = db._backend.relations.files.current
            known = {file.path.rpartition("/")[2].partition("?")[0] for f in current.values() for file in f.files}
            seen = {key.rpartition("/")[2] for key in bucket.keys("clean") if key.endswith(".parquet")}
            assert seen == known
            assert not [key for key in bucket.keys("clean") if key.endswith(".round")]
        del db, current
    gc.collect()
    assert not [key for key in bucket.keys("clean") if key.endswith(".parquet")]


def test_an_update_over_its_budget(bucket: Bucket) -> None:
    edges = [(i, i + 1) for i in range(40)]
    with (
        tasks_in_this_process(bucket.address("budget"), 2) as session,
        elastalog.open(DOUBLING, {"edge": edges}, budget=0.001, engine="spark", spark=session) as db,
    ):
        db.apply({}, {"edge": [(20, 21)]})
        assert len(db["path"]) == 21 * 20 // 2 + 20 * 19 // 2


# --- on Spark itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["decomposed", "exchanging"])
def test_tasks_of_spark_meet_at_an_address(far: Any, bucket: Bucket, text: str) -> None:
    with (
        elastalog.open(text, CYCLE, budget=None, engine="spark", spark=far) as db,
        elastalog.open(text, CYCLE, budget=None) as local,
    ):
        assert any(key.endswith(".parquet") for key in bucket.keys("spark"))
        changes = db.apply({"edge": [(6, 1)]}, {"edge": [(2, 3)]})
        wanted = local.apply({"edge": [(6, 1)]}, {"edge": [(2, 3)]})
        assert set(changes["path"].inserted) == set(wanted["path"].inserted)
        frame = db["path"].to_spark(annotations=True)
        db.apply({"edge": [(9, 9)]})  # the frame stays what it is
        rows = local["path"].to_arrow(annotations=True).to_pydict()
        assert {tuple(row) for row in frame.collect()} == set(zip(*rows.values(), strict=True))


def test_texts_floats_and_a_store_made_by_tasks(far: Any, tmp_path: Path) -> None:
    likes = [("a", "b"), ("b", "c"), ("b", ""), ("ü", "a")]
    es.init_store(far, tmp_path / "store", TEXTS, {"likes": likes})
    wanted = {("a", "c", 0.5), ("a", "", 0.5), ("ü", "b", 0.5)}
    with elastalog.open(store=tmp_path / "store") as db:
        assert set(db["fond"]) == wanted
        db.apply({"likes": [("c", "new")]})
    wanted.add(("b", "new", 0.5))
    frame = es.read_relation(far, tmp_path / "store", "fond")
    assert {tuple(row) for row in frame.collect()} == wanted


def test_many_texts_are_numbered_without_a_mount(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    likes = [(f"n{i}", f"n{i + 1}") for i in range(50)]
    frame = far.createDataFrame(likes, "who string, whom string")
    far.conf.set(large_facts.SETTING, "0")
    try:
        with elastalog.open(TEXTS, {"likes": frame}, engine="spark", spark=far) as db:
            assert set(db["likes"]) == set(likes)
    finally:
        far.conf.unset(large_facts.SETTING)


def test_a_large_table_goes_through_the_address(far: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.pipeline.spark.frames._MOST_DIRECT", 3)
    with elastalog.open(LINEAR, CYCLE) as db:
        assert {tuple(row) for row in db["path"].to_spark().collect()} == set(db["path"])


def test_a_workplace_that_cannot_be_had(spark: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workplace, "_made", {})
    spark.conf.set(workplace.SETTING, bucket.address("x").replace("@bucket/", "@nobodys/"))
    try:
        with pytest.raises(ElastalogError) as raised:
            elastalog.open(LINEAR, CYCLE, engine="spark", spark=spark)
    finally:
        spark.conf.unset(workplace.SETTING)
    assert raised.value.diagnostics[0].code == "E1104"
    assert "secret-word" not in str(raised.value)
