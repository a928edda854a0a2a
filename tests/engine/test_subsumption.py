"""Subsumption: dominated facts leave, in every epoch as a fresh evaluation would have it."""

from __future__ import annotations

from random import Random

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.check import check_proof
from tests.engine.judging import judge
from tests.reference.cases import parse_accepted

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
    edges = set(EDGES)
    with elastalog.open(PATHS, facts={"edge": edges}, strategy=strategy) as db:
        for _ in range(8):
            gone = set(random.sample(sorted(edges), 2))
            came = {(random.randrange(6), random.randrange(6), random.randrange(1, 9)) for _ in range(2)}
            db.apply({"edge": came}, {"edge": gone})
            edges = (edges - gone) | came
            assert set(db["far"]) == shortest(edges)
            judge(db, parse_accepted(PATHS), {"edge": edges, "far": {(0, 0)}}, is_annotated=False)


def test_what_stays_has_proofs() -> None:
    with elastalog.open(PATHS, facts={"edge": EDGES}) as db:
        facts = {name: set(db[name]) for name in db}
        for name in db:
            for values in facts[name]:
                proof = db.explain((name, values))
                assert check_proof(proof, db.program.checked, {"edge": EDGES, "far": {(0, 0)}}, facts)


def test_of_two_that_dominate_each_other_the_lesser_stays() -> None:
    text = ".decl e(x: symbol)\n.input e\n.decl r(x: symbol)\nr(x) :- e(x).\nr(x) <= r(y) :- x != y.\n"
    for words in (["c", "b", "é"], ["é", "c", "b"]):
        with elastalog.open(text, facts={"e": [(word,) for word in words]}) as db:
            assert set(db["r"]) == {("b",)}


@pytest.mark.parametrize("options", [{"strategy": "dred"}, {"strategy": "dense"}, {"levels": "global"}])
def test_what_cannot_take_facts_away_says_so_when_opened(options: dict[str, str]) -> None:
    with pytest.raises(ElastalogError) as raised:
        elastalog.open(PATHS, facts={"edge": EDGES}, **options)
    assert [diagnostic.code for diagnostic in raised.value.diagnostics] == ["E0905"]


def test_a_fact_whose_premises_were_taken_away_stays_and_has_no_proof() -> None:
    text = """
    .decl e(x: number, n: number)
    .input e
    .decl r(x: number, n: number)
    .decl s(x: number, n: number)
    r(x, 0) :- e(x, 0).
    s(x, n) :- r(x, n).
    r(x, n + 1) :- s(_, n), e(x, n + 1).
    r(x, a) <= r(y, b) :- y < x, a != b.
    """
    with elastalog.open(text, facts={"e": [(5, 0), (3, 1)]}) as db:
        assert set(db["r"]) == {(3, 1)}
        assert set(db["s"]) == {(5, 0), (3, 1)}
        with pytest.raises(ElastalogError) as raised:
            db.explain("s(5, 0)")
        assert [diagnostic.code for diagnostic in raised.value.diagnostics] == ["E0740"]
