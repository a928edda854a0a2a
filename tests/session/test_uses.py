"""What a fact is used for, beside special relations, records and floats. Expected facts are found by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

import elastalog
from elastalog import Branch
from elastalog.session import Session

PROGRAM = """
.type List = [head: number, tail: List]
.type Tree = Leaf {value: number} | Node {left: Tree, right: Tree}
.decl edge(x: number, y: number)
.decl far()
far() :- edge(_, y), y > 2.
.decl told()
told() :- far().
.decl numbered(i: number, x: number)
numbered(autoinc(), x) :- edge(x, _).
.decl chosen(x: number, y: number) choice-domain x
chosen(x, y) :- edge(x, y).
.decl least(x: number, y: number)
least(x, y) :- edge(x, y).
least(x, a) <= least(x, b) :- b < a.
.decl below(x: number)
below(range(0, y)) :- edge(_, y).
.decl seen(x: number)
seen(x) :- below(x).
.decl list, longer(l: List)
longer([1, l]) :- list(l), l != [2, nil].
.decl kept(l: List)
kept(l) :- longer(l).
.decl tree, leaf(t: Tree)
leaf(l) :- tree($Node(l, $Leaf(_))).
.decl value, copy(x: float)
copy(x) :- value(x).
.decl again(x: float)
again(x) :- copy(x).
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y), x < 2.
.decl joined(x: number)
joined(y) :- same(1, y), y != 1.
"""
LEAF = Branch("Leaf", 1)
FACTS: dict[str, list[Any]] = {
    "edge": [(1, 2), (1, 3), (2, 3)],
    "list": [(None,), ((2, None),), ((3, None),)],
    "tree": [(Branch("Node", LEAF, LEAF),)],
    "value": [(math.nan,), (math.inf,), (1.5,)],
}


@pytest.fixture(scope="module")
def db() -> Session:
    return elastalog.open(PROGRAM, FACTS)


DIRECT = {
    "edge(1, 2)": "below(0); below(1); chosen(1, 2); least(1, 2); numbered(0, 1); same(1, 2)",
    # It is not chosen and does not stay, and its number is its own.
    "edge(1, 3)": "below(0); below(1); below(2); far(); numbered(1, 1); same(1, 3)",
    "far()": "told()",
    "list([3, nil])": "longer([1, [3, nil]])",
    "list([2, nil])": "",
    "list(nil)": "longer([1, nil])",
    "longer([1, nil])": "kept([1, nil])",
    "tree($Node($Leaf(1), $Leaf(1)))": "leaf($Leaf(1))",
    "value(nan)": "copy(nan)",
    "same(1, 3)": "joined(3); same(1, 1); same(1, 2); same(2, 3); same(3, 1); same(3, 3)",
}


@pytest.mark.parametrize(("fact", "expected"), DIRECT.items())
def test_what_follows_in_one_step(db: Session, fact: str, expected: str) -> None:
    assert sorted(map(str, db.uses(fact))) == sorted(filter(None, expected.split("; ")))


ALL = {
    "far()": "told()",
    "longer([1, nil])": "kept([1, nil])",
    "leaf($Leaf(1))": "",
    "below(1)": "seen(1)",
    "value(nan)": "again(nan); copy(nan)",
    "copy(nan)": "again(nan)",
    "copy(inf)": "again(inf)",
    "chosen(1, 2)": "",
    # The class falls apart only where nothing else holds it together.
    "same(1, 2)": "joined(2); same(2, 1); same(2, 2); same(2, 3); same(3, 2)",
    "same(2, 3)": "",
}


@pytest.mark.parametrize(("fact", "expected"), ALL.items())
def test_what_would_go_with_a_fact(db: Session, fact: str, expected: str) -> None:
    assert sorted(map(str, db.uses(fact, all=True))) == sorted(filter(None, expected.split("; ")))
    assert db.epoch == 1


def test_rules_may_use_any_names() -> None:
    program = """
    .decl given, next(x: number)
    next(value_0_ + 1) :- given(value_0_).
    .decl pair(x: number, y: number)
    pair(value_0, value__1 + 1) :- next(value_0), given(value__1).
    """
    with elastalog.open(program, {"given": [(1,), (5,)]}) as db:
        assert set(map(str, db.uses("next(2)", all=True))) == {"pair(2, 2)", "pair(2, 6)"}
        assert set(map(str, db.uses("next(2)"))) == {"pair(2, 2)", "pair(2, 6)"}


NUMBERED = """
.decl edge(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
.decl id(i: number, x: number)
id(autoinc() + 10, x) :- edge(x, y), y > 1.
id(7, 7).
.decl known(i: number)
known(i) :- id(i, _).
.decl twice(i: number, x: number)
twice(2 * i, x) :- edge(x, _), i = autoinc(), i >= 0.
.decl pick(i: number, x: number) choice-domain x
pick($, x) :- edge(x, _).
.decl picked(x: number)
picked(x) :- pick(_, x).
.decl reach(i: number, x: number)
reach($, x) :- edge(x, _), x < 2.
reach(i, y) :- reach(i, x), edge(x, y).
.decl alike(i: number, x: number)
alike($, x) :- same(x, _), x > 1.
"""


@pytest.fixture(scope="module")
def numbered() -> Session:
    return elastalog.open(NUMBERED, {"edge": [(1, 2), (1, 3), (2, 3)]})


def facts_of(db: Session, relation: str, last: int) -> list[str]:
    """The facts of a relation that end so, by their numbers."""
    return [f"{relation}({number}, {x})" for number, x in sorted(db[relation]) if x == last]


def test_a_number_is_that_of_a_derivation_from_the_fact(numbered: Session) -> None:
    first = {name: facts_of(numbered, name, 1)[0] for name in ("id", "twice", "pick", "reach")}
    assert set(map(str, numbered.uses("edge(1, 2)"))) == {
        *first.values(), *facts_of(numbered, "reach", 2), "same(1, 2)"
    }  # fmt: skip


def test_with_a_number_go_only_the_facts_that_rest_on_it(numbered: Session) -> None:
    for fact in ("twice", "alike"):
        for other in facts_of(numbered, fact, 2):
            assert not list(numbered.uses(other, all=True))
    for i, x in numbered["id"]:
        assert list(map(str, numbered.uses(f"id({i}, {x})", all=True))) == [f"known({i})"]


def test_with_a_number_goes_what_recursion_derived_from_it(numbered: Session) -> None:
    number = min(numbered["reach"])[0]
    gone = set(map(str, numbered.uses(f"reach({number}, 1)", all=True)))
    assert gone == {f"reach({number}, 2)", f"reach({number}, 3)"}
    assert not list(numbered.uses(f"reach({number}, 2)", all=True))  # 3 follows from 1 as well


def test_another_numbered_candidate_takes_the_place_of_one_that_goes(numbered: Session) -> None:
    (one,), (two,) = (facts_of(numbered, "pick", x) for x in (1, 2))
    assert not list(numbered.uses(one, all=True))
    assert list(map(str, numbered.uses(two, all=True))) == ["picked(2)"]


def test_a_fact_of_records_and_other_values() -> None:
    program = """
    .type Pair = [x: number, y: float]
    .type Tree = Leaf {} | Node {v: float}
    .decl made, kept(p: Pair, t: Tree, a: number, b: number, f: float)
    kept(p, t, a, b, f) :- made(p, t, a, b, f).
    """
    row = ((1, 0.5), Branch("Leaf"), 5, 6, 1.5)
    with elastalog.open(program, {"made": [row, (None, Branch("Node", 2.0), 7, 7, 2.5)]}) as db:
        for values in db["made"]:
            assert list(db.uses(("made", values))) == [("kept", values)]
