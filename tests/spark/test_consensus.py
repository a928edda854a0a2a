"""Tasks that exchange and make values: they agree on the numbers of these, and the result is that of the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.backends.spark import consensus, strata
from elastalog.backends.spark.consensus import IdConsensus
from elastalog.backends.spark.jobs import NoBarrier
from elastalog.backends.spark.placement import EXCHANGE_SETTING
from elastalog.backends.spark.values import Values
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary
from tests.engine.judging import levels_of
from tests.spark.following import follow_edges
from tests.spark.without_spark import tasks_in_this_process

EDGE = ".decl edge(x: number, y: number)\n"
PROGRAMS = {
    "texts": EDGE
    + """
.decl name(x: symbol)
name(cat("n", to_string(x))) :- edge(x, _).
name(cat(x, to_string(strlen(y)))) :- name(x), name(y), strlen(x) < 4.
""",
    "texts beside texts": EDGE
    + """
.decl way(x: symbol, y: symbol)
.decl back(y: symbol, x: symbol)
way(to_string(x), to_string(y)) :- edge(x, y).
way(x, z) :- way(x, y), back(z, y).
back(cat(y, "'"), x) :- way(x, y), strlen(y) < 4.
back(y, x) :- way(x, y).
""",
    "wide numbers and floats": EDGE
    + """
.decl far(x: number, f: float)
far(x * 3000000000, to_float(y) / 4.0) :- edge(x, y).
far(x + y, f * 0.5) :- far(x, f), far(y, g), f = g, x < y, x + y < 60000000000.
""",
    "a text that is looked up": EDGE
    + """
.decl step(x: symbol, y: symbol)
step(to_string(x), to_string(y)) :- edge(x, y).
step(x, cat(y, "0")) :- step(x, y), step(cat(y, "0"), _).
step(x, cat(y, "0")) :- step(x, y), step(y, _), strlen(y) < 4.
""",
}


def follow(text: str, session: Any, seed: int, updates: int, **options: Any) -> None:
    """Random updates here and in the kernel."""
    found = follow_edges(text, session, seed, range(12), first=6, each=2, updates=updates, **options)
    assert any(why.endswith("; they agree on the numbers of new values") for why in found.values())


@pytest.mark.parametrize("way", ["files", "network"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_levels_and_counts_are_those_of_the_kernel(tmp_path: Path, name: str, way: str) -> None:
    with tasks_in_this_process(tmp_path, **{EXCHANGE_SETTING: way}) as session:
        follow(PROGRAMS[name], session, 1, 4, budget=None)


def test_strata_evaluated_anew_agree_too(tmp_path: Path) -> None:
    with tasks_in_this_process(tmp_path, shares=2) as session:
        follow(PROGRAMS["texts beside texts"], session, 2, 3, budget=0.0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 30))
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_random_updates(tmp_path: Path, name: str, seed: int) -> None:
    with tasks_in_this_process(tmp_path, shares=2 + seed % 4) as session:
        follow(PROGRAMS[name], session, seed, 10, budget=None if seed % 2 else 0.2)


def test_tasks_agree_on_spark(spark: Any) -> None:
    follow(PROGRAMS["texts"], spark, 4, 2, budget=None)


def test_files_of_agreed_words_are_not_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise AssertionError("a file is written anew")

    monkeypatch.setattr(consensus, "write_anew", fails)
    with tasks_in_this_process(tmp_path) as session:
        follow(PROGRAMS["texts"], session, 5, 2, budget=None)


def test_what_the_driver_numbers_otherwise_is_evaluated_in_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody else has given the session a text meanwhile."""
    take = consensus.Renumbering.of

    def taken(sent: Values, made: Any, dictionary: Dictionary) -> consensus.Renumbering:
        dictionary.symbols.encode_one("meanwhile")
        return take(sent, made, dictionary)

    monkeypatch.setattr(consensus.Renumbering, "of", staticmethod(taken))
    facts = {"edge": [(1, 2), (2, 3)]}
    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(PROGRAMS["texts"], facts, engine="spark", spark=session) as db,
    ):
        assert {placed.where for placed in db._backend.placements.values()} == {"driver"}  # type: ignore[attr-defined]
        assert levels_of(db) == levels_of(elastalog.open(PROGRAMS["texts"], facts))


def test_two_tasks_number_alike_what_they_made_differently() -> None:
    values = Values(("a",), np.array([7], np.int64).tobytes())
    one, other = values.dictionary(), values.dictionary()
    tasks = [IdConsensus(values, one), IdConsensus(values, other)]
    bases = (Base.SYMBOL, Base.NUMBER)

    def row(dictionary: Dictionary, text: str, number: int) -> list[int]:
        return [dictionary.encode_value(Base.SYMBOL, text), dictionary.encode_value(Base.NUMBER, number)]

    ones = np.array([row(one, "b", 10**12), row(one, "a", 5), row(one, "c", 10**13)], np.int32)
    others = np.array([row(other, "d", 10**13), row(other, "c", 10**14)], np.int32)
    news = [task.news() for task in tasks]
    assert [texts for texts, _ in news] == [["b", "c"], ["d", "c"]]
    for task in tasks:
        task.agree(news)
        assert task.values.texts == ("b", "c", "d")
    told = tasks[0].outward(ones, bases), tasks[1].outward(others, bases)
    assert told[0].tolist() == [[1, WIDE + 1], [0, 5], [2, WIDE + 2]]
    assert told[1].tolist() == [[3, WIDE + 2], [2, WIDE + 3]]
    for task, dictionary in zip(tasks, (one, other), strict=True):
        for rows in told:
            here = task.inward(rows, bases)
            assert [dictionary.symbols.text(word) for word in here[:, 0].tolist()] == [
                {0: "a", 1: "b", 2: "c", 3: "d"}[word] for word in rows[:, 0].tolist()
            ]
            assert (task.outward(here, bases) == rows).all()


def test_without_barrier_mode_one_task_makes_the_values(tmp_path: Path) -> None:
    """Where tasks that agree cannot be run together, rounds would be stages."""
    facts = {"edge": [(1, 2), (2, 3)]}
    with tasks_in_this_process(tmp_path) as session, pytest.MonkeyPatch.context() as patch:
        run_tasks, together = vars(strata)["run_tasks"], []

        def refusing(*arguments: Any, **options: Any) -> Any:
            together.append(options["are_together"])
            if together == [True, True]:
                raise NoBarrier("there are no slots any more")
            return run_tasks(*arguments, **options)

        patch.setattr(strata, "run_tasks", refusing)
        with elastalog.open(PROGRAMS["texts"], facts, engine="spark", spark=session) as db:
            assert together == [True, True, False]
            assert [placed.where for placed in db._backend.placements.values()] == ["tasks"]  # type: ignore[attr-defined]
            assert levels_of(db) == levels_of(elastalog.open(PROGRAMS["texts"], facts))
