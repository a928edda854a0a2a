"""Values that occur in most facts: the work of tasks is balanced all the same, and the result is the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.spark import strata
from elastalog.backends.spark.backend import SparkBackend
from elastalog.backends.spark.placement import treatments
from elastalog.backends.spark.results import Worked
from elastalog.backends.spark.routing import EVERYWHERE, Routing
from elastalog.planning.decompose import share_plan
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.settings import SETTINGS
from tests.engine.judging import levels_of
from tests.spark.without_spark import tasks_in_this_process

EDGES = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
LINEAR = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
DOUBLING = EDGES + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n"
HUB, POINTS = 0, 200
STAR = {"edge": [(i, HUB) for i in range(1, POINTS)] + [(HUB, -i) for i in range(1, POINTS)]}
"""Every path of two steps leads through the hub."""


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(SETTINGS, "spark_skew_from", 20)
    with tasks_in_this_process(tmp_path, shares=4) as session:
        yield session


def work_of_tasks(db: elastalog.Session, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The derivations of each task when every stratum is evaluated anew."""
    found: dict[int, int] = {}
    run_tasks = vars(strata)["run_tasks"]

    def spied(*arguments: Any, **options: Any) -> Any:
        results = run_tasks(*arguments, **options)
        for result in results:
            if isinstance(result, Worked):
                found[result.share] = found.get(result.share, 0) + result.derivations
        return results

    with monkeypatch.context() as patch:
        patch.setattr(strata, "run_tasks", spied)
        backend = db._backend
        backend.begin({}, {})
        for stratum in backend.program.strata:
            if stratum.clauses:
                backend.rebuild(stratum)
        backend.rollback()
    return [found[share] for share in sorted(found)]


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["linear", "doubling"])
def test_a_star_is_balanced(four: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    # Linear closure decomposes, but a fixpoint that keeps all paths from the hub together would not do.
    extra = {"edge": [*STAR["edge"], *((HUB, i) for i in range(POINTS, 9 * POINTS))]}
    facts = STAR if text == DOUBLING else extra
    with elastalog.open(text, facts=facts, engine="spark", spark=four) as db:
        work = work_of_tasks(db, monkeypatch)
        assert max(work) < 1.5 * sum(work) / 4
        local = elastalog.open(text, facts=facts)
        assert len(db["path"]) == len(local["path"])


def test_without_the_treatment_one_task_has_it_all(four: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "spark_skew_from", 1 << 30)
    with elastalog.open(DOUBLING, facts=STAR, engine="spark", spark=four) as db:
        work = work_of_tasks(db, monkeypatch)
        assert max(work) > 0.9 * sum(work)


def test_the_log_says_so(four: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elastalog.placement"):
        elastalog.open(DOUBLING, facts=STAR, engine="spark", spark=four)
    assert caplog.messages[1] == (
        "stratum 1 (path): 1 heavy values (one in up to 50% of the facts of an input) are spread over all tasks"
    )


def test_levels_and_counts_of_a_star_after_updates(four: Any) -> None:
    star = {"edge": [(i, HUB) for i in range(1, 40)] + [(HUB, -i) for i in range(1, 40)]}
    with (
        elastalog.open(DOUBLING, facts=star, budget=None, engine="spark", spark=four) as db,
        elastalog.open(DOUBLING, facts=star, budget=None) as local,
    ):
        for session in (db, local):
            session.apply({"edge": [(-1, 5), (50, HUB)]}, {"edge": [(3, HUB), (HUB, -7)]})
        assert isinstance(db._backend, SparkBackend)
        assert db._backend.kernel.evicted == {"path"}
        assert levels_of(db) == levels_of(local)


def test_a_star_whose_rules_make_values_is_done_by_tasks_that_do_not_exchange(four: Any) -> None:
    text = EDGES + "path(x, y + 4000000000) :- edge(x, y).\npath(x, y + 1) :- path(x, y), edge(x, _), y < 4000000000.\n"
    facts = {"edge": [*STAR["edge"], *((HUB, i) for i in range(POINTS, 9 * POINTS))]}
    with (
        elastalog.open(text, facts=facts, budget=None, engine="spark", spark=four) as db,
        elastalog.open(text, facts=facts, budget=None) as local,
    ):
        for session in (db, local):
            session.apply({"edge": [(-1, 5), (50, HUB)]}, {"edge": [(3, HUB), (HUB, -7)]})
        assert isinstance(db._backend, SparkBackend)
        assert {placement.where for placement in db._backend.placements.values()} == {"tasks"}
        assert levels_of(db) == levels_of(local)


def test_heavy_words_where_a_stratum_decomposes_are_dealt_out() -> None:
    words = np.array([[7, 1], [7, 2], [9, 1], [1, 1]], np.int32)
    shares = Routing(0, 4, heavy=(7, 9)).shares_of(words)
    assert shares[:3].tolist() == [0, 0, 1]


def test_facts_with_a_heavy_word_are_in_one_share_or_in_all() -> None:
    words = np.array([[7, i] for i in range(100)], np.int32)
    spread = Routing(0, 4, (7,), "spread").shares_of(words)
    assert np.bincount(spread, minlength=4).min() > 10
    assert (Routing(0, 4, (7,), "everywhere").shares_of(words) == EVERYWHERE).all()
    assert len(set(Routing(0, 4, (7,), "everywhere").of_owners.shares_of(words).tolist())) == 1


def test_a_clause_that_joins_a_copy_with_itself_cannot_spread() -> None:
    text = EDGES + "path(x, y) :- edge(x, y).\npath(y, z) :- path(x, y), path(x, z).\n"
    program = lower(Program.parse(text, "a.dl").checked)
    plan = share_plan(next(stratum for stratum in program.strata if stratum.clauses), program)
    assert not plan.decomposes
    assert treatments(plan) is None
