"""Random programs, updates and faults against brute force: answers do what they say, and `minimum` is never wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.debugging.answers import Answer
from tests.debugging.brute_force import choose_faults, elements_between, merged, removes, reproduces, smaller_parts
from tests.engine.judging import facts_of, levels_of
from tests.generators.construction import Features, GeneratedProgram
from tests.generators.programs import programs, updates
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.reference.cases import parse_accepted

MOST_ELEMENTS = 8
POSITIVE = Features(negation=False, aggregates=False)
NEGATION = Features(aggregates=False, arithmetic=False)
GROUPS = Features(negated_groups=True)


def plain(answer: Answer) -> list[Any]:
    return [(sign, (fact.relation, fact.values)) for sign, fact in answer.elements]


def debug(program: GeneratedProgram, steps: list[Update], choice: Random, strategy: str = "elastic") -> str | None:
    """Debugs one case; says what kind of faults it had, None if there was nothing to debug."""
    tree, before = parse_accepted(program.text), program.explicit
    update = merged(steps)
    after = update.apply_to(before)
    elements = elements_between(before, after)
    if not 0 < len(elements) <= MOST_ELEMENTS:
        return None
    faults = choose_faults(tree, before, after, choice)
    if faults is None:
        return None
    with elastalog.open(program.text, facts=program.facts, strategy=strategy) as db:
        db.apply(update.inserted, update.deleted)
        state = facts_of(db), levels_of(db) if strategy == "elastic" else None
        suggestion = db.suggest(faults.unwanted, faults.missing)
        localisation = db.localise(faults.unwanted, faults.missing)
        assert state == (facts_of(db), levels_of(db) if strategy == "elastic" else None)
        assert db.epoch == 2
        undone, part = plain(suggestion), plain(localisation)
        assert set(undone) <= set(elements)
        assert set(part) <= set(elements)
        assert suggestion.verified
        assert localisation.verified
        assert removes(tree, before, elements, undone, faults)
        assert reproduces(tree, before, part, faults)
        assert suggestion.minimum
        assert localisation.minimum
        assert suggestion.bound == len(undone)
        for smaller in smaller_parts(elements, len(undone)):
            assert not removes(tree, before, elements, smaller, faults)
        for smaller in smaller_parts(elements, len(part)):
            assert not reproduces(tree, before, smaller, faults)
    return "mixed" if faults.unwanted and faults.missing else "unwanted" if faults.unwanted else "missing"


@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 0), (NEGATION, 1000), (Features(), 2000), (GROUPS, 4000)])
def test_seeded(features: Features, first: int) -> None:
    kinds = [debug(*seeded_case(seed, features), Random(seed)) for seed in range(first, first + 7)]
    assert len(set(kinds) - {None}) >= 2


@pytest.mark.parametrize("strategy", ["recompute", "dred", "bfc"])
def test_seeded_under_other_strategies(strategy: str) -> None:
    for seed in range(3000, 3004):
        debug(*seeded_case(seed, NEGATION), Random(seed), strategy)


@settings(max_examples=8)
@given(st.data())
def test_drawn(data: st.DataObject) -> None:
    program = data.draw(programs(arithmetic=False))
    debug(program, data.draw(updates(program, 2)), Random(data.draw(st.integers(0, 99))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "first"),
    [(POSITIVE, 10_000), (NEGATION, 20_000), pytest.param(Features(), 30_000, marks=pytest.mark.long)],
)
def test_many_seeded(features: Features, first: int) -> None:
    for seed in range(first, first + 3):
        debug(*seeded_case(seed, features), Random(seed))
