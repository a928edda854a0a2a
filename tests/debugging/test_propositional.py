"""Propositional programs against all parts of their updates: negation, recursion, mixed faults, rejection."""

from __future__ import annotations

from random import Random

import pytest

import elastalog
from elastalog import ElastalogError
from elastalog.debugging.answers import Answer
from elastalog.settings import SETTINGS
from tests.debugging.propositional import Propositional, random_propositional
from tests.forcing import forced
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
    "model": (SETTINGS.choices_before_graph, SETTINGS.few_elements),
    "trials": (SETTINGS.choices_before_graph, 0),
    "trials alone": (1_000, 0),
    "model after a trial": (2, 0),
    "derivations stated": (1, SETTINGS.few_elements),
}
"""Ways to the same answer: asking the derivation graph at once or later, learning from trials."""


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    patience, few = WAYS[request.param]
    monkeypatch.setattr(SETTINGS, "choices_before_graph", patience)
    monkeypatch.setattr(SETTINGS, "few_elements", few)
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


BOUNDS = {
    "few_elements": (0,), "first_share": (0.0, 1.0), "bracket_derivations": (0, 1), "graph_derivations": (0, 2),
    "graph_trials": (0,), "choices_before_graph": (1, 2), "stated_derivations": (0,),
    "conditions_at_once": (1,), "few_switched_facts": (0,),
    "members_proved": (0,), "trial_derivations": (0, 3), "first_trial_derivations": (0, 1), "dear_switches": (0, 1),
    "state_seconds": (0.0,), "state_share": (0.0,), "state_seconds_a_fact": (0.0, 1.0), "reserved_share": (1.0,),
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BOUNDS.items() for value in values])
@pytest.mark.parametrize("few", [0, SETTINGS.few_elements])
def test_with_tight_bounds_a_repair_is_one_and_no_more_is_claimed(name: str, value: float, few: int) -> None:
    found = 0
    for seed in range(40, 48):
        case = random_propositional(seed, negation=True)
        old, new = case.facts(case.before), case.facts(case.after)
        unwanted, missing = set(sorted(new - old)[:2]), set(sorted(old - new)[:2])
        if not unwanted and not missing:
            continue
        faults = [f"{name}()" for name in sorted(unwanted)], [f"{name}()" for name in sorted(missing)]
        given, gone = ({name: [()] for name in side} for side in (case.after - case.before, case.before - case.after))
        with (
            forced(**{"few_elements": few, name: value}),
            elastalog.open(case.text, facts={name: [()] for name in case.before}) as db,
        ):
            db.apply(given, gone)
            told, suggestion = "", None
            try:
                suggestion = db.suggest(*faults, time_limit=5.0)
            except ElastalogError as none:
                told = str(none)
            assert suggestion or ("E1006" in told and "but one may exist" in told), told
            if suggestion is None:
                continue
            found += 1
            facts = case.after_undoing(names(suggestion))
            assert facts.isdisjoint(unwanted)
            assert facts.issuperset(missing)
            smallest = case.smallest_undoing(unwanted, missing)
            assert smallest is not None
            assert suggestion.bound <= smallest <= len(suggestion.elements)
            assert len(suggestion.elements) == smallest or not suggestion.minimum
            if not missing:
                over_facts = db.suggest(*faults, over="facts", time_limit=5.0)
                assert case.after_undoing(names(over_facts)).isdisjoint(unwanted)
    assert found > 2 or "seconds" in name or "share" in name
