"""Many counts and sums in one rule: as right as one, and at a cost that grows with their number."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.program import Program
from tests.engine.judging import judge
from tests.provenance.databases import verdict

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


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
def test_ten_under_every_strategy(strategy: str) -> None:
    db = elastalog.open(grouped(10), facts=FACTS, strategy=strategy)
    explicit = {name: set(rows) for name, rows in FACTS.items()}
    for inserted, deleted in [({}, {}), *UPDATES]:
        db.apply(inserted, deleted)
        for name in explicit:
            explicit[name] = (explicit[name] - set(deleted.get(name, ()))) | set(inserted.get(name, ()))
        assert set(db["p"]) == {(x, total(10, x, explicit["e"])) for (x,) in explicit["v"]}


@pytest.mark.parametrize("kind", ["local", "global"])
def test_levels_and_counts_are_those_of_the_definition(kind: Any) -> None:
    program = Program.parse(grouped(6) + "p(n, m) :- p(n, _), m = count : { e(n, _) }, m < 3.\n")
    explicit: dict[str, Any] = {name: set(rows) for name, rows in FACTS.items()}
    db = elastalog.open(program, facts=FACTS, levels=kind)
    for inserted, deleted in UPDATES:
        db.apply(inserted, deleted)
        for name in explicit:
            explicit[name] = (explicit[name] - set(deleted.get(name, ()))) | set(inserted.get(name, ()))
        judge(db, program.tree, explicit, kind)


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


def test_on_another_engine() -> None:
    here, there = (elastalog.open(grouped(10), facts=FACTS, engine=engine) for engine in ("local", "gpu"))
    for inserted, deleted in UPDATES:
        for db in (here, there):
            db.apply(inserted, deleted)
        assert here["p"].to_arrow(annotations=True).sort_by("x") == there["p"].to_arrow(annotations=True).sort_by("x")


@pytest.mark.parametrize("options", [{}, {"levels": "global"}, {"metric": "size"}, {"strategy": "recompute"}])
def test_proofs_of_nothing_and_of_something(options: dict[str, Any]) -> None:
    db = elastalog.open(grouped(6), facts=FACTS, **options)
    explicit: dict[str, Any] = {name: set(rows) for name, rows in FACTS.items()}
    for fact in db["p"]:
        proof = db.explain(("p", fact))
        assert verdict(proof, db, explicit), fact
        assert proof.height == (1 if fact[0] == 3 and fact[1] == 0 else proof.height)
    numbers = [child.number for child in db.explain(("p", (3, total(6, 3, set(FACTS["e"]))))).children[1:]]
    assert numbers[0] == numbers[1] == 0
    assert db.why_not("p(3, 99)").instantiations
    assert len(db.derivations(("p", (1, total(6, 1, set(FACTS["e"])))))) == 1


RECURSIVE = """
.decl e(x: number, y: number)
.input e
.decl p(x: number, n: number, m: number)
p(1, 0, 0) :- e(_, _).
p(y, n, m) :- p(x, _, _), e(x, y), n = count : { e(x, _) }, m = sum z : { e(x, z), z > 3 }.
p(n + m, n, m) :- p(x, _, _), n = count : { e(x, _) }, m = count : { e(_, x) }, n + m < 9.
"""


@pytest.mark.parametrize("kind", ["local", "global"])
def test_counts_over_what_recursion_gives(kind: Any) -> None:
    program = Program.parse(RECURSIVE)
    explicit: dict[str, Any] = {"e": set(FACTS["e"])}
    db = elastalog.open(program, facts=explicit, levels=kind)
    for inserted, deleted in UPDATES:
        inserted, deleted = ({name: rows for name, rows in side.items() if name == "e"} for side in (inserted, deleted))
        db.apply(inserted, deleted)
        explicit["e"] = (explicit["e"] - set(deleted.get("e", ()))) | set(inserted.get("e", ()))
        judge(db, program.tree, explicit, kind)
        for fact in db["p"]:
            assert verdict(db.explain(("p", fact)), db, explicit), fact


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
