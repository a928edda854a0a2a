from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.provenance.fact import Fact
from elastalog.provenance.metrics import METRICS, Metric
from elastalog.provenance.proof import Proof, nodes_of
from tests.closures import RIGHT_CLOSURE as EDGES
from tests.provenance.databases import verdict
from tests.refusals import refused

TALL = """
.decl edge(x: number, y: number)
.decl reach(x: number)
reach(0).
reach(y) :- reach(x), edge(x, y).
"""
DOUBLING = ".decl p(n: number)\n.decl low(n: number)\np(0).\nlow(n) :- p(n), n < 200.\np(n + 1) :- low(n), low(n)."


def open_edges(*edges: tuple[int, int], **options: Any) -> elastalog.Session:
    return elastalog.open(EDGES, facts={"edge": list(edges)}, **options)


def test_a_fact_equals_the_plain_pair() -> None:
    assert open_edges((1, 2)).explain("edge(1, 2)").fact == ("edge", (1, 2))
    assert str(Fact("r", (1, "a\n", 0.5))) == 'r(1, "a\\n", 0.5)'


def test_rules_are_named_by_the_place_in_the_file_that_has_them(tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text("// a\n// b\n\n.decl b(x: number)\nb(x) :-\n  a(x).\n")
    (tmp_path / "main.dl").write_text(
        ".decl a(x: number)\n.decl c(x: number)\na(1).\n"
        '#include "rules.dl"\n#define ONE c(x) :- b(x).\n\nONE\nc(x + 1) :- c(x), x < 3.\n'
    )
    with elastalog.open(tmp_path / "main.dl") as db:
        rules = [db.explain(fact).rule for fact in ("b(1)", "c(1)", "c(2)")]
    assert [(rule.place, rule.line) for rule in rules] == [("rules.dl:5", 5), ("main.dl:7", 7), ("main.dl:8", 8)]


def test_an_explicit_fact_needs_no_proof_even_where_a_rule_derives_it() -> None:
    db = elastalog.open(EDGES, facts={"edge": [(1, 2)], "path": [(1, 2)]})
    proof = db.explain(("path", (1, 2)))
    assert proof.is_explicit
    assert proof.height == 0
    assert [str(d.rule.number) for d in db.derivations("path(1, 2)") if d.rule] == ["1"]


def test_of_equal_derivations_the_smallest_facts_are_taken_whatever_the_history() -> None:
    diamond = [(1, 3), (1, 2), (3, 4), (2, 4)]
    late = open_edges((1, 3), (3, 4))
    late.apply(inserted={"edge": [(1, 2), (2, 4)]})
    for db in (open_edges(*diamond), open_edges(*reversed(diamond)), late, open_edges(*diamond, strategy="recompute")):
        assert db.explain("path(1, 4)").explicit_facts == (("edge", (1, 2)), ("edge", (2, 4)))


def test_circles_in_the_facts_do_not_lead_proofs_in_circles() -> None:
    for strategy in ("elastic", "recompute"):
        db = open_edges((1, 2), (2, 1), (2, 3), strategy=strategy)
        proof = db.explain("path(1, 3)")
        assert proof.height == 2
        assert verdict(proof, db, {"edge": {(1, 2), (2, 1), (2, 3)}})


def test_the_proof_follows_an_update() -> None:
    db = open_edges((1, 2), (2, 3), (1, 3))
    assert db.explain("path(1, 3)").height == 1
    db.apply(deleted={"edge": [(1, 3)]})
    assert db.explain("path(1, 3)").height == 2


@pytest.mark.parametrize("kind", ["local", "global"])
def test_after_updates_proofs_are_those_of_a_session_opened_anew(kind: str) -> None:
    """What is known of facts that no update has touched is kept from epoch to epoch."""
    random = Random(7)
    edges = {(random.randrange(7), random.randrange(7)) for _ in range(12)}
    program = (
        f"{EDGES}\n.decl closed(x: number)\n.decl open(x: number, y: number)\nopen(x, y) :- path(x, y), !closed(y)."
    )
    closed: set[tuple[int]] = set()
    db = elastalog.open(program, {"edge": list(edges)}, levels=kind)
    for step in range(40):
        edge, node = (random.randrange(7), random.randrange(7)), (random.randrange(7),)
        db.apply(*([{"edge": [edge]}, {}] if edge not in edges else [{}, {"edge": [edge]}]))
        edges ^= {edge}
        if step % 5 == 0:
            db.apply(*([{"closed": [node]}, {}] if node not in closed else [{}, {"closed": [node]}]))
            closed ^= {node}
        if step % 3:
            anew = elastalog.open(program, {"edge": list(edges), "closed": list(closed)}, levels=kind)
            for fact in [("open", values) for values in db["open"]]:
                assert db.explain(fact).to_json() == anew.explain(fact).to_json()


def test_a_proof_that_was_kept_can_be_expanded_and_the_earlier_one_not() -> None:
    db = open_edges((1, 2), (2, 3))
    earlier = db.explain("path(1, 3)")
    db.apply({"edge": [(7, 8)]})
    db.apply({"edge": [(8, 9)]})
    kept = db.explain("path(1, 3)")
    assert kept.expand().to_json() == earlier.to_json()
    with refused("E0709"):
        earlier.expand()


def test_expanding_step_by_step_gives_the_whole_proof() -> None:
    db = open_edges((1, 2), (2, 3), (3, 4))
    step = db.explain("path(1, 4)", depth=1)
    assert not step.is_complete
    assert step.height is None
    step = step.expand((1,), depth=1)
    assert [str(n.fact) for n in nodes_of(step) if isinstance(n, Proof) and not n.is_expanded] == ["path(3, 4)"]
    step = step.expand((1, 1))
    assert step.is_complete
    assert step.height == 3
    assert step.to_json() == db.explain("path(1, 4)").to_json()


def test_all_proofs_of_a_fact_lowest_first() -> None:
    """Paths without a repeated node from 1 to 4: 1-4, 1-2-4, 1-3-4, 1-2-3-4; the circle 2-3-2 adds none."""
    db = open_edges((1, 4), (1, 2), (2, 4), (1, 3), (3, 4), (2, 3), (3, 2))
    proofs = list(db.proofs("path(1, 4)", limit=100))
    assert [proof.height for proof in proofs] == [1, 2, 2, 3, 3]
    assert [proof.explicit_facts for proof in proofs] == [
        tuple(("edge", pair) for pair in pairs)
        for pairs in ([(1, 4)], [(1, 2), (2, 4)], [(1, 3), (3, 4)], [(1, 2), (2, 3), (3, 4)], [(1, 3), (3, 2), (2, 4)])
    ]
    assert len(list(db.proofs("path(1, 4)", limit=2))) == 2


def test_derivations_are_listed_by_rule_and_facts() -> None:
    db = open_edges((1, 4), (1, 2), (2, 4), (1, 3), (3, 4))
    found = [
        [str(child.fact) for child in d.children if isinstance(child, Proof)] for d in db.derivations("path(1, 4)")
    ]
    assert found == [["edge(1, 4)"], ["edge(1, 2)", "path(2, 4)"], ["edge(1, 3)", "path(3, 4)"]]


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_a_very_deep_proof(strategy: str) -> None:
    size = 5_000
    db = elastalog.open(TALL, facts={"edge": [(n, n + 1) for n in range(size)]}, strategy=strategy)
    proof = db.explain(f"reach({size})")
    assert (proof.height, proof.size) == (size, 2 * size + 1)
    assert verdict(proof, db, {"edge": set(db["edge"]), "reach": {(0,)}})
    assert len(json.loads(proof.to_json())["nodes"]) == 2 * size + 1
    assert "…" in str(proof)
    assert "…" in proof.to_html()


def test_shared_sub_proofs_are_stored_once_and_sizes_saturate() -> None:
    db = elastalog.open(DOUBLING)
    proof = db.explain("p(100)")
    assert proof.height == 200
    assert sum(1 for _ in nodes_of(proof)) < 700
    assert proof.size == 2**63 - 1
    assert db.explain("p(2)").size == 2 * (1 + 2 * (1 + 1) + 1) + 1
    assert len(str(proof)) < 10**7


# --- limits --------------------------------------------------------------------------------------------------------


def test_too_many_derivations_around_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.provenance.ranks.MOST_DERIVATIONS", 5)
    edges = [(n, n + 1) for n in range(10)]
    with pytest.raises(LimitReached) as raised:
        open_edges(*edges, strategy="recompute").explain("path(0, 10)")
    assert raised.value.diagnostics[0].code == "E0704"
    assert open_edges(*edges).explain("path(0, 10)").height == 10
    assert open_edges(*edges, strategy="recompute").explain("path(7, 10)").height == 3


def test_too_many_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastalog.provenance.search.MOST_TRIED", 100)
    ladder = [(n, n + step) for n in range(20) for step in (1, 2)]
    proofs = open_edges(*ladder).proofs("path(0, 20)", limit=10**6)
    with pytest.raises(LimitReached) as raised:
        list(proofs)
    assert raised.value.diagnostics[0].code == "E0705"


def test_proofs_of_great_height_are_not_enumerated() -> None:
    proofs = open_edges(*[(n, n + 1) for n in range(200)]).proofs("path(0, 200)")
    with pytest.raises(LimitReached) as raised:
        next(proofs)
    assert raised.value.diagnostics[0].code == "E0705"


# --- metrics -------------------------------------------------------------------------------------------------------

TWO_WAYS = """
.decl a(x: number) .decl b(x: number) .decl c(x: number) .decl d(x: number) .decl goal(x: number)
c(x) :- b(x).
d(x) :- c(x).
goal(x) :- a(x), a(x), a(x), a(x), a(x).
goal(x) :- d(x).
"""


def test_the_metric_decides_between_a_low_proof_and_a_small_one() -> None:
    facts = {"a": [(1,)], "b": [(1,)]}
    low = elastalog.open(TWO_WAYS.replace(" .decl", "\n.decl"), facts=facts, levels="global").explain("goal(1)")
    small = elastalog.open(TWO_WAYS.replace(" .decl", "\n.decl"), facts=facts, metric="size").explain("goal(1)")
    assert (low.height, low.size) == (1, 6)
    assert (small.height, small.size) == (3, 4)
    assert small.claim == "the least size of all proofs"


def test_an_unknown_metric() -> None:
    with refused("E0612"):
        open_edges(metric="beauty")


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_metrics_fit_the_search_for_best_values(metric: Metric) -> None:
    """Natural numbers, above every value of the body, and no smaller when one of these grows."""
    samples = (0, 1, 2, 3, 5, 201, 311)
    assert metric.explicit >= 0
    for width in range(4):
        for values in product(samples, repeat=width):
            result = metric.derived(values)
            assert all(result > value >= 0 for value in values)
            for place, greater in product(range(width), samples):
                raised = (*values[:place], max(greater, values[place]), *values[place + 1 :])
                assert metric.derived(raised) >= result


# --- aggregates ----------------------------------------------------------------------------------------------------

SALES = """
.decl sold(shop: symbol, price: number)
.decl total, best(shop: symbol, n: number)
.decl shop(s: symbol)
total(s, n) :- shop(s), n = sum p : { sold(s, p) }.
best(s, n) :- shop(s), n = max p : { sold(s, p), p > 1 }.
"""


def test_aggregates_show_their_members() -> None:
    db = elastalog.open(SALES, facts={"sold": [("x", 1), ("x", 2), ("x", 5)], "shop": [("x",), ("y",)]})
    assert (
        db.explain('total("x", 8)').to_tree()
        == """\
total("x", 8)  (R1)
├─ shop("x")
└─ sum p : { sold("x", p) } = 8  (3 members)
   ├─ member
   │  └─ sold("x", 1)
   ├─ member
   │  └─ sold("x", 2)
   └─ member
      └─ sold("x", 5)"""
    )
    best = db.explain('best("x", 5)').children[1]
    assert [str(child.fact) for child in best.members[0].children if isinstance(child, Proof)] == ['sold("x", 5)']
    assert best.text == 'max p : { sold("x", p), p > 1 } = 5'


def test_the_zero_of_an_empty_sum_has_no_members() -> None:
    db = elastalog.open(SALES, facts={"shop": [("y",)]})
    proof = db.explain('total("y", 0)')
    assert verdict(proof, db, {"shop": {("y",)}})
    assert proof.to_tree() == 'total("y", 0)  (R1)\n├─ shop("y")\n└─ sum p : { sold("y", p) } = 0'


def test_of_very_many_members_the_first_are_listed() -> None:
    rows = [("x", n) for n in range(1, 501)]
    db = elastalog.open(SALES, facts={"sold": rows, "shop": [("x",)]})
    proof = db.explain(f'total("x", {sum(range(501))})')
    premise = proof.children[1]
    assert (premise.number, len(premise.members), premise.is_complete) == (500, 100, False)
    assert verdict(proof, db, {"sold": set(rows), "shop": {("x",)}})


def test_a_premise_without_proofs_is_found_out_once() -> None:
    program = """
    .decl given, red, blue, many, goal, circle(x: number)
    many(0).
    many(x + 1) :- many(x), red(x).
    many(x + 1) :- many(x), blue(x).
    goal(x) :- given(x).
    goal(x) :- many(x), circle(x).
    circle(x) :- goal(x).
    """
    steps = [(i,) for i in range(30)]
    with elastalog.open(program, facts={"given": [(30,)], "red": steps, "blue": steps}) as db:
        (proof,) = db.proofs("goal(30)")
        assert proof.height == 1
        assert len(list(db.proofs("many(30)", limit=5))) == 5


def test_a_proof_without_best_values_says_nothing_of_them() -> None:
    program = """.decl road(a: symbol, b: symbol, km: number)
    .decl reach(a: symbol, b: symbol)
    reach(a, b) :- road(a, b, _).
    reach(a, c) :- reach(a, b), road(b, c, _).
    .decl far(b: symbol, km: min number)
    far(b, k) :- road("A", b, k).
    far(c, k + m) :- far(b, k), road(b, c, m).
    .decl near(b: symbol)
    near(b) :- reach("A", b), far(b, k), k < 9.
    """
    with elastalog.open(program, {"road": [("A", "B", 1), ("B", "A", 2)]}) as db:
        assert "`min`" not in str(db.explain('reach("A", "A")'))
        assert "each recursive part as low as possible" in str(db.explain('reach("A", "A")'))
        for fact in ('far("A", 3)', 'near("A")'):
            assert "apart from those of `min` and `max` columns" in str(db.explain(fact))
