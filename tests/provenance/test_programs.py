"""Every program of `tests/programs`: the whole dialect, functors and aggregates included."""

from __future__ import annotations

import pytest

import elastalog
from elastalog.analysis.program import Base
from elastalog.analysis.values import sort_key
from elastalog.provenance.check import check_proof
from tests.provenance.databases import facts_of
from tests.reference.cases import case_names, load_case

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
