"""Where strata are evaluated: by tasks, by exchanging tasks, or in the driver; and the log says why; values that
occur in most facts: the work of tasks is balanced all the same, and the result is the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel import backend as kernel_backend
from elastalog.backends.kernel.store.crew import Crew
from elastalog.backends.spark import placement, strata
from elastalog.backends.spark.placement import treatments
from elastalog.backends.spark.routing import EVERYWHERE, Routing
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.planning.decompose import share_plan
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.settings import SETTINGS
from tests.commands import run
from tests.engine.judging import least_budget, levels_of
from tests.refusals import refused
from tests.spark.exchanging import DOUBLING, EDGES, LINEAR, without_room
from tests.spark.following import both
from tests.spark.without_spark import Settings, tasks_in_this_process

FACTS = {"edge": [(1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]}


def placements(db: elastalog.Session) -> dict[tuple[str, ...], str]:
    backend = db._backend
    strata = {stratum.number: stratum.relations for stratum in backend.program.strata}
    return {strata[number]: placement.where for number, placement in backend.placements.items()}


def test_a_stratum_that_decomposes_runs_in_tasks(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elastalog.placement"):
        db = elastalog.open(LINEAR, facts=FACTS, engine="spark", spark=spark)
    assert placements(db) == {("path",): "tasks"}
    assert caplog.messages == ["stratum 1 (path): tasks: decomposes by argument 1 of path"]


def test_a_stratum_that_does_not_exchanges(spark: Any) -> None:
    db = elastalog.open(DOUBLING, facts=FACTS, engine="spark", spark=spark)
    assert placements(db) == {("path",): "exchanging tasks"}
    assert levels_of(db) == levels_of(elastalog.open(DOUBLING, facts=FACTS))


def test_auto_stays_in_the_driver_while_memory_suffices(spark: Any) -> None:
    db = elastalog.open(LINEAR, facts=FACTS, spark=spark)
    assert placements(db) == {("path",): "driver"}


def test_auto_goes_to_tasks_beyond(spark: Any) -> None:
    from elastalog.backends.spark import placement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elastalog.backends.spark.backend.memory_allowed", lambda memory: 100)
        db = elastalog.open(LINEAR, facts=FACTS, spark=spark)
    assert placements(db) == {("path",): "tasks"}
    assert placement.memory_allowed(5) == 5


def test_results_stay_in_files_until_they_are_read(spark: Any) -> None:
    db = elastalog.open(LINEAR, facts=FACTS, engine="spark", spark=spark)
    evicted = db._backend.kernel.evicted
    assert evicted == {"path"}
    # From 1: 2, 3, 4, 5. From each of 2, 3, 4: the cycle and 5.
    assert len(db["path"]) == 4 + 3 * 4
    assert db.statistics().relations[1].bytes == 0
    assert evicted == {"path"}
    assert (1, 5) in db["path"]
    assert not evicted


def test_tasks_that_exchange_agree_on_new_values(spark: Any) -> None:
    text = '.decl a(x: symbol)\n.decl b(x: symbol)\nb(cat(x, "!")) :- a(x).\n'
    db = elastalog.open(text, facts={"a": [("hello",)]}, engine="spark", spark=spark)
    assert list(db["b"]) == [("hello!",)]
    assert placements(db) == {("b",): "exchanging tasks"}


def test_the_result_does_not_depend_on_the_number_of_tasks(spark: Any) -> None:
    wanted = levels_of(elastalog.open(LINEAR, facts=FACTS))
    try:
        for shares in (1, 5):
            spark.conf.set("spark.elastalog.shares", str(shares))
            assert levels_of(elastalog.open(LINEAR, facts=FACTS, engine="spark", spark=spark)) == wanted
        spark.conf.set("spark.elastalog.shares", "1")
        db = elastalog.open(DOUBLING, facts=FACTS, engine="spark", spark=spark)
        assert levels_of(db) == levels_of(elastalog.open(DOUBLING, facts=FACTS))
    finally:
        spark.conf.unset("spark.elastalog.shares")


def test_texts_that_are_only_compared_for_equality_stay_in_the_driver(spark: Any) -> None:
    text = """
    .decl a, b(x: symbol, y: symbol)
    b("start", y) :- a("s", y).
    b(x, z) :- b(x, y), a(y, z).
    """
    facts = {"a": [("s", "t"), ("t", "u"), ("v", "w")]}
    db = elastalog.open(text, facts=facts, engine="spark", spark=spark)
    assert set(db["b"]) == {("start", "t"), ("start", "u")}
    assert placements(db) == {("b",): "tasks"}


def test_constants_of_the_program_are_no_new_values(spark: Any) -> None:
    text = """
    .decl a, b(x: symbol, f: float)
    b(x, f) :- a(x, f), x != "nowhere else".
    b("only here", 2.5) :- a(_, _).
    b(x, f) :- a(x, f), f < 1.5.
    """
    db = elastalog.open(text, facts={"a": [("one", 0.5), ("nowhere else", 7.0)]}, engine="spark", spark=spark)
    assert set(db["b"]) == {("one", 0.5), ("only here", 2.5)}
    assert placements(db) == {("b",): "tasks"}


@pytest.mark.parametrize("text", [LINEAR, DOUBLING], ids=["decomposed", "exchanging"])
def test_an_error_of_a_rule_is_the_same_as_without_spark(spark: Any, text: str) -> None:
    text += "path(x, y + 9223372036854775807) :- path(x, y).\n"
    with pytest.raises(ElastalogError) as local:
        elastalog.open(text, facts=FACTS)
    with pytest.raises(ElastalogError) as remote:
        elastalog.open(text, facts=FACTS, engine="spark", spark=spark)
    assert [d.code for d in remote.value.diagnostics] == [d.code for d in local.value.diagnostics]


def test_the_time_limit_cancels_tasks(spark: Any) -> None:
    endless = (
        ".decl a(x: number)\n.decl b(x: number, y: number)\nb(x, x) :- a(x).\nb(x, (y + 1) % 1000000007) :- b(x, y).\n"
    )
    with pytest.raises(LimitReached, match="time limit"):
        elastalog.open(
            endless, facts={"a": [(1,), (2,)]}, engine="spark", spark=spark, limits=elastalog.Limits(time=1.5)
        )
    # The session is fit for more.
    assert len(elastalog.open(LINEAR, facts=FACTS, engine="spark", spark=spark)["path"]) == 16


def test_what_an_update_evaluates_anew_runs_in_tasks(spark: Any) -> None:
    with least_budget(0), elastalog.open(LINEAR, facts=FACTS, budget=0.0, engine="spark", spark=spark) as db:
        list(db["path"])
        with db.update() as update:
            update.delete("edge", [(2, 3)])
            update.insert("edge", [(2, 5)])
        assert [work.how for work in update.stats.work.strata if work.relations == ("path",)] != ["update"]
        assert placements(db) == {("path",): "tasks"}
        # Gone: what went through 2 -> 3. Left: 1-2, 1-5, 2-5, 3-4, 3-2, 3-5, 4-2, 4-5.
        assert set(db["path"]) == {(1, 2), (1, 5), (2, 5), (3, 4), (3, 2), (3, 5), (4, 2), (4, 5)}
        assert set(update.changes["path"].deleted) == {(1, 3), (1, 4), (2, 2), (2, 3), (2, 4), (3, 3), (4, 3), (4, 4)}
        fresh = elastalog.open(LINEAR, facts={"edge": list(db["edge"])})
        assert levels_of(db) == levels_of(fresh)


def test_proofs_are_found_in_what_tasks_derived(spark: Any) -> None:
    with elastalog.open(LINEAR, facts=FACTS, engine="spark", spark=spark) as db:
        proof = db.explain("path(1, 5)")
        # 1-2-3-4-5: an edge, and three more.
        assert proof.height == 4


def test_the_command_run_writes_the_same_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in FACTS["edge"]), encoding="utf-8")
    (tmp_path / "reach.dl").write_text(LINEAR + ".input edge\n.output path\n", encoding="utf-8")
    files = []
    for engine in ("local", "spark"):
        arguments = ["run", tmp_path / "reach.dl", "-F", tmp_path, "-D", tmp_path / engine, "--engine", engine]
        outcome = run(*arguments)
        assert outcome.exit_code == 0, outcome.output
        files.append(sorted((tmp_path / engine / "path.csv").read_text(encoding="utf-8").splitlines()))
    assert files[0] == files[1]
    assert len(files[0]) == 16


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ElastalogError, match="not a known engine"):
        elastalog.open(LINEAR, facts=FACTS, engine="flink")


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
    with without_room(), both(DOUBLING, star, four, budget=None) as sessions:
        sessions.apply({"edge": [(-1, 5), (50, HUB)]}, {"edge": [(3, HUB), (HUB, -7)]})
        assert sessions.db._backend.kernel.evicted == {"path"}


def test_a_star_whose_rules_make_values_is_done_by_tasks_that_do_not_exchange(four: Any) -> None:
    text = EDGES + "path(x, y + 4000000000) :- edge(x, y).\npath(x, y + 1) :- path(x, y), edge(x, _), y < 4000000000.\n"
    facts = {"edge": [*STAR["edge"], *((HUB, i) for i in range(POINTS, 9 * POINTS))]}
    with both(text, facts, four, budget=None) as sessions:
        sessions.apply({"edge": [(-1, 5), (50, HUB)]}, {"edge": [(3, HUB), (HUB, -7)]})
        assert {placement.where for placement in sessions.db._backend.placements.values()} == {"tasks"}


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


@pytest.mark.parametrize(("master", "cpus", "slots"), [("local[4]", "2", 2), ("local", "2", 1), ("local[6,2]", "1", 6)])
def test_a_task_of_several_processors_takes_as_many_slots(master: str, cpus: str, slots: int) -> None:
    context = SimpleNamespace(master=master, getConf=lambda: {"spark.task.cpus": cpus})
    assert placement.slots(cast(Any, SimpleNamespace(sparkContext=context))) == slots


@pytest.mark.parametrize(("settings", "apart", "together"), [({}, 3, 3), ({placement.SHARES_SETTING: "5"}, 5, 4)])
def test_tasks_that_exchange_are_no_more_than_the_slots(settings: dict[str, str], apart: int, together: int) -> None:
    context = SimpleNamespace(master="local[4]", getConf=dict, defaultParallelism=3)
    spark = cast(Any, SimpleNamespace(conf=Settings(settings), sparkContext=context))
    assert placement.shares_for(spark, are_together=False) == apart
    assert placement.shares_for(spark, are_together=True) == together


def test_a_way_to_exchange_that_there_is_not() -> None:
    with refused("E0612", help="did you mean `never`?"):
        placement.why_apart(cast(Any, SimpleNamespace(conf=Settings({placement.EXCHANGE_SETTING: "nevr"}))))


def test_a_task_has_as_many_threads_as_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = pytest.importorskip("pyspark").TaskContext
    monkeypatch.setattr(context, "get", staticmethod(lambda: SimpleNamespace(cpus=lambda: 3)))
    made: list[int] = []
    monkeypatch.setattr(kernel_backend, "Crew", lambda jobs: made.append(jobs) or Crew(jobs))
    with tasks_in_this_process(tmp_path) as session, both(LINEAR, FACTS, session, jobs=1) as sessions:
        sessions.apply(deleted={"edge": [(2, 3)]})
    assert set(made) == {3}
