"""Many counts and sums in one rule: as right as one, and at a cost that grows with their number."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from tests.engine.judging import followed

FACTS = {"e": [(1, 1), (1, 2), (2, 5)], "v": [(1,), (2,), (3,)]}
UPDATES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"e": [(3, 4), (4, 4)]}, {}),
    ({"v": [(4,)]}, {"e": [(1, 1), (1, 2)]}),
    ({}, {"v": [(1,), (4,)], "e": [(3, 4)]}),
    ({"e": [(1, 7)], "v": [(1,)]}, {"e": [(2, 5)]}),
]


def grouped(number: int) -> str:
    """Counts and sums by the value of `v`, and every third of them by nothing."""
    kinds = ("count : {{ e(x, y), y > {0} }}", "sum y : {{ e(x, y), y > {0} }}", "count : {{ e(_, {0}) }}")
    body = ", ".join(f"n{i} = " + kinds[i % 3].format(i % 5) for i in range(number))
    total = " + ".join(f"n{i}" for i in range(number))
    return (
        ".decl e(x: number, y: number)\n.input e\n.decl v(x: number)\n.input v\n.decl p(x: number, n: number)\n"
        f"p(x, {total}) :- v(x), {body}.\n"
    )


def total(number: int, x: int, edges: set[tuple[int, int]]) -> int:
    found = 0
    for i in range(number):
        bound = i % 5
        if i % 3 == 0:
            found += sum(1 for a, b in edges if a == x and b > bound)
        elif i % 3 == 1:
            found += sum(b for a, b in edges if a == x and b > bound)
        else:
            found += sum(1 for _, b in edges if b == bound)
    return found


@pytest.mark.parametrize("number", [20, 40])
def test_the_cost_does_not_double_with_every_one(number: int) -> None:
    elastalog.open(grouped(2), facts=FACTS).apply(*UPDATES[0])  # what is compiled at first use
    began = time.process_time()
    db = elastalog.open(grouped(number), facts=FACTS)
    edges, values = set(FACTS["e"]), set(FACTS["v"])
    for inserted, deleted in UPDATES:
        db.apply(inserted, deleted)
        edges = (edges - set(deleted.get("e", ()))) | set(inserted.get("e", ()))
        values = (values - set(deleted.get("v", ()))) | set(inserted.get("v", ()))
    assert set(db["p"]) == {(x, total(number, x, edges)) for (x,) in values}
    assert time.process_time() - began < 60  # ten of them took half a minute an update when each doubled the rules


RECURSIVE = """
.decl e(x: number, y: number)
.decl p(x: number, n: number, m: number)
p(1, 0, 0) :- e(_, _).
p(y, n, m) :- p(x, _, _), e(x, y), n = count : { e(x, _) }, m = sum z : { e(x, z), z > 3 }.
p(n + m, n, m) :- p(x, _, _), n = count : { e(x, _) }, m = count : { e(_, x) }, n + m < 9.
"""
WAYS: list[dict[str, Any]] = [
    *({"strategy": name} for name in STRATEGIES if name != "counting"),
    *({"levels": "global"}, {"metric": "size"}, {"engine": "gpu"}),
]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize(
    "text", [grouped(10), grouped(6) + "p(n, m) :- p(n, _), m = count : { e(n, _) }, m < 3.\n", RECURSIVE],
    ids=["ten", "six and recursion", "over what recursion gives"],
)  # fmt: skip
def test_updates_are_what_the_reference_says_and_have_proofs(text: str, options: dict[str, Any]) -> None:
    declared = [name for name in FACTS if f".decl {name}(" in text]
    with followed(text, {name: FACTS[name] for name in declared}, **options) as session:
        for update in UPDATES:
            session.apply(*({name: side[name] for name in declared if name in side} for side in update))
        session.prove("p")


def test_proofs_of_nothing_and_of_something() -> None:
    db = elastalog.open(grouped(6), facts=FACTS)
    numbers = [child.number for child in db.explain(("p", (3, total(6, 3, set(FACTS["e"]))))).children[1:]]
    assert numbers[0] == numbers[1] == 0
    assert db.why_not("p(3, 99)").instantiations
    assert len(db.derivations(("p", (1, total(6, 1, set(FACTS["e"])))))) == 1


def test_a_rule_that_becomes_recursive_changes_what_it_needs() -> None:
    text = grouped(3) + ".decl q(x: number)\nq(x) :- v(x).\n"
    rule = "r(n + m) :- q(x), n = count : { e(x, _) }, m = count : { e(_, x) }."
    db = elastalog.open(text + f".decl r(n: number)\n{rule}\n", facts=FACTS)
    before = set(db["r"])
    db.change_rules(added="q(x) :- r(x), x < 9.")
    fresh = elastalog.open(db.program, facts=FACTS)
    assert set(db["r"]) == set(fresh["r"])
    db.apply(*UPDATES[0])
    fresh.apply(*UPDATES[0])
    assert set(db["r"]) == set(fresh["r"])
    db.change_rules(removed=["q(x) :- r(x), x < 9."])
    db.apply({}, UPDATES[0][0])
    assert set(db["r"]) == before


def test_stores_keep_them(tmp_path: Path) -> None:
    with elastalog.open(grouped(10), facts=FACTS, store=tmp_path / "store") as db:
        db.apply(*UPDATES[0])
    with elastalog.open(store=tmp_path / "store") as db:
        db.apply(*UPDATES[1])
        fresh = elastalog.open(grouped(10), facts={name: list(db.explicit(name)) for name in db})
        assert set(db["p"]) == set(fresh["p"])
