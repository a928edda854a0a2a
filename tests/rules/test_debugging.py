"""Rules as elements of updates, against brute force over all parts of an update."""

from __future__ import annotations

from random import Random

import pytest

from tests.debugging.brute_force import investigate
from tests.generators.construction import Features
from tests.rules.playing import Case, case_of, is_stratified, step_of

NEGATION = Features(aggregates=False, arithmetic=False)


def debug(seed: int, strategy: str = "elastic", features: Features = NEGATION, epochs: int = 1) -> set[str]:
    """Debugs one case; says which kinds of elements its answers had."""
    case, choice = case_of(seed, features), Random(seed)
    if not is_stratified(case.header + "".join(f"{rule}\n" for rule in case.pool)):
        return set()
    steps = []
    rest = Case(case.header, case.pool, list(case.current), case.explicit, case.facts)
    for number in range(epochs):
        steps.append(step_of(rest, case.updates[number % len(case.updates)], choice))
        rest.current = [rule for rule in rest.current if rule not in steps[-1].removed] + steps[-1].added
    return investigate(case, steps, choice, strategy)


def test_seeded() -> None:
    kinds = set().union(*(debug(seed) for seed in range(40)))
    assert kinds >= {"rule", "fact"}


def test_seeded_with_aggregates() -> None:
    for seed in range(1000, 1020):
        debug(seed, features=Features(arithmetic=False))


def test_seeded_over_several_epochs() -> None:
    kinds = set().union(*(debug(seed, epochs=3) for seed in range(2000, 2025)))
    assert kinds >= {"rule", "fact"}


@pytest.mark.parametrize("strategy", ["recompute", "dense", "dred", "bfc"])
def test_seeded_under_other_strategies(strategy: str) -> None:
    for seed in range(3000, 3012):
        debug(seed, strategy)


@pytest.mark.long
@pytest.mark.parametrize("epochs", [1, 2])
def test_many_seeded(epochs: int) -> None:
    for seed in range(10_000, 10_100):
        debug(seed, epochs=epochs, features=Features(arithmetic=False))
