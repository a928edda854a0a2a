"""Propositional programs against all parts of their updates: negation, recursion, mixed faults, rejection."""

from __future__ import annotations

from random import Random

import pytest

import elastalog
from elastalog.debugging import investigation, search
from elastalog.debugging.answers import Answer
from tests.debugging.propositional import Propositional, random_propositional
from tests.refusals import refused


def names(answer: Answer) -> set[str]:
    return {fact.relation for _, fact in answer.elements}


def debug(case: Propositional, choice: Random) -> str:
    old, new = case.facts(case.before), case.facts(case.after)
    came, went = sorted(new - old), sorted(old - new)
    unwanted = set(choice.sample(came, min(len(came), choice.randint(0, 3))))
    missing = set(choice.sample(went, min(len(went), choice.randint(0, 3))))
    if not unwanted and not missing:
        return "nothing"
    faults = [f"{name}()" for name in sorted(unwanted)], [f"{name}()" for name in sorted(missing)]
    with elastalog.open(case.text, facts={name: [()] for name in case.before}) as db:
        db.apply({name: [()] for name in case.after - case.before}, {name: [()] for name in case.before - case.after})
        suggestion = db.suggest(*faults)
        facts = case.after_undoing(names(suggestion))
        assert facts.isdisjoint(unwanted)
        assert facts.issuperset(missing)
        assert suggestion.minimum
        assert len(suggestion.elements) == case.smallest_undoing(unwanted, missing)

        localisation = db.localise(*faults)
        facts = case.after_applying(names(localisation))
        assert facts.issuperset(unwanted)
        assert facts.isdisjoint(missing)
        assert localisation.minimum
        assert len(localisation.elements) == case.smallest_reproducing(unwanted, missing)

        rejected = frozenset(choice.sample(sorted(names(suggestion)), 1))
        best = case.smallest_undoing(unwanted, missing, rejected)
        kept = [f"{name}()" for name in rejected]
        if best is None:
            with refused("E1006", match="no part of the update"):
                db.suggest(*faults, rejected=kept)
        else:
            other = db.suggest(*faults, rejected=kept)
            assert rejected.isdisjoint(names(other))
            assert other.minimum
            assert len(other.elements) == best
        assert {name for name in db if len(db[name])} == case.facts(case.after)
        assert db.epoch == 2
        suggestion.apply()
        assert {name for name in db if len(db[name])} == case.after_undoing(names(suggestion))
    return "mixed" if unwanted and missing else "unwanted" if unwanted else "missing"


WAYS = {
    "model": (search.PATIENCE, investigation.FEW_ELEMENTS),
    "trials": (search.PATIENCE, 0),
    "trials alone": (1_000, 0),
    "model after a trial": (2, 0),
    "derivations stated": (1, investigation.FEW_ELEMENTS),
}
"""Ways to the same answer: asking the derivation graph at once or later, learning from trials."""


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    patience, few = WAYS[request.param]
    monkeypatch.setattr(search, "PATIENCE", patience)
    monkeypatch.setattr(investigation, "FEW_ELEMENTS", few)
    return str(request.param)


@pytest.mark.parametrize(("negation", "first"), [(False, 0), (True, 1000)])
def test_seeded(way: str, negation: bool, first: int) -> None:
    seeds = range(first, first + 20)
    kinds = [debug(random_propositional(seed, negation=negation), Random(seed)) for seed in seeds]
    assert {"mixed", "unwanted", "missing"} <= set(kinds)


@pytest.mark.slow
@pytest.mark.parametrize(("negation", "first"), [(False, 10_000), (True, 20_000)])
@pytest.mark.parametrize("number", [4, pytest.param(40, marks=pytest.mark.long)])
def test_many_seeded(way: str, negation: bool, first: int, number: int) -> None:
    for seed in range(first, first + number):
        debug(random_propositional(seed, negation=negation, most_inputs=12), Random(seed))
