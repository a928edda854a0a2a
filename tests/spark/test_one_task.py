"""What one task does for all: choice domains, subsumption, `.limitsize`, numbers of facts, and strata whose tasks would
have to exchange where they cannot. The facts, levels and counts
are those of the kernel after every update, and none of it comes into the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.backends.spark import jobs, strata
from elastalog.settings import SETTINGS
from tests.refusals import refused
from tests.spark.exchanging import CHAIN, DOUBLING, UPDATES, without_room
from tests.spark.following import are_same, both, files_in, files_known, follow_edges, placed
from tests.spark.without_spark import tasks_in_this_process

EDGE = ".decl edge(x: symbol, y: symbol)\n"
CLOSURE = ".decl path(x: symbol, y: symbol){}\npath(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
READ = ".decl far(x: symbol, y: symbol)\nfar(x, y) :- path(x, y), !edge(x, y).\n"
PROGRAMS: dict[str, tuple[str, dict[str, str]]] = {
    "choice": (
        EDGE + CLOSURE.format(" choice-domain y") + READ,
        {"path": "tasks: one task: a choice domain compares facts wherever they are"},
    ),
    "choice in shares": (
        EDGE + CLOSURE.format(" choice-domain x") + READ,
        {"path": "tasks: decomposes by argument 1 of path", "far": "tasks: decomposes by argument 1 of far"},
    ),
    "several choices": (
        EDGE
        + ".decl pair(x: symbol, y: symbol, n: number) choice-domain x, (y, n)\n"
        + 'pair(x, y, 1) :- edge(x, y).\npair(y, cat(x, "*"), n + 1) :- pair(x, y, n), n < 4.\n',
        {"pair": "tasks: one task: a choice domain compares facts wherever they are"},
    ),
    "equals dominate": (
        EDGE
        + ".decl least(x: symbol, n: number)\nleast(x, 1) :- edge(x, _).\n"
        + "least(y, n + 1) :- least(x, n), edge(x, y), n < 5.\nleast(x, n) <= least(y, m) :- n = m.\n",
        {"least": "tasks: one task: subsumption compares facts wherever they are"},
    ),
    "numbers": (
        EDGE
        + CLOSURE.format("")
        + '.decl id(n: number, x: symbol)\nid(autoinc(), x) :- edge(x, _).\n'
        + ".decl known(n: number, x: symbol, y: symbol)\nknown($, x, y) :- path(x, y), x < y.\n"
        + ".decl late(n: number)\nlate(n) :- known(n, _, _), n > 20.\n",
        {"@autoinc": "tasks: one task: facts are numbered one after the other"},
    ),
}  # fmt: skip
NODES = [f"node {i}" for i in (7, 1, 9, 4, 3, 8, 2)]


def follow(text: str, session: Any, seed: int, updates: int = 5, **options: Any) -> dict[str, str]:
    """Random updates here and in the kernel; returns where strata were evaluated."""
    return follow_edges(text, session, seed, NODES, first=10, each=3, updates=updates, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_task_does_what_the_kernel_does(tmp_path: Path, name: str) -> None:
    text, wanted = PROGRAMS[name]
    with tasks_in_this_process(tmp_path) as session:
        found = follow(text, session, 1)
    assert wanted.items() <= found.items()
    assert all(where.startswith(("tasks", "exchanging tasks")) for where in found.values())


@pytest.mark.parametrize("options", [{"levels": "global", "budget": None}, {"strategy": "dredc"}], ids=str)
def test_numbers_of_facts_with_other_annotations(tmp_path: Path, options: dict[str, Any]) -> None:
    with tasks_in_this_process(tmp_path) as session:
        follow(PROGRAMS["numbers"][0], session, 1, **options)


def test_strategy_recompute_keeps_numbers_and_chooses_anew(tmp_path: Path) -> None:
    for name in ("choice", "numbers"):
        edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]
        with (
            tasks_in_this_process(tmp_path / name) as session,
            both(PROGRAMS[name][0], {"edge": edges}, session, strategy="recompute") as sessions,
        ):
            for come, gone in ([("0", "1")], [("b", "c")]), ([("b", "c"), ("1", "d")], [("a", "b")]):
                sessions.apply({"edge": come}, {"edge": gone})
                are_same(sessions.db, sessions.local)


def test_all_that_one_task_does_on_spark(spark: Any) -> None:
    text = EDGE + CLOSURE.format(" choice-domain y") + ".decl id(n: number, x: symbol)\nid($, x) :- path(x, _).\n"
    found = follow(text, spark, 5, updates=2)
    assert found["path"] == "tasks: one task: a choice domain compares facts wherever they are"
    assert found["@autoinc"] == "tasks: one task: facts are numbered one after the other"


def test_nothing_of_it_comes_into_the_driver(tmp_path: Path) -> None:
    text = PROGRAMS["numbers"][0]
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, {"edge": [("a", "b"), ("b", "c")]}, engine="spark", spark=session) as db,
    ):
        db.apply({"edge": [("c", "d")]}, {"edge": [("a", "b")]})
        backend = db._backend
        derived = {name for stratum in backend.program.strata if stratum.reads for name in stratum.relations}
        assert derived == backend.kernel.evicted


LIMITED = """
.decl step, reach(x: number, y: number)
.limitsize reach(n=8)
reach(x, y) :- step(x, y).
reach(x, z) :- reach(x, y), step(y, z).
"""


# --- where tasks cannot exchange -----------------------------------------------------------------------------------


def refusing(patch: pytest.MonkeyPatch) -> None:
    """From now on Spark refuses to run tasks at the same time."""
    whole = strata.run_tasks

    def run_tasks(*arguments: Any, are_together: bool, **options: Any) -> Any:
        if are_together:
            raise jobs.CannotExchange("no slots")
        return whole(*arguments, are_together=are_together, **options)

    patch.setattr(strata, "run_tasks", run_tasks)


APART = "tasks: one task: tasks cannot exchange ({}), and rule 2 keeps no argument"


@pytest.mark.parametrize("is_refused_first", [True, False])
def test_spark_refuses_the_barrier(
    near: Any, monkeypatch: pytest.MonkeyPatch, is_refused_first: bool, tmp_path: Path
) -> None:
    if is_refused_first:
        refusing(monkeypatch)
    with without_room(), both(DOUBLING, CHAIN, near, budget=None) as sessions:
        refusing(monkeypatch)
        for inserted, deleted in UPDATES:
            sessions.apply({"edge": inserted}, {"edge": deleted})
        assert placed(sessions.db)["path"].startswith(APART.format("no slots"))
        assert sessions.db._backend.kernel.evicted == {"path"}
        assert files_in(tmp_path) == files_known(sessions.db)


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        (
            "spark.dynamicAllocation.enabled",
            "true",
            "dynamic allocation does not go together with Spark's barrier mode",
        ),
        ("spark.elastalog.exchange", "never", "`spark.elastalog.exchange` is `never`"),
    ],
)
def test_settings_by_which_tasks_do_not_exchange(tmp_path: Path, setting: str, value: str, why: str) -> None:
    with (
        tasks_in_this_process(tmp_path, **{setting: value}) as session,
        both(DOUBLING, CHAIN, session) as sessions,
    ):
        assert placed(sessions.db)["path"].startswith(APART.format(why))


def test_without_slots_for_all_a_value_that_is_in_most_facts_stays_with_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "spark_skew_from", 4)
    text = EDGE + CLOSURE.format("")
    facts = {"edge": [("hub", f"n{i}") for i in range(40)]}
    for settings, where in (({}, "exchanging tasks"), ({"spark.dynamicAllocation.enabled": "true"}, "tasks")):
        with tasks_in_this_process(tmp_path, 4, **settings) as session, both(text, facts, session) as sessions:
            assert placed(sessions.db)["path"].partition(":")[0] == where


def test_a_limit_is_obeyed_where_the_stratum_is(tmp_path: Path) -> None:
    few = {"step": [(1, 2), (2, 3)]}
    with tasks_in_this_process(tmp_path) as session, elastalog.open(LIMITED, few, engine="spark", spark=session) as db:
        why = "one task: a `.limitsize` counts the facts of a relation wherever they are"
        assert placed(db) == {"reach": f"tasks: {why}"}
        assert set(db["reach"]) == {(1, 2), (2, 3), (1, 3)}
        db.apply({"step": [(5, 6)]})
        assert len(db["reach"]) == 4
        # Two steps more are five in the first round, and nine after the second, of fifteen in all.
        assert len(db.preview({"step": [(3, 5), (6, 7)]})["reach"].inserted) == 5
        # What was tried is forgotten, and that it was cut short.
        db.apply({"step": [(3, 5)]}, {"step": [(1, 2)]})
        assert set(db["reach"]) == {(2, 3), (3, 5), (5, 6), (2, 5), (3, 6), (2, 6)}


@pytest.mark.parametrize("strategy", ["elastic", "dredc", "recompute"])
def test_what_a_limit_has_cut_short_is_that_of_the_kernel_and_is_not_updated(tmp_path: Path, strategy: str) -> None:
    facts = {"step": [(i, i + 1) for i in range(6)]}
    with tasks_in_this_process(tmp_path) as session, both(LIMITED, facts, session, strategy=strategy) as sessions:
        # Six steps, then the five ways of two steps: eleven are no fewer than eight.
        assert len(sessions.db["reach"]) == 11
        with refused("E0615"):
            sessions.db.apply({"step": [(9, 9)]})


def test_an_aggregate_evaluated_anew_starts_from_nothing(tmp_path: Path) -> None:
    """With global levels the fact of an empty group has level 0, as explicit facts have."""
    text = EDGE + ".decl all(n: number)\nall(n) :- n = count : { edge(x, x) }.\n"
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(text, {}, levels="global", budget=None, engine="spark", spark=session) as db,
    ):
        assert set(db["all"]) == {(0,)}
        backend = db._backend
        backend.begin({}, {"edge": _words(db, ("a", "a"))})
        for stratum in backend.program.strata:
            backend.rebuild(stratum)
        backend.commit()
        assert set(db["all"]) == {(1,)}


def _words(db: elastalog.Session, fact: tuple[str, ...]) -> Any:
    import numpy as np

    return np.array([[db._dictionary.symbols.encode_one(text) for text in fact]], np.int32)
