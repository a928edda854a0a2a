"""Values that improve, under updates: strata with ranks are maintained, and are what an evaluation anew gives."""

from __future__ import annotations

from math import nan
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.annotation import Annotation
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.evaluation.costs import Budget
from elastalog.planning.listing import list_plans
from elastalog.planning.lower import lower
from elastalog.planning.order import NoStatistics
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from tests.engine.judging import followed, how, least_budget
from tests.engine.test_subsumption import PATHS, distances, weighted
from tests.provenance.databases import require_proofs
from tests.tables import table

HEADER = """
.decl edge(x: number, y: number, w: number)
.decl closed, source(x: number)
.decl far(x: number, n: number)
.decl size(n: number)
size(k) :- k = count : { far(_, _) }.
"""
LEAST, GREATEST = "far(x, a) <= far(x, b) :- b < a.", "far(x, a) <= far(x, b) :- a < b."
FORMS = [
    # Lengths may be 0, so that facts could hold each other up.
    f"far(x, 0) :- source(x). far(y, n + w) :- far(x, n), edge(x, y, w). {LEAST}",
    f"far(x, x) :- source(x). far(y, n) :- edge(x, y, _), far(x, n), !closed(y). {GREATEST}",
    "far(x, 9) :- source(x). far(y, n - w) :- far(x, n), edge(x, y, w), !closed(x), 3 > count : { closed(_) }."
    + GREATEST,
    "far(x, w) :- edge(x, _, w). far(y, 1 + n + w) :- far(x, n), edge(y, x, w). far(y, n) :- far(x, n), edge(x, y, 2)."
    + LEAST,
    f"far(x, 0) :- source(x). far(2, n + 1) :- far(x, n), edge(x, 2, _). far(y, n) :- far(2, n), source(y). {LEAST}",
]


def random_fact(random: Random, name: str) -> tuple[int, ...]:
    if name == "edge":
        return random.randrange(6), random.randrange(6), random.choice((0, 0, 1, 2, 3))
    if name == "far":
        return random.randrange(6), random.randrange(8)
    return (random.randrange(6),)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 40))])
def test_random_updates_give_what_an_evaluation_anew_gives(seed: int) -> None:
    random = Random(seed)
    text = HEADER + FORMS[seed % len(FORMS)]
    facts: dict[str, set[Any]] = {"edge": set(), "closed": set(), "source": {(0,)}, "far": set(), "size": set()}
    budget: Budget = "auto" if seed % 4 == 0 else None
    hows = set()
    with least_budget(3), followed(text, facts, budget=budget, is_annotated=False) as session:
        for _ in range(25):
            come: dict[str, list[tuple[int, ...]]] = {}
            go: dict[str, list[tuple[int, ...]]] = {}
            for _ in range(random.choice((1, 1, 2, 5))):
                name = random.choice(("edge", "edge", "edge", "edge", "closed", "source", "far"))
                known = session.explicit[name]
                if known and random.random() < (0.45 if name == "edge" else 0.6):
                    go.setdefault(name, []).append(random.choice(sorted(known)))
                else:
                    come.setdefault(name, []).append(random_fact(random, name))
            session.apply(come, go)
            hows |= session.how("far")
        assert hows == {"update"} if budget is None else "update" in hows
        session.prove("far")


@pytest.mark.parametrize("budget", [None, 0.01])
def test_a_large_graph_is_maintained_and_too_large_a_change_is_evaluated_anew(budget: float | None) -> None:
    edges = weighted(3000, 12_000, 3)
    random = Random(4)
    with elastalog.open(PATHS, facts={"edge": edges}, budget=budget) as db:
        hows = []
        for number in (1, 4000):
            gone = set(random.sample(sorted(edges), number))
            db.apply(deleted={"edge": gone})
            edges -= gone
            assert set(db["far"]) == distances(edges)
            hows.append(how(db, "far"))
        assert hows[0] == {"update"}
        assert (hows[1] == {"update"}) is (budget is None)
        come = weighted(3000, 20, 5)
        db.apply({"edge": come})
        assert set(db["far"]) == distances(edges | come)


def test_an_update_that_fails_leaves_everything_as_it_was() -> None:
    text = PATHS.replace("far(0, 0).", "far(0, 0). far(9, 9223372036854775807).")
    edges = {(0, 1, 4), (0, 2, 1), (2, 1, 2)}
    with elastalog.open(text, facts={"edge": edges}) as db:
        before = {name: set(db[name]) for name in db}
        with pytest.raises(elastalog.ElastalogError):
            db.apply({"edge": [(9, 1, 1)]}, {"edge": [(0, 2, 1)]})
        assert {name: set(db[name]) for name in db} == before
        db.apply(deleted={"edge": [(0, 2, 1)]})
        assert (1, 4) in set(db["far"])


