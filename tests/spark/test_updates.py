"""Updates followed by tasks: the state of shares stays in files between epochs, and is what the kernel would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.spark import strata, task
from elastalog.backends.spark.backend import SparkBackend
from elastalog.backends.spark.relations import SparkRelations
from elastalog.debugging.problem import seconds_a_trial
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.settings import SETTINGS
from tests.engine.judging import Kind, facts_of, follow, judge, least_budget, levels_of
from tests.forcing import forced
from tests.generators.seeded import seeded_case
from tests.reference.cases import parse_accepted
from tests.refusals import refused
from tests.spark.exchanging import (
    CHAIN,
    DOUBLING,
    EDGES,
    LINEAR,
    UPDATES,
    follow_a_chain,
    follow_random_updates,
    without_room,
)
from tests.spark.following import both, files_in, files_known

LABELS = """
.decl label, same, link(x: number, text: symbol)
same(x, t) :- label(x, t).
same(x, t) :- same(x, s), link(x, t), !label(x, t).
"""
CYCLE = {"edge": [(1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]}


def backend_of(db: elastalog.Session) -> SparkBackend:
    return db._backend


# --- on Spark itself -----------------------------------------------------------------------------------------------


def test_an_update_runs_in_tasks_and_the_driver_does_not_hold_the_relation(spark: Any) -> None:
    with both(LINEAR, CYCLE, spark, budget=None) as sessions:
        evicted = backend_of(sessions.db).kernel.evicted
        for inserted, deleted in (([(5, 6)], []), ([(6, 1)], [(2, 3)]), ([], [(6, 1)])):
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert len(sessions.db["path"]) == len(sessions.local["path"])
            assert evicted == {"path"}


def test_dredc_runs_in_tasks(spark: Any) -> None:
    with both(LINEAR, CYCLE, spark, strategy="dredc") as sessions:
        assert backend_of(sessions.db).placements[1].where == "tasks"
        for inserted, deleted in (([(5, 1)], [(2, 3)]), ([(2, 3)], [(5, 1), (4, 2)])):
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert backend_of(sessions.db).kernel.evicted == {"path"}


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["decomposed", "exchanging"])
def test_a_stratum_beyond_its_budget_is_evaluated_anew_by_tasks(spark: Any, text: str) -> None:
    chain = {"edge": [(i, i + 1) for i in range(60)]}
    with least_budget(0), elastalog.open(text, facts=chain, budget=0.01, engine="spark", spark=spark) as db:
        with db.update() as update:
            update.delete("edge", [(30, 31)])
        assert [work.how for work in update.stats.work.strata if work.relations == ("path",)] == ["switch"]
        assert backend_of(db).kernel.evicted == {"path"}
        # 31 nodes before the gap, 30 after it.
        assert len(db["path"]) == 31 * 30 // 2 + 30 * 29 // 2
        assert len(update.changes["path"].deleted) == 31 * 30
        assert not update.changes["path"].inserted
        rest = [edge for edge in chain["edge"] if edge != (30, 31)]
        assert levels_of(db) == levels_of(elastalog.open(text, facts={"edge": rest}))


@pytest.mark.parametrize("seed", [5, pytest.param(2, marks=pytest.mark.long), pytest.param(11, marks=pytest.mark.long)])
def test_random_updates_on_spark(spark: Any, seed: int) -> None:
    follow_random_updates(spark, seed, most_updates=2)


def test_epochs_in_a_store_are_those_of_the_kernel(spark: Any, tmp_path: Path) -> None:
    with elastalog.open(LINEAR, facts=CYCLE, store=tmp_path / "store", engine="spark", spark=spark) as db:
        db.apply({"edge": [(5, 6)]}, {"edge": [(2, 3)]})
        wanted = levels_of(db)
    with elastalog.open(store=tmp_path / "store") as again:
        assert levels_of(again) == wanted
    with elastalog.open(store=tmp_path / "store", engine="spark", spark=spark) as again:
        again.apply({"edge": [(6, 2)]})
        assert backend_of(again).kernel.evicted == {"path"}
        assert levels_of(again) == levels_of(elastalog.open(LINEAR, facts={"edge": list(again["edge"])}))


# --- the same code, with tasks in this process ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "global"])
@pytest.mark.parametrize("seed", range(60, 65))
def test_random_updates_have_the_levels_of_the_definition(near: Any, seed: int, kind: Kind) -> None:
    program, updates = seeded_case(seed, most_updates=4)
    explicit = program.explicit
    with elastalog.open(program.text, facts=program.facts, levels=kind, engine="spark", spark=near) as db:
        for number, update in enumerate(updates):
            # Every third update is evaluated anew.
            db._epochs.strategy.costs.budget = 0.0 if number % 3 == 2 else None
            with least_budget(0):
                db.apply(update.inserted, update.deleted)
            explicit = update.apply_to(explicit)
            if number % 2:
                judge(db, parse_accepted(program.text), explicit, kind)
        judge(db, parse_accepted(program.text), explicit, kind)


@pytest.mark.parametrize("strategy", ["dredc", "dred", "bf", "bfc", "recompute"])
@pytest.mark.parametrize("seed", range(80, 82))
def test_random_updates_by_other_strategies(near: Any, seed: int, strategy: str) -> None:
    follow(
        *seeded_case(seed, most_updates=4),
        strategy=strategy,
        engine="spark",
        spark=near,
        is_annotated=False,
        is_judged_often=False,
    )


@pytest.mark.parametrize("seed", range(90, 93))
def test_random_updates_where_every_value_is_heavy(near: Any, seed: int) -> None:
    with forced(spark_skew_from=1), without_room():
        follow(*seeded_case(seed, most_updates=4), budget=None, engine="spark", spark=near, is_judged_often=False)


@pytest.mark.parametrize("has_room", [True, False])
def test_what_tasks_have_exchanged_is_maintained_in_the_driver_or_evaluated_anew(near: Any, has_room: bool) -> None:
    follow_a_chain(near, has_room=has_room)
    assert near.ran == [(0, 1, 2)] * (1 if has_room else 1 + len(UPDATES))


def test_the_reason_why_it_is_evaluated_anew_is_told(near: Any) -> None:
    with without_room(), elastalog.open(DOUBLING, CYCLE, engine="spark", spark=near) as db:
        with db.update() as update:
            update.insert("edge", [(5, 6)])
        (work,) = [work for work in update.stats.work.strata if work.relations == ("path",)]
        assert work.how == "switch"
        assert work.reason.startswith("the driver has no room for what tasks have exchanged")


def test_the_driver_maintains_what_it_reads_of_tasks(near: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a relation that tasks maintain, and the driver reads, it keeps up with the changes."""
    text = EDGES + (
        "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n.decl meet(x: number, y: number)\n"
        "meet(x, y) :- path(x, y), path(y, x).\nmeet(x, z) :- meet(x, y), meet(y, z), path(z, x).\n"
    )
    fetched: list[str] = []
    fetch = SparkRelations.fetch
    monkeypatch.setattr(SparkRelations, "fetch", lambda self, name: fetched.append(name) or fetch(self, name))
    with both(text, CYCLE, near, budget=None) as sessions:
        for inserted, deleted in (([(5, 6)], []), ([(6, 1)], [(2, 3)]), ([], [(6, 1)]), ([(2, 3)], [])):
            sessions.apply({"edge": inserted}, {"edge": deleted})
        assert sorted(fetched) == ["meet", "path"]


