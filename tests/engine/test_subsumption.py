"""Subsumption: dominated facts leave, in every epoch as a fresh evaluation would have it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import elastalog
from elastalog.analysis.values import sort_key
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.provenance.check import check_proof
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from tests.engine.judging import judge
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
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


LEFT_BEHIND = """
.decl e(x: number, n: number)
.input e
.decl r(x: number, n: number)
.decl s(x: number, n: number)
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
        assert isinstance(premise, Proof)
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
        assert isinstance(premise, Proof)
        for by in (None, Fact("r", (9, 1)), Fact("r", (3, 0)), Fact("s", (3, 1))):
            wrong = replace(proof, children=(replace(premise, superseded_by=by),))
            assert not check_proof(wrong, db.program.checked, GIVEN, facts), by
        there = replace(db.explain("r(3, 1)"), superseded_by=Fact("r", (1, 2)))
        assert not check_proof(there, db.program.checked, GIVEN, facts)


def test_why_not_says_by_which_fact_it_was_beaten() -> None:
    with elastalog.open(PATHS, facts={"edge": EDGES}) as db:
        absence = db.explain_absence("far(1, 4)")
        assert absence.headline == "far(1, 4) does not hold, although a rule gives it:"
        assert absence.notes == ("superseded by far(1, 3): far(x, a) <= far(x, b) :- b < a.",)
        assert "superseded by far(1, 3)" in absence.to_tree()
        assert '"notes"' in absence.to_json()
        missing = db.explain_absence("far(7, 1)")
        assert not missing.notes
        assert missing.headline == "far(7, 1) does not hold; nearest derivations that fail:"


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_are_what_the_judges_say_and_have_proofs(seed: int) -> None:
    features = Features(equivalences=True, choices=True, subsumptions=True)
    program, updates = seeded_case(seed, features)
    tree, explicit = parse_accepted(program.text), program.explicit
    strategy = "recompute" if seed % 4 == 0 else "elastic"
    is_annotated = strategy == "elastic" and "<= p" not in program.text
    with elastalog.open(program.text, program.facts, strategy=strategy, engine="gpu" if seed % 5 else "local") as db:
        for update in updates:
            db.apply(update.inserted, update.deleted)
            explicit = update.apply_to(explicit)
            judge(db, tree, explicit, is_annotated=is_annotated)
        facts = {name: set(db[name]) for name in db}
        for name in db:
            for values in sorted(facts[name], key=sort_key)[:5]:
                verdict = check_proof(db.explain((name, values)), db.program.checked, explicit, facts)
                assert verdict.accepted, verdict.reason
