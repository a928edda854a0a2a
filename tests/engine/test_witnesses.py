"""Variables of a least or greatest value that the rule uses outside: whatever attains it."""

from __future__ import annotations

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.analysis.checking import codes
from tests.provenance.databases import verdict

PROGRAM = """
.decl age(p: symbol, y: number)
.input age
.decl of(g: number, p: symbol)
.input of
.decl youngest(p: symbol, a: number)
youngest(p, a) :- a = min y : { age(p, y) }.
.decl oldest_below(p: symbol)
oldest_below(p) :- 0 < a, a = max y + 1 : { age(p, y), y < 9 }.
.decl first(g: number, p: symbol)
first(g, p) :- of(g, _), _a = min y : { of(g, p), age(p, y) }.
"""
FACTS = {"age": [("a", 3), ("b", 1), ("c", 1), ("d", 8)], "of": [(1, "a"), (1, "b"), (2, "a"), (2, "d")]}


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_all_that_attain_it_in_each_group_after_updates_too(strategy: str) -> None:
    db = elastalog.open(PROGRAM, facts=FACTS, strategy=strategy)
    assert sorted(db["youngest"]) == [("b", 1), ("c", 1)]
    assert sorted(db["oldest_below"]) == [("d",)]
    assert sorted(db["first"]) == [(1, "b"), (2, "a")]
    db.apply({"age": [("a", 0)]}, {"age": [("d", 8), ("b", 1)]})
    assert sorted(db["youngest"]) == [("a", 0)]
    assert sorted(db["oldest_below"]) == [("a",)]
    assert sorted(db["first"]) == [(1, "a"), (2, "a")]


def test_it_has_proofs() -> None:
    db = elastalog.open(PROGRAM, facts=FACTS)
    explicit = {name: set(rows) for name, rows in FACTS.items()}
    for name in ("youngest", "oldest_below", "first"):
        for fact in db[name]:
            assert verdict(db.explain((name, fact)), db, explicit)


@pytest.mark.parametrize(
    "aggregate", ["n = sum y : { age(p, y) }", "n = count : { age(p, _) }", "n = min y : { age(p, y) ; age(y, p) }"]
)
def test_other_aggregates_have_none(aggregate: str) -> None:
    text = f".decl age(p: number, y: number)\n.input age\n.decl q(p: number, n: number)\nq(p, n) :- {aggregate}."
    assert codes(text) == ["E0320"]