def test_rules_that_change_are_followed_by_tasks(near: Any) -> None:
    with elastalog.open(LINEAR, facts=CYCLE, engine="spark", spark=near) as db:
        db.change_rules("path(y, x) :- edge(x, y), x > 3.\n")
        db.apply({"edge": [(5, 6)]})
        db.change_rules("", removed=[2])
        text = EDGES + "path(x, y) :- edge(x, y).\npath(y, x) :- edge(x, y), x > 3.\n"
        assert facts_of(db) == facts_of(elastalog.open(text, facts={"edge": list(db["edge"])}))


def test_the_work_counters_of_dredc_are_those_of_the_kernel(near: Any) -> None:
    counters = []
    options: dict[str, Any]
    for options in ({"engine": "spark", "spark": near}, {}):
        with elastalog.open(LINEAR, facts=CYCLE, strategy="dredc", **options) as db:
            with db.update() as update:
                update.delete("edge", [(2, 3), (4, 5)])
                update.insert("edge", [(3, 1)])
            counters.append(update.stats.work.counters.as_dict())
    assert counters[0] == counters[1]
    assert counters[0]["over_deletions"] > 0


def test_only_the_shares_concerned_run(near: Any) -> None:
    # Both atoms hold x, so every change concerns the share of its x alone.
    with elastalog.open(LABELS, facts={"label": [(i, "a") for i in range(40)]}, engine="spark", spark=near) as db:
        near.ran.clear()
        db.apply({"link": [(7, "b"), (7, "c")]})
        assert [len(shares) for shares in near.ran] == [1]
        assert {fact for fact in db["same"] if fact[0] == 7} == {(7, "a"), (7, "b"), (7, "c")}


