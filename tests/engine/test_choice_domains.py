"""Choice domains: at most one fact for each key, the same whatever evaluates it, and evaluated anew in updates."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import elastalog
from elastalog.provenance.check import check_proof
from tests.engine.judging import followed
from tests.provenance.databases import require_proofs
from tests.refusals import refused

TREE = """
.decl edge(x: number, y: number)
.input edge
.decl parent(x: number, y: number) choice-domain y
parent(0, 0).
parent(x, y) :- parent(_, x), edge(x, y).
.decl child(x: symbol, n: number)
child(to_string(x), n) :- parent(x, _), n = count : { parent(x, _) }.
.decl pair(x: number, y: number) choice-domain x, y
pair(x, y) :- edge(x, y).
.decl pick(x: number, s: symbol, y: number) choice-domain (x, s)
pick(x, to_string(x + y), y) :- edge(x, y).
.output parent, child, pair, pick
"""
EDGES = {(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 1), (2, 4)}


def test_the_least_candidate_of_a_round_is_taken() -> None:
    with elastalog.open(TREE, facts={"edge": EDGES}) as db:
        assert set(db["parent"]) == {(0, 0), (0, 1), (0, 2), (1, 3), (2, 4)}
        # in order: (0, 1) takes 0 and 1; (0, 2) goes; (1, 3); (2, 3) goes, (2, 4); (3, 4) and (4, 1) go
        assert set(db["pair"]) == {(0, 1), (1, 3), (2, 4)}


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_updates_leave_what_a_fresh_evaluation_chooses(strategy: str, jobs: int) -> None:
    with followed(TREE, {"edge": EDGES}, strategy=strategy, jobs=jobs) as session:
        for deleted, inserted in (
            ([(0, 1)], [(5, 1)]),
            ([(2, 3), (0, 2)], [(4, 2)]),
            ([(4, 2)], [(0, 1), (0, 2), (0, 3)]),
        ):
            session.apply({"edge": inserted}, {"edge": deleted})
            assert session.how("parent") <= {"recompute"}


def test_what_is_chosen_has_proofs() -> None:
    with elastalog.open(TREE, facts={"edge": EDGES}) as db:
        require_proofs(db, {"edge": EDGES})


def test_a_proof_says_among_how_many_a_fact_was_chosen_and_the_checker_counts_them() -> None:
    with elastalog.open(TREE, facts={"edge": EDGES}) as db:
        facts = {name: set(db[name]) for name in db}
        explicit = {"edge": EDGES}
        proof = db.explain("parent(1, 3)")
        assert proof.chosen_among == 2  # beside (2, 3)
        assert "parent(1, 3) [chosen among 2]" in str(proof)
        assert '"chosen_among": 2' in proof.to_json()
        # (0, 1) competes with (0, 2) for 0, and with (4, 1) for 1
        assert db.explain("pair(0, 1)").chosen_among == 3
        assert db.explain("parent(0, 0)").chosen_among == 1
        assert db.explain('child("1", 1)').chosen_among is None
        for number in (1, 3):
            wrong = replace(proof, chosen_among=number)
            assert not check_proof(wrong, db.program.checked, explicit, facts)
        wrong = replace(db.explain('child("1", 1)'), chosen_among=1)
        assert not check_proof(wrong, db.program.checked, explicit, facts)


def test_why_not_says_which_rival_has_the_key() -> None:
    with elastalog.open(TREE, facts={"edge": EDGES}) as db:
        absence = db.why_not("parent(2, 3)")
        assert absence.headline == "parent(2, 3) does not hold, although a rule gives it:"
        assert absence.notes == ("not chosen: parent(1, 3) has the key y = 3",)
        assert db.why_not("pair(4, 1)").notes == ("not chosen: pair(0, 1) has the key y = 1",)
        assert not db.why_not("parent(4, 3)").notes


def test_texts_are_taken_by_their_characters_and_never_by_the_order_in_which_they_came() -> None:
    text = ".decl w(x: symbol)\n.input w\n.decl first(k: number, x: symbol) choice-domain k\nfirst(1, x) :- w(x).\n"
    for words in (["é", "b", "Z"], ["Z", "é", "b"]):
        with elastalog.open(text, facts={"w": [(word,) for word in words]}) as db:
            assert set(db["first"]) == {(1, "Z")}


def test_global_levels_know_nothing_of_choices() -> None:
    with refused("E0905"):
        elastalog.open(TREE, facts={"edge": EDGES}, levels="global")


def test_nan_is_one_candidate() -> None:
    program = ".decl f(x: float)\n.decl g(k: number, x: float) choice-domain k\ng(1, x) :- f(x)."
    with elastalog.open(program, {"f": [(math.nan,), (1.5,)]}) as db:
        assert "[chosen among 2]" in str(db.explain(("g", (1, math.nan))))
