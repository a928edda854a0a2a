"""Texts and wide numbers that tasks make: the driver gives them its own numbers afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import strata
from elastalog.backends.spark.backend import SparkBackend
from elastalog.backends.spark.jobs import run_tasks
from elastalog.backends.watch import Watch
from tests.engine.judging import levels_of
from tests.spark.without_spark import tasks_in_this_process

WORDS = """
.decl part(owner: symbol, text: symbol)
.decl word(owner: symbol, text: symbol, size: number)
word(o, t, 1) :- part(o, t).
word(o, cat(t, u), n + 1) :- word(o, t, n), part(o, u), n < 3.
.decl longest(owner: symbol, text: symbol)
longest(o, cat("=", t)) :- word(o, t, 3).
"""
PARTS = {"part": [(owner, text) for owner in ("ann", "bob", "cid", "dan", "eve") for text in ("x", "y", owner)]}
POWERS = """
.decl start(x: number, y: number)
.decl power(x: number, y: number)
power(x, y) :- start(x, y).
power(x, y * 2) :- power(x, y), y < 1000000000000.
"""
STARTS = {"start": [(x, 10**9 + x) for x in range(12)]}


def wheres(db: elastalog.Session) -> set[str]:
    assert isinstance(db._backend, SparkBackend)
    return {placement.where for placement in db._backend.placements.values()}


@pytest.mark.parametrize("options", [{}, {"levels": "global", "budget": None}, {"strategy": "recompute"}], ids=str)
@pytest.mark.parametrize(
    ("text", "facts", "updates"),
    [
        (WORDS, PARTS, [([("bob", "z")], [("ann", "x")]), ([("ann", "x"), ("new", "n")], [("bob", "z")])]),
        (POWERS, STARTS, [([(3, 10**10)], [(4, 10**9 + 4)]), ([(4, 10**9 + 4), (99, 2**42)], [(3, 10**10)])]),
    ],
    ids=["texts", "numbers"],
)
def test_new_values_are_the_same_as_in_the_kernel(
    tmp_path: Path, text: str, facts: Any, updates: Any, options: dict[str, Any]
) -> None:
    relation = next(iter(facts))
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, facts, engine="spark", spark=session, **options) as db,
        elastalog.open(text, facts, **options) as local,
    ):
        for inserted, deleted in [([], []), *updates]:
            changes = db.apply({relation: inserted}, {relation: deleted})
            wanted = local.apply({relation: inserted}, {relation: deleted})
            assert wheres(db) == {"tasks"}
            for name in local:
                assert set(changes[name].inserted) == set(wanted[name].inserted)
                assert set(changes[name].deleted) == set(wanted[name].deleted)
                assert set(db[name]) == set(local[name])
        if "strategy" not in options:
            assert levels_of(db) == levels_of(local)


def test_on_spark_tasks_that_give_one_number_to_two_texts_do_no_harm(spark: Any) -> None:
    with elastalog.open(WORDS, PARTS, engine="spark", spark=spark) as db:
        assert wheres(db) == {"tasks"}
        assert levels_of(db) == levels_of(elastalog.open(WORDS, PARTS))


def test_what_is_computed_with_the_numbers_of_texts_is_done_in_the_driver(tmp_path: Path) -> None:
    text = """
.decl part(owner: symbol, text: symbol)
.decl known(owner: symbol, text: symbol, id: number)
known(o, cat(t, "!"), ord(cat(t, "!"))) :- part(o, t).
.decl same(id: number)
same(n) :- known(_, _, n).
"""
    facts = {"part": [(owner, text) for owner in ("a", "b", "c", "d") for text in ("p", "q")]}
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, facts, engine="spark", spark=session) as db,
    ):
        assert "driver" in wheres(db)
        # Two texts, so two numbers, whoever has them.
        assert len(db["same"]) == 2


def test_a_failure_while_new_values_are_numbered_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tasks_in_this_process(tmp_path) as session, monkeypatch.context() as patch:

        def fails(*_: Any) -> None:
            raise OSError("the disk is full")

        patch.setattr(strata, "with_numbers_of_driver", fails)
        with pytest.raises(OSError, match="the disk is full"):
            elastalog.open(WORDS, PARTS, engine="spark", spark=session)
        assert list(tmp_path.rglob("stratum-*")) == []


def test_without_shares_there_is_no_job() -> None:
    no_spark: Any = None
    assert run_tasks(no_spark, lambda share: iter(()), (), Watch(), are_together=False) == []
