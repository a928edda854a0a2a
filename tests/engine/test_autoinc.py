"""`autoinc()` and `$`: a number for every derivation, which it keeps for as long as it exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.analysis.checking import codes
from tests.provenance.databases import verdict
from tests.reference.cases import parse_accepted
from tests.reference.evaluator import evaluate

PROGRAM = """
.decl e(x: number, y: symbol)
.input e
.decl id(x: number, n: number)
id(x, autoinc()) :- e(x, _).
.decl pair(a: number, b: number, x: number)
pair($, $, x) :- id(x, _), x > 1.
.decl none(n: number)
none($).
"""
FACTS = {"e": [(3, "c"), (1, "a"), (2, "b")]}


def test_a_fresh_evaluation_numbers_from_0_by_rule_and_then_by_values() -> None:
    db = elastalog.open(PROGRAM, facts=FACTS)
    numbers = sorted(n for name in ("id", "none") for *_, n in db[name])
    numbers += sorted(n for a, b, _ in db["pair"] for n in (a, b))
    assert sorted(numbers) == list(range(8))
    assert [x for x, _ in sorted(db["id"], key=lambda fact: fact[1])] == [1, 2, 3]


def test_texts_are_ordered_by_their_characters() -> None:
    text = ".decl t(s: symbol)\n.input t\n.decl n(s: symbol, n: number)\nn(s, autoinc()) :- t(s)."
    for rows in (["b", "é", "a", "Z"], ["é", "Z", "a", "b"]):
        db = elastalog.open(text, facts={"t": [(row,) for row in rows]})
        assert sorted(db["n"], key=lambda fact: fact[1]) == [("Z", 0), ("a", 1), ("b", 2), ("é", 3)]


def test_a_derivation_is_told_apart_by_all_variables_of_its_rule() -> None:
    db = elastalog.open(PROGRAM, facts={"e": [(1, "a"), (1, "b")]})
    assert sorted(db["id"]) == [(1, 0), (1, 1)]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_updates_keep_numbers_and_give_new_ones(strategy: str) -> None:
    db = elastalog.open(PROGRAM, facts=FACTS, strategy=strategy)
    known = {name: set(db[name]) for name in db}
    for inserted, deleted in [({"e": [(0, "z"), (9, "q")]}, {"e": [(1, "a")]}), ({"e": [(1, "a")]}, {"e": [(2, "b")]})]:
        before = known
        db.apply(inserted, deleted)
        known = {name: set(db[name]) for name in db}
        gone = {row[0] for row in deleted["e"]}
        assert {fact for fact in before["id"] if fact[0] not in gone} <= known["id"]
        assert {fact for fact in before["pair"] if fact[2] not in gone} <= known["pair"]
        assert {x for x, _ in known["id"]} == {x for x, _ in db["e"]}
        numbers = [n for _, n in known["id"]] + [n for fact in known["pair"] for n in fact[:2]] + [known["none"]]
        assert len(numbers) == len(set(map(str, numbers)))


def test_every_strategy_gives_the_same_numbers() -> None:
    found = set()
    for strategy in STRATEGIES:
        db = elastalog.open(PROGRAM, facts=FACTS, strategy=strategy, jobs=2)
        db.apply({"e": [(7, "x"), (4, "y")]}, {"e": [(3, "c")]})
        found.add(str({name: sorted(db[name]) for name in db}))
    assert len(found) == 1


@pytest.mark.parametrize("options", [{"strategy": name} for name in STRATEGIES] + [{"budget": 0.0}])
def test_a_number_given_in_the_epoch_before_is_not_given_at_once_again(options: dict[str, Any]) -> None:
    text = ".decl e(x: number)\n.input e\n.decl p(x: number, n: number)\np(x, $) :- e(x)."
    with elastalog.open(text, facts={"e": [(1,), (2,)]}, **options) as db:
        db.apply({"e": [(3,)]}, {"e": [(2,)]})
        assert set(db["p"]) == {(1, 0), (3, 2)}


ASKED_FOR = """
.decl e(x: number)
.input e
.decl r(x: number)
r(5).
r(x - 1) :- r(x), count : { e(z), z < x } > 0.
.decl n(x: number, n: number)
n(x, $) :- r(x).
.decl a(n: number, m: number)
a(n, $) :- n(_, n).
.decl s(n: number)
s(0).
s(n - 1) :- s(n), count : { a(z, _), z + 2 > 0 - n } > 0.
.decl q(n: number, m: number)
q(n, $) :- s(n).
"""
"""Which groups are counted is known only when the recursion has reached them, that of `s` by numbers of `n`."""


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_numbers_do_not_tell_in_which_order_groups_were_asked_for(strategy: str) -> None:
    db = elastalog.open(ASKED_FOR, facts={"e": [(0,)]}, strategy=strategy)
    assert sorted(db["n"]) == [(x, x) for x in range(6)]
    assert sorted(db["a"]) == [(x, 6 + x) for x in range(6)]
    assert sorted(db["q"]) == [(n, n + 19) for n in range(-7, 1)]


@pytest.mark.parametrize("levels", ["local", "global"])
def test_a_wildcard_in_an_equivalence_tells_nothing_apart(levels: str) -> None:
    text = ".decl e(x: number, y: number) eqrel\n.input e\n.decl p(x: number, n: number)\np(x, $) :- e(x, _)."
    with elastalog.open(text, facts={"e": [(1, 2), (2, 3)]}, levels=levels) as db:
        assert set(db["p"]) == {(1, 0), (2, 1), (3, 2)}


def test_nor_does_it_beside_a_constant() -> None:
    """The reference took it for another derivation of every member."""
    text = ".decl e(x: number, y: number) eqrel\n.decl p(x: number, n: number)\np(x, $) :- x = range(0, 3), e(2, _)."
    facts = {"e": {(1, 2), (2, 3)}}
    with elastalog.open(text, facts={name: list(rows) for name, rows in facts.items()}) as db:
        assert set(db["p"]) == {(0, 0), (1, 1), (2, 2)} == evaluate(parse_accepted(text), facts)["p"]


@pytest.mark.parametrize("levels", ["local", "global"])
def test_levels_do_not_see_the_numbering(levels: str) -> None:
    db = elastalog.open(PROGRAM, facts=FACTS, levels=levels)
    assert set(db["id"].to_arrow(annotations=True)["@level"].to_pylist()) == {1}
    found = db.verify()
    assert not found.missing
    assert not found.misplaced


def test_stores_and_rule_changes_keep_numbers(tmp_path: Path) -> None:
    with elastalog.open(PROGRAM, facts=FACTS, store=tmp_path / "store") as db:
        db.apply({"e": [(7, "x")]}, {"e": [(1, "a")]})
        before = set(db["id"])
    with elastalog.open(store=tmp_path / "store") as db:
        assert set(db["id"]) == before
        db.change_rules(added="e(x + 100, y) :- e(x, y), x < 3.")
        assert before < set(db["id"])
        db.change_rules(removed=["e(x + 100, y) :- e(x, y), x < 3."])
        assert set(db["id"]) == before
        db.apply({"e": [(1, "a")]})
        assert before < set(db["id"])
        assert not db.verify().missing


def test_proofs_hold_and_absence_says_that_the_number_is_another() -> None:
    db = elastalog.open(PROGRAM, facts=FACTS)
    explicit: dict[str, Any] = {"e": set(FACTS["e"])}
    for name in ("id", "pair"):
        for fact in db[name]:
            assert verdict(db.explain((name, fact)), db, explicit)
    assert "7 = autoinc() X" in str(db.why_not("id(1, 7)"))


def test_what_depends_on_a_number_does_not_decide_about_it() -> None:
    rule = "p(x, m) :- e(x), n = autoinc(), m = n * 10, n != 1."
    text = f".decl e(x: number)\n.input e\n.decl p(x: number, n: number)\n{rule}"
    db = elastalog.open(text, facts={"e": [(5,), (6,), (7,)]})
    assert sorted(db["p"]) == [(5, 0), (7, 20)]


def test_on_another_engine() -> None:
    here, there = (elastalog.open(PROGRAM, facts=FACTS, engine=engine) for engine in ("local", "gpu"))
    for db in (here, there):
        db.apply({"e": [(7, "x"), (4, "y")]}, {"e": [(3, "c")]})
    assert {name: set(here[name]) for name in here} == {name: set(there[name]) for name in there}


def test_recursion_and_aggregates_are_refused() -> None:
    text = ".decl p(x: number, n: number)\np(1, 0).\n"
    assert codes(text + "p(x, $) :- p(x, _).") == ["E0260"]
    assert codes(text + ".decl q(n: number)\nq(n) :- n = count : { p(_, _), 3 > $ }.") == ["E0261"]
