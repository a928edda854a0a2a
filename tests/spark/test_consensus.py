"""Tasks that exchange and make values: they agree on the numbers of these, and the result is that of the kernel;
texts and wide numbers that tasks make: the driver gives them its own numbers afterwards."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.backends.spark import consensus, strata, values
from elastalog.backends.spark.consensus import IdConsensus
from elastalog.backends.spark.jobs import CannotExchange, run_tasks
from elastalog.backends.spark.values import Values
from elastalog.backends.watch import Watch
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS
from tests.engine.judging import facts_of
from tests.spark.exchanging import without_room
from tests.spark.following import both, follow_edges
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
    """Random updates here and in the kernel; tasks evaluate anew."""
    with without_room():
        found = follow_edges(text, session, seed, range(12), first=6, each=2, updates=updates, **options)
    assert any(why.endswith("; they agree on the numbers of new values") for why in found.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_levels_and_counts_are_those_of_the_kernel(near: Any, name: str) -> None:
    follow(PROGRAMS[name], near, 1, 4, budget=None)


def test_strata_evaluated_anew_agree_too(tmp_path: Path) -> None:
    with tasks_in_this_process(tmp_path, shares=2) as session:
        follow(PROGRAMS["texts beside texts"], session, 2, 3, budget=0.0)


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
    renumbering = consensus.Renumbering

    def taken(sent: Values, made: Any, dictionary: Dictionary) -> consensus.Renumbering:
        dictionary.symbols.encode_one("meanwhile")
        return renumbering(sent, made, dictionary)

    monkeypatch.setattr(consensus, "Renumbering", taken)
    facts = {"edge": [(1, 2), (2, 3)]}
    with tasks_in_this_process(tmp_path) as session, both(PROGRAMS["texts"], facts, session) as sessions:
        assert wheres(sessions.db) == {"driver"}


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
    facts = {"edge": [(1, 2), (2, 3)]}
    with tasks_in_this_process(tmp_path) as session, pytest.MonkeyPatch.context() as patch:
        run_tasks, together = vars(strata)["run_tasks"], []

        def refusing(*arguments: Any, **options: Any) -> Any:
            together.append(options["are_together"])
            if together == [True, True]:
                raise CannotExchange("there are no slots any more")
            return run_tasks(*arguments, **options)

        patch.setattr(strata, "run_tasks", refusing)
        with both(PROGRAMS["texts"], facts, session) as sessions:
            assert together == [True, True, False]
            assert wheres(sessions.db) == {"tasks"}


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
.decl start, power(x: number, y: number)
power(x, y) :- start(x, y).
power(x, y * 2) :- power(x, y), y < 1000000000000.
"""
STARTS = {"start": [(x, 10**9 + x) for x in range(12)]}
LISTS = """
.type List = [head: symbol, size: float, rest: List]
.decl part(owner: symbol, text: symbol)
.decl list(owner: symbol, of: List, n: number)
list(o, [t, 0.5, nil], 1) :- part(o, t).
list(o, [cat(t, "'"), to_float(n), l], n + 1) :- list(o, l, n), part(o, t), n < 3.
.decl second(owner: symbol, text: symbol, size: float)
second(o, t, s) :- list(o, [_, _, [t, s, _]], _).
.decl none(owner: symbol)
none(o) :- list(o, l, _), l = [_, _, nil].
"""
TREES = """
.type Tree = Leaf { x: number } | Node { left: Tree, right: Tree }
.decl leaf(owner: number, x: number)
.decl tree(owner: number, t: Tree, n: number)
tree(o, $Leaf(x * 1000000007), 1) :- leaf(o, x).
tree(o, $Node(a, b), 2) :- tree(o, a, 1), tree(o, b, 1).
tree(o, $Node(a, a), 3) :- tree(o, a, 2).
.decl left(owner: number, x: number)
left(o, x) :- tree(o, $Node($Node($Leaf(x), _), _), 3).
"""
LEAVES = {"leaf": [(o, x) for o in range(7) for x in (3, o + 10)]}
MADE = """
.functor shout(text: symbol, times: number): symbol
.functor third(x: number): number
.decl part, loud(owner: symbol, text: symbol)
loud(o, @shout(t, 2)) :- part(o, t).
.decl size(owner: symbol, n: number)
size(o, @third(strlen(t))) :- loud(o, t).
"""