@pytest.mark.parametrize(
    ("rules", "why"), table(__file__, "a stratum says why it is not evaluated in the order of values")
)
def test_a_stratum_says_why_it_is_not_evaluated_in_the_order_of_values(rules: str, why: str) -> None:
    declarations = ".decl e(x: number, y: number, w: number)\n.decl q(x: number)\n.decl r(x: number, n: min number)\n"
    program = lower(elastalog.Program.parse(declarations + rules).checked)
    stratum = next(s for s in program.strata if s.dominance)
    assert (stratum.ranked is None, stratum.why_in_rounds) == (bool(why), why)
    said = [
        line for line in list_plans(program, NoStatistics()) if "in rounds, after" in line or "order of val" in line
    ]
    assert len(said) == 1
    assert said[0].endswith(why or "(by ranks: value, steps)")


@pytest.mark.parametrize(("columns", "why"), table(__file__, "values without one order of numbers have no ranks"))
def test_values_without_one_order_of_numbers_have_no_ranks(columns: str, why: str) -> None:
    program = lower(elastalog.Program.parse(f".decl r({columns})\n.input r").checked)
    assert [stratum.why_in_rounds for stratum in program.strata if stratum.dominance] == [why]


def stands(db: elastalog.Session, relation: str, *facts: tuple[int, ...]) -> None:
    assert set(db[relation]) == set(facts)
    assert db.verify().is_exact


def test_levels_over_all_facts_of_a_body_would_let_facts_hold_themselves_up() -> None:
    text = ".decl p(x: number, k: min number)\n.decl c(x: number, y: number)\np(99, max(k, 5)) :- p(10, k), c(9, 10).\n"
    text += "p(y, k) :- p(x, k), c(x, y)."
    with elastalog.open(text, {"p": [(10, 4)], "c": [(i, i + 1) for i in range(10)]}, budget=None) as db:
        db.apply({"p": [(0, 3)]})
        stands(db, "p", *((i, 3) for i in range(11)), (99, 5))
        db.apply(deleted={"p": [(0, 3), (10, 4)]})
        stands(db, "p")


def test_rules_that_improve_what_they_read_are_evaluated_anew() -> None:
    text = '.decl p(x: symbol, k: min number)\np("a", max(k, 5)) :- p("b", k).\np("b", k - 2) :- p("a", k), k >= 5.'
    with elastalog.open(text, {"p": [("b", 7)]}, budget=None) as db:
        assert set(db["p"]) == {("a", 5), ("b", 3)}
        require_proofs(db, {"p": {("b", 7)}}, "p")
        db.apply(deleted={"p": [("b", 7)]})
        assert not set(db["p"])
        (work,) = (s for s in db.log()[-1].strata if "p" in s.relations)
        assert (work.how, work.why) == ("recompute", "rule 2 tests the value, or uses it twice")


def test_a_weight_below_0_is_found_when_it_comes_and_forgotten_when_it_goes() -> None:
    edges = {(0, 1, 4), (1, 2, 3), (0, 2, 9), (2, 3, 1)}
    hows, given = [], {"edge": edges, "far": {(0, 0)}}
    with followed(PATHS, {"edge": edges}, explicit=given, is_annotated=False, budget=None) as session:
        for change in ((1, 3, -2), (3, 4, 1), (1, 3, -2), (0, 3, 2)):
            is_gone = change in session.explicit["edge"]
            session.apply({} if is_gone else {"edge": [change]}, {"edge": [change]} if is_gone else {})
            hows += [(work.how, work.why) for work in session.db.log()[-1].strata if "far" in work.relations]
            session.prove("far")
    assert [way for way, _ in hows] == ["switch", "switch", "switch", "update"]
    assert "a rule makes a value better than the one it reads" in hows[0][1]


def test_previews_rollbacks_and_stores_keep_ranks(tmp_path: Path) -> None:
    text = HEADER.replace("n: number)\n.decl size", "n: min number)\n.decl size") + FORMS[0].replace(LEAST, "")
    edges = weighted(40, 120, 3)
    with elastalog.open(text, {"edge": edges, "source": [(0,)]}, store=tmp_path / "store", budget=None) as db:
        before = set(db["far"])
        gone = sorted(edges)[:5]
        db.preview(deleted={"edge": gone})
        with pytest.raises(elastalog.ElastalogError):
            db.apply({"edge": [(0, 1, 2**63 - 1), (1, 2, 2**63 - 1)]}, {"edge": gone})
        assert set(db["far"]) == before
        db.apply(deleted={"edge": gone})
        db.apply({"far": [(3, 50), (3, 40), (90, 1)]})
    with elastalog.open(store=tmp_path / "store", budget=None) as db:
        assert (90, 1) in set(db["far"])
        db.apply({"edge": gone}, {"far": [(90, 1)]})
        assert how(db, "far") == {"update"}
        assert set(db["far"]) == before
        db.change_rules("far(y, n + 1) :- far(x, n), closed(x), edge(y, x, _).")
        db.apply({"closed": [(7,), (8,)]})
        assert db.verify().is_exact
        require_proofs(db, {"edge": edges, "source": {(0,)}, "far": {(3, 50), (3, 40)}, "closed": {(7,), (8,)}}, "far")


