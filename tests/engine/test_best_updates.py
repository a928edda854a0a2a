"""Subsumption that keeps the best of every key, under updates: maintained, and what an evaluation anew gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.evaluation.costs import Budget
from elastalog.planning.best_of_key import only_comparison, rests_on_the_best
from elastalog.planning.listing import list_plans
from elastalog.planning.lower import lower
from elastalog.planning.order import NoStatistics
from tests.engine.judging import judge, least_budget
from tests.engine.test_subsumption import PATHS, distances, weighted
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted

HEADER = """
.decl edge(x: number, y: number, w: number)
.decl closed(x: number)
.decl source(x: number)
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
    tree = parse_accepted(text)
    explicit: dict[str, set[Any]] = {"edge": set(), "closed": set(), "source": {(0,)}, "far": set(), "size": set()}
    budget: Budget = "auto" if seed % 4 == 0 else None
    hows = set()
    with least_budget(3), elastalog.open(text, {"source": [(0,)]}, budget=budget) as db:
        for _ in range(25):
            come: dict[str, list[tuple[int, ...]]] = {}
            go: dict[str, list[tuple[int, ...]]] = {}
            for _ in range(random.choice((1, 1, 2, 5))):
                name = random.choice(("edge", "edge", "edge", "edge", "closed", "source", "far"))
                if explicit[name] and random.random() < (0.45 if name == "edge" else 0.6):
                    go.setdefault(name, []).append(random.choice(sorted(explicit[name])))
                else:
                    come.setdefault(name, []).append(random_fact(random, name))
            db.apply(come, go)
            explicit = {
                name: (facts - set(go.get(name, ()))) | set(come.get(name, ())) for name, facts in explicit.items()
            }
            judge(db, tree, explicit, is_annotated=False)
            hows |= {s.how for s in db.log()[-1].strata if "far" in s.relations}
        assert hows == {"update"} if budget is None else "update" in hows
        assert db.verify().is_exact
        require_proofs(db, explicit, "far")


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
            hows += [stratum.how for stratum in db.log()[-1].strata if "far" in stratum.relations]
        assert hows[0] == "update"
        assert (hows[1] == "update") is (budget is None)
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
    ("rule", "is_so"),
    [
        ("r(y, n + w) :- r(x, n), e(x, y, w).", True),
        ("r(y, n - w + 1) :- r(x, n), e(x, y, w).", True),
        ("r(y, n) :- r(x, n), e(x, y, _).", True),
        ("r(y, w - n) :- r(x, n), e(x, y, w).", False),
        ("r(y, max(n, w)) :- e(x, y, w), r(x, n).", False),  # a worse fact may give what the best one gives
        ("r(y, n + w) :- r(x, n), e(x, y, w), n != 3.", False),
        ("r(y, n + m) :- r(x, n), r(y, m), e(x, y, _).", False),
    ],
)
def test_a_stratum_is_maintained_only_where_all_that_is_left_follows_from_what_is_left(rule: str, is_so: bool) -> None:
    declarations = ".decl e(x: number, y: number, w: number)\n.decl r(x: number, n: number)\n"
    text = f"{declarations}{rule}\nr(x, a) <= r(x, b) :- b < a."
    stratum = next(s for s in lower(elastalog.Program.parse(text).checked).strata if s.dominance)
    comparison = only_comparison(stratum)
    assert comparison is not None
    assert rests_on_the_best(stratum, comparison) is is_so


def test_the_plan_says_whether_updates_are_followed() -> None:
    program = lower(elastalog.Program.parse(PATHS).checked)
    followed = "  dominated facts leave; updates are followed: only the best of every key matters"
    assert followed in list_plans(program, NoStatistics())
    program = lower(elastalog.Program.parse(PATHS.replace("n + w", "max(n, w)")).checked)
    assert "  dominated facts leave; updates are evaluations anew" in list_plans(program, NoStatistics())


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
        assert {s.how for s in db.log()[-1].strata if "far" in s.relations} == {"update"}
        assert set(db["far"]) == {(6, 9)}