def shout(text: str, times: int) -> str:
    return (text + "!") * times


def third(number: int) -> int | None:
    return number // 3 if number % 2 == 0 else None


def wheres(db: elastalog.Session) -> set[str]:
    return {placement.where for placement in db._backend.placements.values()}


@pytest.mark.parametrize("options", [{}, {"levels": "global", "budget": None}, {"strategy": "recompute"}], ids=str)
@pytest.mark.parametrize(
    ("text", "facts", "updates"),
    [
        (WORDS, PARTS, [([("bob", "z")], [("ann", "x")]), ([("ann", "x"), ("new", "n")], [("bob", "z")])]),
        (POWERS, STARTS, [([(3, 10**10)], [(4, 10**9 + 4)]), ([(4, 10**9 + 4), (99, 2**42)], [(3, 10**10)])]),
        (LISTS, PARTS, [([("bob", "z")], [("ann", "x")]), ([("ann", "x"), ("new", "n")], [("bob", "z")])]),
        (TREES, LEAVES, [([(3, 5)], [(2, 3)]), ([(9, 9), (2, 3)], [(3, 5)])]),
        (MADE, PARTS, [([("bob", "long")], [("ann", "x")]), ([("ann", "x"), ("new", "n")], [("bob", "long")])]),
    ],
    ids=["texts", "numbers", "records", "branches", "functors"],
)
def test_new_values_are_the_same_as_in_the_kernel(
    tmp_path: Path, text: str, facts: Any, updates: Any, options: dict[str, Any]
) -> None:
    relation = next(iter(facts))
    if text is MADE:
        options = {**options, "functors": {"shout": shout, "third": third}}
    with tasks_in_this_process(tmp_path) as session, both(text, facts, session, **options) as sessions:
        for inserted, deleted in [([], []), *updates]:
            sessions.apply({relation: inserted}, {relation: deleted})
            assert wheres(sessions.db) == {"tasks"}
            assert facts_of(sessions.db) == facts_of(sessions.local)


def test_on_spark_tasks_that_give_one_number_to_two_texts_do_no_harm(spark: Any) -> None:
    with both(WORDS, PARTS, spark) as sessions:
        assert wheres(sessions.db) == {"tasks"}


@pytest.mark.parametrize("text", [LISTS, MADE], ids=["records", "functors"])
def test_records_and_functors_on_spark(spark: Any, text: str) -> None:
    """Functions of a module that workers cannot import, such as this one, travel with their code."""
    options: dict[str, Any] = {"functors": {"shout": shout, "third": third}} if text is MADE else {}
    with both(text, PARTS, spark, **options) as sessions:
        assert wheres(sessions.db) == {"tasks"}
        sessions.apply({"part": [("bob", "zz")]})


def test_arithmetic_that_wraps_around_is_done_by_tasks(tmp_path: Path) -> None:
    text = '.pragma "arithmetic" "wrap"\n' + POWERS.replace("y < 1000000000000", "y > 0")
    with tasks_in_this_process(tmp_path) as session, both(text, STARTS, session) as sessions:
        assert wheres(sessions.db) == {"tasks"}


def test_what_cannot_be_sent_stays_in_the_driver(tmp_path: Path) -> None:
    lock = Lock()

    def locked(text: str, times: int) -> str:
        with lock:
            return shout(text, times)

    with (
        tasks_in_this_process(tmp_path) as session,
        elastalog.open(MADE, PARTS, engine="spark", spark=session, functors={"shout": locked, "third": third}) as db,
    ):
        placements = db._backend.placements.values()
        assert {p.why for p in placements if p.where == "driver"} == {"functor `@shout` cannot be sent to tasks"}
        assert len(db["loud"]) == len(PARTS["part"])


EDGES = ".decl edge(x: number, y: number)\n"
PAIRS = """
.type Pair = [x: number, y: number]
.decl way(p: Pair)
way([x, y]) :- edge(x, y).
way([x, z]) :- way([x, y]), way([y, z]).
"""
NAMES = """
.decl name(x: symbol)
name(cat(to_string(x), to_string(y))) :- edge(x, y).
name(substr(cat(x, y), 1, 2)) :- name(x), name(y), strlen(x) < 3.
"""


