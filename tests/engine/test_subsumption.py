"""Subsumption: dominated facts leave, in every epoch as a fresh evaluation would have it."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from random import Random
from typing import Any

import pytest

import elastalog
from elastalog.planning.lower import lower
from elastalog.planning.ranked import comparison_of
from elastalog.provenance.check import check_proof
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from tests.engine.judging import followed, judge
from tests.provenance.databases import require_proofs
from tests.reference.cases import parse_accepted
from tests.refusals import refused

PATHS = """
.decl edge(x: number, y: number, w: number)
.input edge
.decl far(x: number, n: number)
far(0, 0).
far(y, n + w) :- far(x, n), edge(x, y, w).
far(x, a) <= far(x, b) :- b < a.
.decl near(x: number)
near(x) :- far(x, n), n < 10.
.output far, near
"""
EDGES = {(0, 1, 4), (0, 2, 1), (2, 1, 2), (1, 3, 5), (3, 0, 1), (3, 1, 1), (2, 3, 20)}


def shortest(edges: set[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """Distances from 0, by Bellman and Ford."""
    found = {0: 0}
    for _ in range(50):
        for x, y, weight in edges:
            if x in found:
                found[y] = min(found.get(y, 10**9), found[x] + weight)
    return set(found.items())


def test_shortest_paths_end_although_there_are_cycles() -> None:
    with elastalog.open(PATHS, facts={"edge": EDGES}) as db:
        assert set(db["far"]) == {(0, 0), (2, 1), (1, 3), (3, 8)} == shortest(EDGES)
        assert set(db["near"]) == {(0,), (1,), (2,), (3,)}


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_updates_leave_the_shortest_paths_of_what_is_left(strategy: str) -> None:
    random = Random(7)
    explicit: dict[str, set[Any]] = {"edge": EDGES, "far": {(0, 0)}}
    with followed(PATHS, {"edge": EDGES}, explicit=explicit, strategy=strategy, is_annotated=False) as session:
        for _ in range(8):
            gone = random.sample(sorted(session.explicit["edge"]), 2)
            came = {(random.randrange(6), random.randrange(6), random.randrange(1, 9)) for _ in range(2)}
            session.apply({"edge": came}, {"edge": gone})
            assert set(session.db["far"]) == shortest(session.explicit["edge"])


def weighted(nodes: int, edges: int, seed: int) -> set[tuple[int, int, int]]:
    random = Random(seed)
    return {(random.randrange(nodes), random.randrange(nodes), random.randrange(1, 40)) for _ in range(edges)}


def distances(edges: set[tuple[int, int, int]]) -> set[tuple[int, int]]:
    """From 0, by Dijkstra's algorithm."""
    following: dict[int, list[tuple[int, int]]] = {}
    for x, y, weight in edges:
        following.setdefault(x, []).append((y, weight))
    found, waiting = dict[int, int](), [(0, 0)]
    while waiting:
        distance, x = heappop(waiting)
        if x not in found:
            found[x] = distance
            for y, weight in following.get(x, ()):
                heappush(waiting, (distance + weight, y))
    return set(found.items())


def test_the_nearest_go_first_and_the_result_is_the_same() -> None:
    """More facts come in a round than it takes, so that some wait."""
    edges = weighted(4000, 24_000, 1)
    with elastalog.open(PATHS, facts={"edge": edges}) as db:
        assert set(db["far"]) == distances(edges)
    near = PATHS.replace("edge(x, y, w).\nfar", "edge(x, y, w), n + w < 60.\nfar")
    with elastalog.open(near, facts={"edge": edges}) as db:
        assert set(db["far"]) == {fact for fact in distances(edges) if fact[1] < 60}


@pytest.mark.parametrize(
    ("body", "is_least"),
    [("b < a", True), ("a < b", False), ("a > b", True), ("b <= a", None), ("b + 1 < a", None), ("b < a, x = x", None)],
)
def test_a_subsumption_of_the_usual_form_is_a_column_that_improves(body: str, is_least: bool | None) -> None:
    text = f".decl r(x: number, n: number)\n.input r\nr(x, a) <= r(x, b) :- {body}."
    stratum = next(s for s in lower(elastalog.Program.parse(text).checked).strata if s.dominance)
    comparison = comparison_of(stratum.dominance[0])
    assert (None if comparison is None else comparison.is_least) is is_least
    assert (None if stratum.ranked is None else stratum.ranked.is_least) is is_least


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_without_recursion_no_fact_is_left_waiting(strategy: str) -> None:
    """Facts beyond the first few hundred waited for a second round, which a rule without recursion does not have."""
    text = """
    .decl e, p(x: number, y: number)
    p(x, y) :- e(x, y).
    p(x, y) <= p(x, z) :- z < y.
    """
    facts = {(i, i % 97 + j) for i in range(1500) for j in (0, 1)}
    with elastalog.open(text, facts={"e": sorted(facts)}, strategy=strategy) as db:
        assert set(db["p"]) == {(i, i % 97) for i in range(1500)}
        db.apply(inserted={"e": [(i, -1) for i in range(1000, 2500)]}, deleted={"e": [(0, 0)]})
        wanted = {(i, -1 if i >= 1000 else 1 if i == 0 else i % 97) for i in range(2500)}
        assert set(db["p"]) == wanted


