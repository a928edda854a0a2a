"""Classes that take part in their own recursion, maintained: what an evaluation anew gives, levels included, at the
cost of what an update concerns."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.backends.kernel import merging
from elastalog.evaluation import costs
from elastalog.evaluation.costs import Budget
from elastalog.settings import SETTINGS
from tests.engine.judging import followed, how, judge, least_budget, levels_of
from tests.engine.test_merging import CONGRUENT, PROGRAMS
from tests.reference.cases import parse_accepted

MORE = {
    "negation": CONGRUENT.replace("edge(x, y).", "edge(x, y), !next(y, x).")
    + "same(x, y) :- same(x, z), edge(z, y), !next(x, y).\n",
    "another relation": CONGRUENT
    + ".decl mark(x: number)\n.input mark\nmark(y) :- mark(x), same(x, z), next(z, y).\n"
    + "same(x, y) :- mark(x), mark(y), next(x, y).\n",
    "pairs as facts": CONGRUENT
    + ".decl pair(x: number, y: number)\n.input pair\npair(x, y) :- same(x, y), next(x, _).\n"
    + "pair(x, z) :- pair(x, y), next(y, z), !edge(x, z).\nsame(x, y) :- pair(x, y), pair(y, z), edge(z, x).\n",
    "numbers": CONGRUENT + "same(x + 1, y + 1) :- same(x, y), x < 6, y < 6, next(x, y).\n",
    # Every value is in a class from the start: what joins them is not to be seen from what was there.
    "all are members": CONGRUENT + "same(x, x) :- next(x, _).\nsame(x, x) :- next(_, x).\n",
}
FORMS = [*PROGRAMS.values(), *MORE.values()]
Explicit = dict[str, set[Any]]


def drawn(random: Random, names: list[str], values: int, most: int) -> Explicit:
    """Some facts of some relations."""
    return {
        name: {
            tuple(random.randrange(values) for _ in range(1 if name == "mark" else 2))
            for _ in range(random.randrange(most + 1))
        }
        for name in names
    }


def attack(seed: int, budget: Budget) -> set[str]:
    """A random stream of updates, in which relations grow and fall, judged after every one. Returns how they went."""
    random = Random(seed)
    text = FORMS[seed % len(FORMS)]
    names = [name for name in ("edge", "next", "same", "mark", "pair") if f".input {name}\n" in text]
    values = random.choice((5, 9) if seed < 10 else (5, 9, 14))
    went: set[str] = set()
    with followed(text, drawn(random, names, values, values), budget=budget) as session:
        for epoch in range(6):
            is_growing = epoch % 4 < 2
            come = drawn(random, names, values, 4 if is_growing else 1)
            go = {
                name: set(random.sample(sorted(facts), min(len(facts), random.randrange(2 if is_growing else 5))))
                for name, facts in session.explicit.items()
            }
            session.apply(come, go)
            if len(session.db.log()) > 1:  # an update that changes nothing is no epoch
                went |= session.how("same")
        session.prove("same", most=2)
    return went


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 1_000), marks=pytest.mark.long)])
def test_random_updates_give_what_an_evaluation_anew_gives(seeds: range) -> None:
    assert {how for seed in seeds for how in attack(seed, None)} == {"update"}


def test_updates_that_are_abandoned_or_not_tried_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with least_budget(5):
        assert {how for seed in range(5) for how in attack(seed, 0.01)} == {"update", "switch"}
    monkeypatch.setattr(costs, "_share_allowed", lambda *_: 0.0)
    with least_budget(5):
        assert {how for seed in range(5) for how in attack(seed, costs.AUTO)} == {"update", "recompute"}


def many(number: int) -> dict[str, list[tuple[int, int]]]:
    """Functions of four values each, of which two are equal: so two classes of two."""
    return {
        "edge": [(10 * i, 10 * i + 1) for i in range(number)],
        "next": [(10 * i + k, 10 * i + k + 2) for i in range(number) for k in (0, 1)],
    }


@pytest.mark.parametrize("change", ["edge", "next", "same"])
def test_an_update_of_one_class_among_many_costs_what_that_class_is(change: str) -> None:
    both = []
    for number in (10, 2_000):
        facts = {**many(number), "same": [(50, 51)] if change == "same" else []}
        one = {change: [(50, 52) if change == "next" else (50, 51)]}
        with elastalog.open(CONGRUENT, facts) as db:
            watch, spent = db._backend.watch, []
            for come, go in (({}, one), (one, {})):
                derivations, touched = watch.derivations, watch.touched
                db.apply(come, go)
                assert how(db, "same") == {"update"}
                spent.append((watch.derivations - derivations, watch.touched - touched))
            both.append(spent)
            assert len(db["same"]) == 8 * number
    assert both[0] == both[1]
    assert all(0 < cost < 20 for spent in both[0] for cost in spent)


def test_levels_by_hand() -> None:
    with elastalog.open(CONGRUENT, {"edge": [(1, 2)], "next": [(1, 3), (2, 4), (3, 5), (4, 6)]}) as db:

        def level(x: int, y: int) -> int | None:
            return next(
                (int(found) for (name, fact), (found, _) in levels_of(db).items() if (name, fact) == ("same", (x, y))),
                None,
            )

        assert (level(1, 2), level(4, 3), level(5, 6)) == (2, 3, 4)  # one more than the pair of the rule
        db.apply({"edge": [(3, 4)]})
        assert (level(4, 3), level(5, 6)) == (2, 3)  # there is a shorter way
        db.apply({"same": [(6, 5)]}, {"edge": [(3, 4)]})
        assert (level(4, 3), level(6, 5), level(5, 6)) == (3, 0, 1)
        db.apply(deleted={"edge": [(1, 2)]})
        assert (level(1, 1), level(4, 3), level(6, 5)) == (None, None, 0)


def cascade(length: int) -> dict[str, list[tuple[int, ...]]]:
    """Two chains of values, each in a class of its own."""
    return {"next": [(2 * i + k, 2 * i + k + 2) for i in range(length) for k in (0, 1)], "edge": []}


def test_classes_that_join_one_after_another_are_found_in_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    text, attempts = MORE["all are members"], 0
    forget = merging.MergingUpdate._forget

    def attempt(update: merging.MergingUpdate, concerned: merging.Facts) -> None:
        nonlocal attempts
        attempts += 1
        forget(update, concerned)

    monkeypatch.setattr(merging.MergingUpdate, "_forget", attempt)
    with followed(text, cascade(30), budget=None) as session:
        session.apply({"edge": [(0, 1)]})
        assert session.how("same") == {"update"}
        assert attempts == 2
        assert (60, 61) in session.db["same"]
        session.apply(deleted={"edge": [(0, 1)]})


def test_all_is_evaluated_anew_where_more_and_more_is_concerned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "merging_attempts", 1)
    text = MORE["all are members"]
    with elastalog.open(text, cascade(3), budget=None) as db:
        db.apply({"edge": [(0, 1)]})
        (work,) = (work for work in db.log()[-1].strata if "same" in work.relations)
        assert (work.how, work.why.split(",")[0]) == ("switch", "other classes were concerned again and again")
        assert (6, 7) in db["same"]


def test_a_large_class_is_evaluated_anew_and_a_small_one_beside_it_is_not() -> None:
    chain = [(i, i + 2) for i in range(600)]
    facts = {"edge": [(0, 1), (1, 2), (5_000, 5_001)], "next": [*chain, (5_000, 5_002), (5_001, 5_003)]}
    with elastalog.open(CONGRUENT, facts, budget=0.05) as db:
        db.apply(deleted={"edge": [(5_000, 5_001)]})
        assert how(db, "same") == {"update"}
        assert len(db["same"]) == 602**2
        db.apply(deleted={"next": [(300, 302)]})
        assert how(db, "same") == {"switch"}
        assert db.verify().is_exact


def test_previews_and_restored_sessions_maintain_classes(tmp_path: Path) -> None:
    tree = parse_accepted(CONGRUENT)
    with followed(CONGRUENT, many(20), store=tmp_path / "s") as session:
        levels = levels_of(session.db)
        preview = session.db.preview(deleted={"edge": [(50, 51)]})
        assert {name: len(found.deleted) for name, found in preview.items()} == {"edge": 1, "same": 8}
        assert levels_of(session.db) == levels
        session.apply({"edge": [(51, 61)]}, {"edge": [(50, 51)]})
        facts = {**session.explicit, "same": set()}
    with elastalog.open(store=tmp_path / "s") as db:
        judge(db, tree, facts)
        db.apply({"same": [(51, 60)]}, {"edge": [(60, 61)]})
        facts["edge"].discard((60, 61))
        facts["same"].add((51, 60))
        assert how(db, "same") == {"update"}
        judge(db, tree, facts)
    with elastalog.open(store=tmp_path / "s") as db:
        judge(db, tree, facts)


HUGE = 2**62


def test_what_is_not_derived_may_overflow() -> None:
    text = """
    .decl a(x: number)
    .decl b, edge(x: number, y: number)
    .decl same(x: number, y: number) eqrel
    same(x, y) :- edge(x, y).
    same(x * y, z) :- b(x, y), a(x), edge(z, _), same(z, z).
    """
    facts: Explicit = {"a": {(i,) for i in range(1_000)}, "b": {(2, 3), (HUGE, 4)}, "edge": {(1, 2), (6, 7)}}
    with followed(text, facts) as session:
        session.apply(deleted={"edge": [(1, 2)]})
        with pytest.raises(elastalog.ElastalogError, match="does not fit the type number"):
            session.db.apply({"a": [(HUGE,)], "edge": [(1, 2)]})
        assert set(session.db["same"]) == {(x, y) for x in (6, 7) for y in (6, 7)}
        session.apply({"edge": [(1, 2)]})
        assert session.how("same") == {"update"}