@pytest.mark.parametrize("text", [PAIRS, NAMES], ids=["records", "texts"])
def test_new_values_where_tasks_exchange_are_agreed_on_or_made_by_one(near: Any, text: str) -> None:
    agrees = text is NAMES
    facts = {"edge": [(i, i + 1) for i in range(6)]}
    with without_room(), both(EDGES + text, facts, near, budget=None) as sessions:
        db = sessions.db
        for inserted, deleted in [([], []), ([(6, 7), (9, 9)], [(0, 1)]), ([(0, 3)], [(2, 3)])]:
            sessions.apply({"edge": inserted}, {"edge": deleted})
            assert wheres(db) == {"exchanging tasks" if agrees else "tasks"}
            assert db._backend.kernel.evicted
        (placement,) = db._backend.placements.values()
        if agrees:
            assert placement.why.endswith("; they agree on the numbers of new values")
        else:
            assert placement.why.startswith("one task: rules make values that have no number yet, and rule ")


def test_an_update_that_makes_the_first_new_values(tmp_path: Path) -> None:
    text = EDGES + (
        ".decl far(x: number, y: number)\nfar(x, y) :- edge(x, y).\n"
        "far(x, z) :- far(x, y), far(y, z).\nfar(y * 1000000, x) :- far(x, y), y > 5000, y < 10000.\n"
    )
    facts = {"edge": [(i, i + 1) for i in range(6)]}
    with (
        tasks_in_this_process(tmp_path) as session,
        without_room(),
        both(text, facts, session, budget=None) as sessions,
    ):
        assert wheres(sessions.db) == {"exchanging tasks"}
        sessions.apply({"edge": [(6, 7000)]}, {"edge": [(2, 3)]})
        assert sessions.db._backend.placements[1].why.endswith("; they agree on the numbers of new values")
        assert sessions.db._backend.kernel.evicted == {"far"}


@pytest.mark.parametrize(("text", "facts"), [(WORDS, PARTS), (LISTS, PARTS)], ids=["texts", "records"])
def test_tasks_read_many_texts_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, facts: Any
) -> None:
    monkeypatch.setattr(SETTINGS, "spark_few_texts", 0)
    monkeypatch.setattr(values, "MOST_IN_A_FILE", 3)
    with tasks_in_this_process(tmp_path) as session, both(text, facts, session) as sessions:
        for inserted in ([("bob", "zz")], [("new", "n"), ("newer", "m"), ("ann", "k")]):
            sessions.apply({"part": inserted})
        assert wheres(sessions.db) == {"tasks"}
        # One that is not full is written anew: none but the last is.
        number = len(sessions.db._dictionary.symbols)
        assert len(list(tmp_path.rglob("texts-*.parquet"))) <= number // 3 + 1


def test_what_is_computed_with_the_numbers_of_new_texts_is_done_by_one_task(tmp_path: Path) -> None:
    text = """
.decl part(owner: symbol, text: symbol)
.decl known(owner: symbol, text: symbol, id: number)
known(o, cat(t, "!"), ord(cat(t, "!"))) :- part(o, t).
.decl same(id: number)
same(n) :- known(_, _, n).
"""
    facts = {"part": [(owner, text) for owner in ("a", "b", "c", "d") for text in ("p", "q")]}
    with tasks_in_this_process(tmp_path) as session, elastalog.open(text, facts, engine="spark", spark=session) as db:
        for number, inserted in enumerate(([], [("a", "r")], [("e", "r"), ("e", "s")])):
            db.apply({"part": inserted})
            assert wheres(db) == {"tasks"}
            # So many texts, and each has the number that the session knows it by.
            symbols = db._dictionary.symbols
            assert {(text, n) for _, text, n in db["known"]} == {
                (text, symbols.encode_one(text)) for text in ("p!", "q!", "r!", "s!")[: 2 + number]
            }
            assert len(db["same"]) == 2 + number
        (placement,) = {p.why for p in db._backend.placements.values() if p.why.startswith("one task")}
        assert placement == "one task: rules make texts that have no number yet, and look at their numbers"


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
