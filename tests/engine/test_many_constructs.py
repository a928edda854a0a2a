"""One program of many constructs at once, with random updates, under every strategy: after each it is what evaluation
anew of the same facts gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

import elastalog

# What every strategy maintains; `SPECIAL` has what only `elastic` and `recompute` do.
PLAIN = """
/// Calls between methods, and what they hand on.
.type Method <: symbol
.type Context = [caller: Method, rest: Context]
.type Value = Int {n: number} | Text {s: symbol} | Pair {a: Value, b: Value} | Nothing {}
.type Interval = [least: number, most: number]
.functor hull(so_far: Interval, x: number): Interval stateful
.functor name(v: Value): symbol stateful

.decl call(from: Method, to: Method, cost: number)
.decl assign(m: Method, v: Value)
.input call, assign

.comp Graph<N> {
    .decl edge(x: N, y: N)
    .decl reach(x: N, y: N) overridable
    reach(x, y) :- edge(x, y).
    reach(x, z) :- reach(x, y), edge(y, z).
    .decl loop(x: N)
    loop(x) :- reach(x, x).
}
.comp Without<N> : Graph<N> {
    .decl barred(x: N)
    .override reach
    reach(x, y) :- edge(x, y), !barred(y).
    reach(x, z) :- reach(x, y), edge(y, z), !barred(z).
}
.init calls = Graph<Method>
.init clean = Without<Method>
calls.edge(x, y), clean.edge(x, y) :- call(x, y, _).
clean.barred(m) :- assign(m, $Nothing).

.decl near(x: Method, y: Method) inline
near(x, y) :- call(x, y, c), c < 3 ; call(y, x, c), c < 3, !(x = y ; c = 0).

.decl context(m: Method, c: Context, depth: number)
context(m, nil, 0) :- call(m, _, _), !call(_, m, _).
context(to, [from, c], d + 1) :- context(from, c, d), call(from, to, _), d < 3.

.decl value(m: Method, v: Value)
value(m, v) :- assign(m, v).
value(m, a), value(m, b) :- value(m, $Pair(a, b)).
value(to, v) :- value(from, v), near(from, to), v != $Nothing.
value(m, $Pair($Int(n), $Int(n + 1))) :- value(m, $Int(n)), n < 3.

.decl named(m: Method, s: symbol)
named(m, cat(as(m, symbol), ":", @name(v))) :- value(m, v), !match(".*x.*", @name(v)).

.decl cost(m: Method, n: number, least: number, all: Interval)
cost(m, n, l, h) :-
    call(m, _, _),
    n = count : { call(m, _, _) },
    l = min c : { call(m, _, c) },
    h = @@hull c : [0, 0], { call(m, _, c) }.

.decl busy(m: Method, total: number)
busy(m, t) :- cost(m, n, _, _), t = sum c + k : { call(m, _, c), k = range(0, 2) }, t > n.

.decl alike(x: Method, y: Method) eqrel
alike(x, y) :- value(x, $Int(n)), value(y, $Int(n)).
.decl apart(x: Method, y: Method)
apart(x, y) :- calls.reach(x, y), !alike(x, y), (busy(x, _) ; context(y, [x, _], _)).
"""

SPECIAL = """
.decl parent(x: Method, y: Method) choice-domain y
parent(x, y) :- call(x, y, _), x != y.
.decl distance(m: Method, d: number)
distance(m, 0) :- call(m, _, _), !call(_, m, _).
distance(y, d + c) :- distance(x, d), call(x, y, c).
distance(m, a) <= distance(m, b) :- b < a.
.decl numbered(i: number, m: Method)
numbered(autoinc(), m) :- distance(m, _).
"""

FUNCTORS = {
    "hull": lambda so_far, x: (min(so_far[0], x), max(so_far[1], x)),
    "name": lambda v: v.name.lower() + str(len(v.parts)) if v.name != "Text" else v.parts[0],
}
READ = [
    "calls.reach", "calls.loop", "clean.reach", "context", "value", "named", "cost", "busy", "alike", "apart",
]  # fmt: skip


# Something of every relation follows from these: `q` calls and is not called, and has no values.
ALWAYS = [
    ("call", ("q", "a", 3)),
    ("call", ("a", "b", 1)),
    ("call", ("b", "a", 4)),
    ("assign", ("a", elastalog.Branch("Int", 1))),
]


def some_fact(chance: random.Random) -> tuple[str, tuple[Any, ...]]:
    methods = "abcde"
    if chance.random() < 0.6:
        return "call", (chance.choice("rs" + methods), chance.choice(methods), chance.randrange(5))
    branch = elastalog.Branch
    number = branch("Int", chance.randrange(3))
    text = branch("Text", chance.choice(["x1", "y", "z"]))
    value = chance.choice([number, text, branch("Pair", number, text), branch("Nothing")])
    return "assign", (chance.choice(methods), value)


def facts_of(db: elastalog.Session, relations: list[str]) -> dict[str, set[str]]:
    return {name: {repr(row) for row in db[name]} for name in relations}


@pytest.mark.parametrize("strategy", ["elastic", "dense", "dred", "dredc", "bf", "bfc"])
def test_updates_of_all_at_once_are_as_evaluated_anew(strategy: str) -> None:
    program = PLAIN + (SPECIAL if strategy == "elastic" else "")
    relations = [*READ, *(["parent", "distance"] if strategy == "elastic" else [])]
    chance = random.Random(strategy)
    held = {*ALWAYS, *(some_fact(chance) for _ in range(12))}
    with elastalog.open(program, facts=by_relation(held), functors=FUNCTORS, strategy=strategy) as db:
        assert [name for name in relations if not len(db[name])] == []
        for _ in range(4):
            come = {some_fact(chance) for _ in range(3)} - held
            gone = set(chance.sample(sorted(held - {*ALWAYS}, key=repr), 2))
            db.apply(by_relation(come), by_relation(gone))
            held = (held - gone) | come
            with elastalog.open(program, facts=by_relation(held), functors=FUNCTORS, strategy="recompute") as anew:
                assert facts_of(db, relations) == facts_of(anew, relations)
                if strategy == "elastic":
                    assert {m for _, m in db["numbered"]} == {m for _, m in anew["numbered"]}
                    assert len(db["numbered"]) == len(anew["numbered"])


def by_relation(facts: set[tuple[str, tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [row for own, row in facts if own == name] for name in ("call", "assign")}
