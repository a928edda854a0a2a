"""Every strategy equals the reference after every epoch, on random programs."""

from __future__ import annotations

import pytest

from elastalog.backends.kernel import set_maintenance
from tests.generators.construction import Features
from tests.strategies.running import NO_RECURSION, failure

STRATEGIES = ("dense", "dred", "dredc", "bf", "bfc", "bf-pruned", "bfc-pruned")
RECURSIVE = Features(aggregates=False, arithmetic=False, symbols=False)
COMPUTED = Features(aggregates=False, symbols=False, disjunctions=False)
FAST, SLOW = 6, 60


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("features", [Features(), RECURSIVE], ids=["everything", "recursion and negation"])
def test_facts_are_those_of_the_reference(strategy: str, features: Features) -> None:
    for seed in range(FAST):
        assert failure(seed, strategy, features) is None


def test_counting_is_right_without_recursion() -> None:
    for seed in range(FAST):
        assert failure(seed, "counting", NO_RECURSION) is None


@pytest.mark.parametrize("strategy", ["bf", "dred"])
def test_computed_heads_are_found_forwards(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_maintenance, "_MANY", 1)
    for seed in range(2 * FAST):
        assert failure(seed, strategy, COMPUTED) is None


MARKED = [
    ("dred", "eager"), ("dred", "linked"), ("bf", "eager"), ("bf", "linked"), ("bfc", "linked"),
    ("bfc-pruned", "eager"), ("bfc-pruned", "linked"),
]  # fmt: skip


@pytest.mark.parametrize(("strategy", "marks"), MARKED)
def test_marks_change_no_result(strategy: str, marks: str) -> None:
    for seed in range(FAST):
        assert failure(seed, strategy, marks=marks) is None


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_cases(strategy: str) -> None:
    for seed in range(FAST, SLOW):
        assert failure(seed, strategy) is None
        assert failure(seed, strategy, RECURSIVE) is None


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "marks"), MARKED)
def test_many_marked_cases(strategy: str, marks: str) -> None:
    for seed in range(FAST, SLOW):
        assert failure(seed, strategy, marks=marks) is None
