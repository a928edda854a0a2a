"""Proofs and absence of programs with every construct that evaluation has: ranges, functors of texts and records
too."""

from __future__ import annotations

import re
from itertools import product

import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.analysis.values import sort_key
from elastalog.provenance.check import check_proof
from tests.engine.judging import comparable
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.provenance.databases import facts_of
from tests.reference.cases import case_names, load_case, parse_accepted
from tests.reference.levels import levels
from tests.tables import table

ALL = Features(ranges=True, text_functors=True, records=True)
SEEDS = range(3000, 3024)
UNLIKELY = {"number": (0, 3, 7), "symbol": ("a", "z"), "R": (None, (7, (1, None)))}


def test_the_programs_hold_every_construct() -> None:
    texts = "\n".join(seeded_case(seed, ALL)[0].text for seed in SEEDS)
    constructs = "range(", "match(", "contains(", "substr(", "strlen(", "count :", "sum ", "!", ";", "+ 1", "[x, "
    assert [construct for construct in constructs if construct not in texts] == []
    assert re.search(r"range\(\w+, \w+, -?\d\)", texts)


@pytest.mark.parametrize(
    "seed", [seed if seed < 3012 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS]
)
def test_every_fact_has_a_proof_and_every_other_an_absence(seed: int) -> None:
    require_proofs_and_absences(seed, ALL)


@pytest.mark.parametrize("seed", range(4000, 4008))
def test_negations_of_anything(seed: int) -> None:
    require_proofs_and_absences(seed, Features(negated_groups=True, tested_groups=True, witnesses=True))


def require_proofs_and_absences(seed: int, features: Features) -> None:
    program, updates = seeded_case(seed, features, 2)
    db = elastalog.open(program.text, facts=program.facts, levels="global")
    explicit = program.explicit
    for update in [None, *updates]:
        if update is not None:
            db.apply(update.inserted, update.deleted)
            explicit = update.apply_to(explicit)
        expected = levels(parse_accepted(db.program.tree.source.text), explicit, "global", with_text_facts=False)
        facts = facts_of(db)
        for name in db:
            for values in db[name]:
                proof = db.explain((name, values))
                verdict = check_proof(proof, db.program.checked, explicit, facts)
                assert verdict.accepted, (seed, verdict.reason)
                assert proof.height == expected[name, comparable(values)][0]
        absent = [
            (name, values)
            for name, schema in program.schemas.items()
            for values in list(product(*(UNLIKELY[base] for base in schema)))[:8]
            if values not in db[name]
        ]
        for fact in absent:
            absence = db.why_not(fact, limit=2)
            assert all(found.failing for found in absence.instantiations), (seed, fact)


def test_a_range_that_alone_binds_a_variable_is_gone_through() -> None:
    program = """
.decl a, b, d(x: number)
a(3). b(0). b(2).
d(y) :- a(y), x = range(0, y), b(x), x > 5.
d(y + 10) :- a(y), x = range(0, y), !b(x), x > 5.
"""
    db = elastalog.open(program)
    assert [len(db.why_not(("d", (n,))).instantiations[0].failing) for n in (3, 13)] == [1, 1]
    shown = str(db.why_not(("d", (13,))))
    assert "range(0, 3) ✓" in shown
    assert "1 > 5 X" in shown


def test_a_range_without_values_fails() -> None:
    db = elastalog.open(".decl a(x: number)\n.decl d(x: number)\na(0).\nd(y) :- a(y), x = range(0, y).")
    (found,) = db.why_not(("d", (0,))).instantiations
    assert [(literal.text, literal.status) for literal in found.literals][1][1] == "fails"


def test_a_computed_argument_decides_between_the_values_of_a_range() -> None:
    """Of the head, and of an atom of the body."""
    program = """
.decl e, p, q(x: number)
e(3). e(7).
p(y + 1) :- e(_), y = range(4, 2), y < 5.
q(z) :- e(z), y = range(0, 9), e(y + 1), y > 4.
"""
    db = elastalog.open(program)
    explicit = {"e": {(3,), (7,)}, "p": set(), "q": set()}
    assert sorted(db["p"]) == [(4,), (5,)]
    for name in db:
        for values in db[name]:
            verdict = check_proof(db.explain((name, values)), db.program.checked, explicit, facts_of(db))
            assert verdict.accepted, verdict.reason
    assert "3 = range(4, 2)" in db.explain("p(4)").to_tree()
    assert "6 = range(0, 9)" in db.explain("q(3)").to_tree()


@pytest.mark.parametrize("body", table(__file__, "a value of a range suits the aggregates of nothing"))
def test_a_value_of_a_range_suits_the_aggregates_of_nothing(body: str) -> None:
    """Which value of the range a derivation has, only the group without members says."""
    text = f".decl p()\np().\n.decl q(x: number)\nq(1).\n.decl r(n: number)\nr(n) :- {body}.\n"
    db = elastalog.open(text)
    explicit = {"p": {()}, "q": {(1,)}, "r": set()}
    assert len(db["r"]) > 1
    for values in db["r"]:
        for proof in (db.explain(("r", values)), *db.derivations(("r", values))):
            verdict = check_proof(proof, db.program.checked, explicit, facts_of(db))
            assert verdict.accepted, verdict.reason


def test_facts_whose_premises_subsumption_took_away_for_good_have_proofs() -> None:
    """`p(nil, 2)` comes from facts that left in an order which evaluating anew does not repeat."""
    text = """
        .type R = [a: number, b: R]
        .decl p(a: R, b: number)
        p([w, [1, nil]], w) :- p(r, w), p([x, nil], y).
        p(r, x + 1) :- p(r, y), p([x, r], w), x < 5.
        p([w, nil], x) :- p([x, q], w).
        p(u, v) <= p(u, v2) :- v2 < v.
    """
    given = [(None, 3), ((1, (0, (0, None))), 4)]
    db = elastalog.open(text, {"p": given})
    assert (None, 2) in set(db["p"])
    for values in db["p"]:
        proof = db.explain(("p", values))
        verdict = check_proof(proof, db.program.checked, {"p": set(given)}, facts_of(db))
        assert verdict.accepted, verdict.reason


# --- every program of `tests/programs`: the whole dialect, functors and aggregates included ---------------------------


MOST = 25


@pytest.mark.parametrize("levels", ["local", "global"])
@pytest.mark.parametrize("name", case_names())
def test_proofs_of_the_facts_of_a_program_are_accepted(name: str, levels: str) -> None:
    case = load_case(name)
    program = elastalog.Program.load(case.folder / "program.dl")
    db = elastalog.open(program, facts=dict(case.facts), levels=levels)
    explicit = {relation: set(map(tuple, facts)) for relation, facts in case.facts.items()}
    for fact in program.checked.facts:
        bases = [attribute.base for attribute in program.checked.relations[fact.relation].attributes]
        values = tuple(float(v) + 0.0 if b is Base.FLOAT else v for v, b in zip(fact.values, bases, strict=True))
        explicit.setdefault(fact.relation, set()).add(values)
    facts = facts_of(db)
    for relation in db:
        for values in sorted(facts[relation], key=sort_key)[:MOST]:
            proof = db.explain((relation, values))
            verdict = check_proof(proof, program.checked, explicit, facts, db._dictionary.symbols.find)
            assert verdict.accepted, verdict.reason
            assert verdict.unexpanded == 0
