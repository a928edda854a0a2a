"""Faults that random cases found, in the smallest form."""

from __future__ import annotations

import elastalog
from tests.engine.judging import least_budget, levels_of


def test_a_derivation_through_a_lowered_fact_stays_counted() -> None:
    text = """
    .decl e, p, q(x: number, y: number)
    p(4, w) :- e(w, _).
    q(x, z + 1) :- p(x, w), p(x, z).
    """
    db = elastalog.open(text, facts={"e": [(3, 1), (1, 1)]}, levels="global")
    db.apply({"p": [(4, 1)]})
    # p(4,3) with itself, and with p(4,1), which is at level 0 now: both fire one above p(4,3).
    assert levels_of(db)["q", (4, 4)] == (2, 2)
    # p(4,1) with itself fires at 1; with p(4,3) later.
    assert levels_of(db)["q", (4, 2)] == (1, 1)


def test_a_tested_group_may_be_bound_beside_recursion() -> None:
    text = """
    .decl e, p(x: number)
    p(x) :- e(x), x = 0.
    p(x) :- e(x), p(y), n = count : { e(k), k < x }, n = y + 1.
    """
    db = elastalog.open(text, facts={"e": [(0,), (1,), (2,), (7,)]})
    assert set(db["p"]) == {(0,), (1,), (2,), (7,)}
    db.apply(deleted={"e": [(1,)]})
    assert set(db["p"]) == {(0,), (2,)}  # below 7 are two, and p(1) is gone
    db.apply({"e": [(5,)]}, {"e": [(0,)]})
    assert set(db["p"]) == set()


def test_global_levels_of_recursion_over_an_empty_relation() -> None:
    text = """
    .decl given, e, f, p(x: number)
    e(x) :- given(x).
    p(x) :- e(x).
    p(x + 1) :- p(x), f(x).
    """
    db = elastalog.open(text, facts={"given": [(1,)]}, levels="global")
    assert levels_of(db) == {("given", (1,)): (0, 1), ("e", (1,)): (1, 1), ("p", (1,)): (2, 1)}
    db.apply({"f": [(1,)]})
    assert levels_of(db)["p", (2,)] == (3, 1)


def test_global_levels_of_a_stratum_evaluated_anew_above_an_aggregate_that_was_raised() -> None:
    text = """
    .decl edge, path(x: number, y: number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .decl step(x: number, y: number)
    .decl reached(x: number)
    reached(1) :- step(1, _).
    reached(y) :- reached(x), step(x, y), 9 = max z : { path(y, z) }.
    """
    facts = {"step": [(1, 2), (2, 3)], "edge": [(2, 9), (3, 9), (3, 4), (4, 5), (5, 9)]}
    with least_budget(0), elastalog.open(text, facts, levels="global", budget=0.0) as db:
        db.apply(deleted={"edge": [(3, 9)]})
        # path(3, 9) has height 3 now, so its member 4, and the maximum 5.
        assert levels_of(db)["reached", (3,)] == (6, 1)


def test_what_did_not_change_has_no_facts_to_show() -> None:
    text = """
    .decl e, f(x: number, y: number)
    f(x, y) :- e(x, y), x < y.
    """
    db = elastalog.open(text, facts={"e": [(1, 2)]})
    changes = db.apply({"e": [(3, 1)]})
    assert list(changes["e"].inserted) == [(3, 1)]
    assert list(changes["f"].inserted) == list(changes["f"].deleted) == []


def test_a_question_about_a_text_that_no_fact_has() -> None:
    db = elastalog.open(".decl e(x: symbol, y: number, z: number)\n", facts={"e": [("a", 1, 2)]})
    assert list(db.query('e("b", X, Y)')) == []


def test_a_range_that_overflows_is_no_derivation_when_looked_for_backwards() -> None:
    program = """
    .decl q(a: number, b: number, y: number)
    .decl r(x: number, y: number)
    .decl p(y: number)
    p(y) :- q(a, b, y), x = range(a * b, a * b + 1), r(x, y).
    """
    facts = {"q": [(2**62, 2, 1), (1, 1, 2), (1, 1, 3), (1, 1, 4)], "r": [(1, 7), (2, 7), (3, 7)]}
    with elastalog.open(program, facts=facts, budget=None, engine="local") as db:
        db.apply(inserted={"p": [(1,), (2,)]})
        db.apply(deleted={"p": [(1,), (2,)]})
        assert not set(db["p"])
        db.apply(inserted={"r": [(1, 2)], "p": [(2,)]})
        db.apply(deleted={"p": [(2,)]})
        assert set(db["p"]) == {(2,)}