def test_what_is_dominated_comes_back_with_its_reason() -> None:
    text = ".decl best(x: symbol, k: max number)\n"
    with elastalog.open(text, {"best": [("a", 1), ("a", 3), ("a", 2)]}) as db:
        assert list(db["best"]) == [("a", 3)]
        assert 'superseded by best("a", 3)' in str(db.why_not('best("a", 2)'))
        assert 'there is a better one, best("a", 3)' in str(db.why_not('best("a", 0)'))
        db.apply(deleted={"best": [("a", 3)]})
        assert list(db["best"]) == [("a", 2)]
        assert db.why_not('best("a", 1)').is_given


def test_explicit_facts_of_an_earlier_store_become_candidates() -> None:
    program = lower(elastalog.Program.parse(".decl p(x: number, n: min number)").checked)
    backend = KernelBackend(program, Dictionary(), annotation=Annotation())
    words = np.array([[1, 2], [1, 3], [2, 9]], np.int32)
    backend.states.restore("p", FactWords(words, np.array([0, 0, 1]), np.ones(3, np.int32)), ())
    assert backend.is_explicit("p", words).tolist() == [True, True, False]
    assert backend.facts("p").words.tolist() == [[2, 9]]  # the others come from where they are now


@pytest.mark.parametrize(
    ("kind", "rule", "values", "hows"),
    [
        ("min float", "r(y, n + w) :- r(x, n), e(x, y, w).", [0.1, 0.2, 0.3, 7e-9, 1e308], "update"),
        ("max float", "r(y, n - w) :- r(x, n), e(x, y, w).", [0.1, 0.0, 0.3, nan, 0.2], "switch"),
        ("max symbol", "r(y, min(n, w)) :- r(x, n), e(x, y, w).", ["b", "", "é", "a", "ab"], "update"),
        ("min unsigned", "r(y, n + m + w) :- r(x, n), r(y, m), e(x, y, w).", [0, 3, 1, 2, 9], "update"),
        ("min number", "r(y + 9, n + m) :- r(x, n), r(y, m), e(x, y, _).", [0, 3, 1, 2, -9], "switch"),
        ("max number", "r(y, min(n, m, w)) :- r(x, n), r(y, m), e(x, y, w).", [0, 3, -1, 2, 9], "update"),
    ],
)
def test_values_of_every_type_and_of_two_facts_have_ranks(kind: str, rule: str, values: list[Any], hows: str) -> None:
    text = (
        f".decl e(x: number, y: number, w: {kind[4:]})\n.decl r(x: number, n: {kind})\nr(y, w) :- e(_, y, w).\n{rule}\n"
    )
    random, seen = Random(kind), set()
    with followed(text, {"e": [], "r": []}, budget=None, is_annotated=False) as session:
        for value in (*values, *values):
            known = sorted(session.explicit["e"], key=str)
            change = (random.randrange(4), random.randrange(4), value)
            session.apply({"e": [change]}, {"e": [random.choice(known)] if len(known) > 3 else []})
            seen |= session.how("r")
        session.prove("r")
    assert hows in seen
    assert hows == "switch" or seen == {"update"}


def test_there_is_always_room_between_texts() -> None:
    text = ".decl e(x: number, s: symbol)\n.decl r(x: number, s: min symbol)\nr(x, s) :- e(x, s).\n"
    text += "r(0, s) :- r(x, s), e(x, _)."
    with elastalog.open(text, {"e": [(1, "a"), (2, "b")]}, budget=None) as db:
        for number in range(1, 80):
            db.apply({"e": [(3, f"a{'a' * (80 - number)}")]}, {"e": [(3, f"a{'a' * (81 - number)}")]})
            assert set(db["r"]) == {(0, "a"), (1, "a"), (2, "b"), (3, f"a{'a' * (80 - number)}")}
        assert db.verify().is_exact


def test_what_is_not_derived_may_overflow() -> None:
    text = (
        ".decl a(x: number)\n.decl b(x: number, y: number)\n.decl e(x: number, n: number)\n"
        ".decl far(x: number, n: number)\nfar(x, n) :- e(x, n).\nfar(x * y, n + 1) :- b(x, y), a(x), far(x, n).\n"
        + LEAST
    )
    facts = {"a": [(i,) for i in range(1_000)], "b": [(2, 3), (2**62, 4)], "e": [(2, 0), (6, 9)]}
    with elastalog.open(text, facts, budget=None) as db:
        assert set(db["far"]) == {(2, 0), (6, 1)}
        db.apply(deleted={"e": [(2, 0)]})
        assert how(db, "far") == {"update"}
        assert set(db["far"]) == {(6, 9)}