def test_a_change_of_what_every_task_holds_runs_in_all(near: Any) -> None:
    with elastalog.open(LINEAR, facts=CYCLE, engine="spark", spark=near) as db:
        near.ran.clear()
        db.apply({"edge": [(5, 6)]})
        assert near.ran == [(0, 1, 2)]


def test_only_the_groups_concerned_are_loaded(near: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []

    only_groups = task.only_groups

    def spied(held: task.Held, column: int, words: np.ndarray) -> task.Held:
        kept = only_groups(held, column, words)
        loaded.append(len(kept[0].words))
        return kept

    monkeypatch.setattr("elastalog.backends.spark.task.only_groups", spied)
    # Twenty chains of ten edges each; one of them gets longer.
    chains = {"edge": [(100 * c + i, 100 * c + i + 1) for c in range(20) for i in range(10)]}
    with elastalog.open(LINEAR, facts=chains, budget=None, engine="spark", spark=near) as db:
        db.apply({"edge": [(510, 511)]}, {"edge": [(503, 504)]})
        # The 55 paths of that chain and its 10 edges, whatever their shares are.
        assert sum(loaded) == 55 + 10
        rest = [edge for edge in chains["edge"] if edge != (503, 504)]
        assert levels_of(db) == levels_of(elastalog.open(LINEAR, facts={"edge": [*rest, (510, 511)]}))


def test_explicit_facts_of_a_derived_relation_come_and_go(near: Any) -> None:
    with elastalog.open(LINEAR, facts=CYCLE | {"path": [(9, 1)]}, engine="spark", spark=near) as db:
        # Deleting what is not explicit changes nothing, inserting what is there makes it explicit.
        changes = db.apply({"path": [(1, 2), (8, 9)]}, {"path": [(9, 1), (1, 3)]})
        assert set(changes["path"].inserted) == {(8, 9)}
        assert set(changes["path"].deleted) == {(9, x) for x in (1, 2, 3, 4, 5)}
        assert backend_of(db).kernel.evicted == {"path"}
        found = levels_of(db)
        assert found["path", (1, 2)] == (0, 1)
        # One more than its new explicit fact.
        assert found["path", (1, 3)] == (1, 1)


def test_a_failed_update_leaves_the_files_of_the_epoch_before(near: Any) -> None:
    text = LINEAR + ".decl bad(x: number)\nbad(x) :- path(x, y), y + 9223372036854775807 < 0.\n"
    facts = {"edge": [(-1, -2), (-2, -3)]}
    with elastalog.open(text, facts=facts, engine="spark", spark=near) as db:
        known, found = files_known(db), levels_of(db)
        with pytest.raises(ElastalogError):
            db.apply({"edge": [(-3, 4)]})
        assert files_known(db) >= known
        assert files_in(Path(backend_of(db).relations.folder)) == files_known(db)
        assert levels_of(db) == found
        db.apply({"edge": [(-3, -4)]})
        assert levels_of(db) == levels_of(elastalog.open(text, facts={"edge": [*facts["edge"], (-3, -4)]}))


def test_files_do_not_pile_up(near: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SETTINGS, "spark_few_filed", 20)
        with elastalog.open(LINEAR, facts=CYCLE, budget=None, engine="spark", spark=near) as db:
            for i in range(5, 30):
                db.apply({"edge": [(i, i + 1)]}, {"edge": [(i - 4, i - 3)] if i % 3 == 0 else []})
                assert files_in(Path(backend_of(db).relations.folder)) == files_known(db)
            assert len(files_in(Path(backend_of(db).relations.folder))) < 40
            assert levels_of(db) == levels_of(elastalog.open(LINEAR, facts={"edge": list(db["edge"])}))


def test_a_stratum_in_the_driver_reads_what_tasks_maintain(near: Any) -> None:
    text = LINEAR + ".decl total(x: number, n: number)\ntotal(x, n) :- edge(x, _), n = count : { path(x, _) }.\n"
    with elastalog.open(text, facts=CYCLE, engine="spark", spark=near) as db:
        changes = db.apply({"edge": [(5, 6)]})
        assert set(changes["total"].inserted) == {(1, 5), (2, 5), (3, 5), (4, 5), (5, 1)}
        with pytest.raises(ElastalogError):
            db.apply({"edge": [("x", 1)]})
        assert levels_of(db) == levels_of(elastalog.open(text, facts={"edge": [*CYCLE["edge"], (5, 6)]}))


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["decomposed", "exchanging"])
@pytest.mark.parametrize("taken", [0, 1])
def test_tasks_that_spark_runs_twice(
    near: Any, text: str, taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with speculation: both attempts write, and Spark takes the results of either."""
    whole = strata.run_tasks

    def twice(*arguments: Any, **options: Any) -> Any:
        return [whole(*arguments, **options) for _ in range(2)][taken]

    monkeypatch.setattr(strata, "run_tasks", twice)
    with without_room(), both(text, CHAIN, near, budget=None) as sessions:
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})
        assert files_in(tmp_path) == files_known(sessions.db)


def test_what_if_questions_leave_everything_as_it_was(near: Any) -> None:
    with elastalog.open(LINEAR, facts=CYCLE, engine="spark", spark=near) as db:
        db.apply({"edge": [(5, 6), (6, 7)]})
        found = levels_of(db)
        suggestion = db.suggest(unwanted=["path(1, 7)"])
        assert suggestion is not None
        assert levels_of(db) == found
        assert files_in(Path(backend_of(db).relations.folder)) >= files_known(db)


def test_a_state_in_a_search_may_take_as_long_as_tasks_do(near: Any) -> None:
    """A busy machine makes every job slow, which says nothing about the state."""
    with elastalog.open(LINEAR, facts=CYCLE, engine="spark", spark=near) as db:
        (part,) = db.statistics().elsewhere
        assert part.seconds > 0
        assert seconds_a_trial(0.0, backend_of(db)) == SETTINGS.state_seconds + part.seconds


def test_a_limited_relation_is_evaluated_by_one_task(near: Any) -> None:
    text = ".decl n(x: number)\n.limitsize n(n=10)\nn(0).\nn(x + 1) :- n(x), x < 50.\n"
    with elastalog.open(text, engine="spark", spark=near) as db:
        # Several would each stop at the limit, or not at all.
        assert sorted(db["n"]) == [(x,) for x in range(10)]
        (placement,) = backend_of(db).placements.values()
        assert placement.plan.is_for_one
        with refused("E0615"):
            db.apply(inserted={"n": [(100,)]})
