"""Exchanging tasks that do not run at the same time: one stage a round, the same results."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import jobs, strata
from elastalog.backends.spark.placement import EXCHANGE_SETTING, SHARES_SETTING, Ways
from tests.refusals import refused
from tests.spark.exchanging import (
    CHAIN,
    DOUBLING,
    EDGES,
    UPDATES,
    by_way,
    derive_as_many,
    follow_a_chain,
    follow_random_updates,
)
from tests.spark.following import Both, are_same, both, files_in, files_known
from tests.spark.without_spark import Settings, tasks_in_this_process

WAY = "stages"
LINEAR = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"


@pytest.mark.parametrize("seed", [200, 202, 203, pytest.param(201, marks=pytest.mark.long)])
def test_random_updates(near: Any, seed: int) -> None:
    follow_random_updates(near, seed)


def test_a_stage_a_round_and_nothing_left_behind(near: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    with (
        elastalog.open(DOUBLING, CHAIN, budget=None, engine="spark", spark=near, on_progress=seen.append) as db,
        elastalog.open(DOUBLING, CHAIN, budget=None) as local,
    ):
        sessions = Both(db, local)
        # Levels 1 to 7, since 40 steps take 6 doublings; a round that derives what is known only, one that derives
        # nothing, and the stage that sees it.
        assert len(near.ran) == 8
        assert [news.iteration for news in seen if news.found == 0][-1] == 7
        are_same(db, local)
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})
            are_same(db, local)
        assert files_in(tmp_path) == files_known(db)


def test_derivations_are_those_of_the_kernel(near: Any) -> None:
    derive_as_many(near)


def test_a_budget_that_is_spent(near: Any) -> None:
    with elastalog.open(DOUBLING, CHAIN, budget=0.001, engine="spark", spark=near) as db:
        db.apply({}, {"edge": [(8, 9)]})
        assert len(db["path"]) == 9 * 8 // 2 + 8 * 7 // 2


def test_spark_refuses_the_barrier(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tasks_in_this_process(tmp_path) as session, pytest.MonkeyPatch.context() as patch:
        whole = strata.run_tasks

        def run_tasks(*arguments: Any, are_together: bool, **options: Any) -> Any:
            if are_together:
                raise jobs.NoBarrier("no slots")
            return whole(*arguments, are_together=are_together, **options)

        patch.setattr(strata, "run_tasks", run_tasks)
        with caplog.at_level(logging.INFO, "elastalog.placement"):
            db = elastalog.open(DOUBLING, CHAIN, engine="spark", spark=session)
        assert len(db["path"]) == 17 * 16 // 2
    assert [r.getMessage() for r in caplog.records if "stage" in r.getMessage()] == [
        "tasks that exchange run one stage a round: no slots"
    ]


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({}, "files"),
        ({EXCHANGE_SETTING: "stages"}, "stages"),
        ({"spark.dynamicAllocation.enabled": "true"}, "stages"),
        ({"spark.dynamicAllocation.enabled": "true", EXCHANGE_SETTING: "network"}, "network"),
        ({SHARES_SETTING: "4"}, "files"),
        ({SHARES_SETTING: "5"}, "stages"),
    ],
)
def test_the_way_is_chosen(settings: dict[str, str], way: str) -> None:
    spark: Any = SimpleNamespace(conf=Settings(settings), sparkContext=SimpleNamespace(master="local[4]", getConf=dict))
    assert Ways(spark).way() == way


def test_a_way_that_there_is_not() -> None:
    spark: Any = SimpleNamespace(conf=Settings({EXCHANGE_SETTING: "stage"}))
    with refused("E0612", help="did you mean `stages`?"):
        Ways(spark).way()


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        (
            "[SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires more slots than",
            True,
        ),
        ("[SPARK-24942]: Barrier execution mode does not support dynamic resource allocation for now.", True),
        ("Job aborted due to stage failure: Could not recover from a failed barrier ResultStage.", False),
    ],
)
def test_what_spark_says(text: str, is_meant: bool) -> None:
    assert jobs._is_without_barrier(Exception(text)) is is_meant


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["decomposed", "exchanging"])
@pytest.mark.parametrize("taken", [0, 1])
def test_tasks_that_spark_runs_twice(near: Any, text: str, taken: int, tmp_path: Path) -> None:
    """As with speculation: both attempts write, and Spark takes the results of either."""
    whole = strata.run_tasks

    def twice(*arguments: Any, **options: Any) -> Any:
        return [whole(*arguments, **options) for _ in range(2)][taken]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata, "run_tasks", twice)
        with both(text, CHAIN, near, budget=None) as sessions:
            for inserted, deleted in UPDATES:
                sessions.apply({"edge": inserted}, {"edge": deleted})
            assert files_in(tmp_path) == files_known(sessions.db)


# --- on Spark itself -----------------------------------------------------------------------------------------------


def test_stages_of_spark(spark: Any) -> None:
    with by_way(spark, "stages"):
        follow_a_chain(spark)
