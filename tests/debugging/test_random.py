"""Random programs, updates and faults against brute force: answers do what they say, and `minimum` is never wrong."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.debugging.brute_force import investigate
from tests.generators.construction import Features, GeneratedProgram
from tests.generators.programs import programs, updates
from tests.generators.seeded import seeded_case
from tests.generators.updates import Update
from tests.rules.playing import Case, Step

MOST_ELEMENTS = 8
POSITIVE = Features(negation=False, aggregates=False)
NEGATION = Features(aggregates=False, arithmetic=False)
GROUPS = Features(negated_groups=True)


def debug(program: GeneratedProgram, steps: list[Update], choice: Random, strategy: str = "elastic") -> set[str]:
    """Debugs one case: several updates as one, so that there is more to choose from."""
    sides = [{name: [] for name in program.schemas} for _ in range(2)]  # type: list[dict[str, list[Any]]]
    for step in steps:
        for merged, side in zip(sides, (step.deleted, step.inserted), strict=True):
            for name, facts in side.items():
                merged[name] += facts
    case = Case(program.text, [], [], program.explicit, program.facts)
    return investigate(case, [Step([], [], Update(*sides))], choice, strategy, MOST_ELEMENTS)


@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 0), (NEGATION, 1000), (Features(), 2000), (GROUPS, 4000)])
def test_seeded(features: Features, first: int) -> None:
    kinds = set().union(*(debug(*seeded_case(seed, features), Random(seed)) for seed in range(first, first + 7)))
    assert kinds == {"unwanted", "missing", "fact"}


@pytest.mark.parametrize("strategy", ["recompute", "dred", "bfc"])
def test_seeded_under_other_strategies(strategy: str) -> None:
    for seed in range(3000, 3004):
        debug(*seeded_case(seed, NEGATION), Random(seed), strategy)


@settings(max_examples=8)
@given(st.data())
def test_drawn(data: st.DataObject) -> None:
    program = data.draw(programs(arithmetic=False))
    debug(program, data.draw(updates(program, 2)), Random(data.draw(st.integers(0, 99))))


@pytest.mark.long
@pytest.mark.parametrize(("features", "first"), [(POSITIVE, 10_000), (NEGATION, 20_000), (Features(), 30_000)])
def test_many_seeded(features: Features, first: int) -> None:
    for seed in range(first, first + 3):
        debug(*seeded_case(seed, features), Random(seed))