def test_the_greatest_may_stay_and_what_is_given_is_a_candidate() -> None:
    text = """
    .decl e(x: number, y: number, w: number)
    .decl r(x: number, n: number)
    r(y, min(n, w)) :- r(x, n), e(x, y, w).
    r(x, a) <= r(x, b) :- a < b.
    """
    large = 2**62
    edges = {(0, 1, 5), (0, 2, large), (2, 1, large - 1), (1, 3, -large), (2, 3, -(2**63)), (3, 0, 9)}
    given = {(0, 2**63 - 1), (0, 7), (4, -(2**63))}
    with elastalog.open(text, facts={"e": edges, "r": given}) as db:
        assert set(db["r"]) == given - {(0, 7)} | {(1, large - 1), (2, large), (3, -large)}
        judge(db, parse_accepted(text), {"e": edges, "r": given}, is_annotated=False)


def test_rules_that_join_the_relation_with_itself_do_not_see_what_has_left() -> None:
    text = """
    .decl e(x: number, y: number, w: number)
    .decl r(x: number, y: number, n: number)
    r(x, y, w) :- e(x, y, w).
    r(x, z, n + m) :- r(x, y, n), r(y, z, m).
    r(x, y, a) <= r(x, y, b) :- b < a.
    """
    edges = weighted(40, 160, 2)
    least = {(x, y): min(w for a, b, w in edges if (a, b) == (x, y)) for x, y, _ in edges}
    for z in range(40):
        for x in range(40):
            for y in range(40):
                if (x, z) in least and (z, y) in least:
                    least[x, y] = min(least.get((x, y), 10**9), least[x, z] + least[z, y])
    with elastalog.open(text, facts={"e": edges}) as db:
        assert set(db["r"]) == {(*ends, length) for ends, length in least.items()}


def test_what_stays_has_proofs() -> None:
    with elastalog.open(PATHS, facts={"edge": EDGES}) as db:
        require_proofs(db, {"edge": EDGES, "far": {(0, 0)}})


def test_of_two_that_dominate_each_other_the_lesser_stays() -> None:
    text = ".decl e(x: symbol)\n.input e\n.decl r(x: symbol)\nr(x) :- e(x).\nr(x) <= r(y) :- x != y.\n"
    for words in (["c", "b", "é"], ["é", "c", "b"]):
        with elastalog.open(text, facts={"e": [(word,) for word in words]}) as db:
            assert set(db["r"]) == {("b",)}


def test_global_levels_know_nothing_of_facts_that_leave() -> None:
    with refused("E0905"):
        elastalog.open(PATHS, facts={"edge": EDGES}, levels="global")


LEFT_BEHIND = """
.decl e(x: number, n: number)
.input e
.decl r, s(x: number, n: number)
r(x, 0) :- e(x, 0).
s(x, n) :- r(x, n).
r(x, n + 1) :- s(_, n), e(x, n + 1).
r(x, a) <= r(y, b) :- y < x, a != b.
"""
GIVEN = {"e": {(5, 0), (3, 1)}}


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_a_fact_whose_premises_were_taken_away_stays_and_its_proof_shows_them_as_superseded(strategy: str) -> None:
    with elastalog.open(LEFT_BEHIND, facts=GIVEN, strategy=strategy) as db:
        assert set(db["r"]) == {(3, 1)}
        assert set(db["s"]) == {(5, 0), (3, 1)}
        proof = db.explain("s(5, 0)")
        (premise,) = proof.children
        assert (premise.fact.values, str(premise.superseded_by)) == ((5, 0), "r(3, 1)")
        assert "r(5, 0) [superseded by r(3, 1)]" in str(proof)
        assert '"superseded_by"' in proof.to_json()
        facts = {name: set(db[name]) for name in db}
        for fact in ("s(5, 0)", "s(3, 1)", "r(3, 1)"):
            assert check_proof(db.explain(fact), db.program.checked, GIVEN, facts)
        cut = db.explain("s(5, 0)", depth=1)
        assert isinstance(cut.expand((0,)).children[0], Proof)


def test_the_checker_rejects_what_is_wrongly_said_to_be_superseded() -> None:
    with elastalog.open(LEFT_BEHIND, facts=GIVEN) as db:
        facts = {name: set(db[name]) for name in db}
        proof = db.explain("s(5, 0)")
        (premise,) = proof.children
        for by in (None, Fact("r", (9, 1)), Fact("r", (3, 0)), Fact("s", (3, 1))):
            wrong = replace(proof, children=(replace(premise, superseded_by=by),))
            assert not check_proof(wrong, db.program.checked, GIVEN, facts), by
        there = replace(db.explain("r(3, 1)"), superseded_by=Fact("r", (1, 2)))
        assert not check_proof(there, db.program.checked, GIVEN, facts)


def test_why_not_says_by_which_fact_it_was_beaten() -> None:
    with elastalog.open(PATHS, facts={"edge": EDGES}) as db:
        absence = db.why_not("far(1, 4)")
        assert absence.headline == "far(1, 4) does not hold, although a rule gives it:"
        assert absence.notes == ("superseded by far(1, 3), as `far(x, a) <= far(x, b) :- b < a.` says",)
        assert "superseded by far(1, 3)" in absence.to_tree()
        assert '"notes"' in absence.to_json()
        missing = db.why_not("far(7, 1)")
        assert not missing.notes
        assert missing.headline == "far(7, 1) does not hold; nearest derivations that fail:"
