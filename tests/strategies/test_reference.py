"""Every strategy equals the reference after every epoch, on random programs."""

from __future__ import annotations

import pytest

from elastalog.settings import SETTINGS
from tests.forcing import forced
from tests.generators.construction import Features
from tests.strategies.running import NO_RECURSION, failure

STRATEGIES = ("dense", "dred", "dredc", "bf", "bfc")
RECURSIVE = Features(aggregates=False, arithmetic=False, symbols=False)
COMPUTED = Features(aggregates=False, symbols=False, disjunctions=False)
FAST = 6
"""Seeds that are the same in every run: few of them do, as `tests.torture` has new ones."""


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("features", [Features(), RECURSIVE], ids=["everything", "recursion and negation"])
def test_facts_are_those_of_the_reference(strategy: str, features: Features) -> None:
    for seed in range(FAST):
        assert failure(seed, strategy, features) is None


def test_counting_is_right_without_recursion() -> None:
    for seed in range(FAST):
        assert failure(seed, "counting", NO_RECURSION) is None


@pytest.mark.parametrize("strategy", ["bf", "bfc", "dred"])
@pytest.mark.parametrize("features", [COMPUTED, RECURSIVE], ids=["arithmetic", "recursion and negation"])
@pytest.mark.parametrize("rows", [1, 20])
def test_backward_search_may_give_up(
    strategy: str, features: Features, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, or in the middle of a search: then clauses are enumerated and their derivations remembered."""
    monkeypatch.setattr(SETTINGS, "backward_limit", rows)
    monkeypatch.setattr(SETTINGS, "backward_chunk", 2)
    for seed in range(FAST):
        assert failure(seed, strategy, features) is None


@pytest.mark.parametrize("strategy", ["bf", "bfc", "dred", "dredc"])
@pytest.mark.parametrize("features", [COMPUTED, RECURSIVE], ids=["arithmetic", "recursion and negation"])
@pytest.mark.parametrize("rounds", [0, 1])
def test_the_machine_may_take_over(
    strategy: str, features: Features, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SETTINGS, "set_machine_after", rounds)
    monkeypatch.setattr(SETTINGS, "bfc_plain_after", rounds)
    for seed in range(FAST):
        assert failure(seed, strategy, features) is None


def test_plain_rounds_end_where_something_may_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """In these cases a derivation of a questioned fact needs one that has not been checked, or a fact has support."""
    monkeypatch.setattr(SETTINGS, "bfc_plain_after", 0)
    for seed in (53, 54, 73):
        assert failure(seed, "bfc", RECURSIVE) is None


MARKED = [
    ("dred", "eager"), ("dred", "linked"), ("bf", "eager"), ("bf", "linked"), ("bfc", "linked"),
    ("bfc", "eager"),
]  # fmt: skip


@pytest.mark.parametrize(("strategy", "marks"), MARKED)
def test_marks_change_no_result(strategy: str, marks: str) -> None:
    for seed in range(FAST):
        assert failure(seed, strategy, marks=marks) is None


def test_plain_rounds_may_be_interrupted_between_two_of_them() -> None:
    """Where limits are looked at between rounds there is no block at which the machine has left off."""
    with forced(bfc_plain_after=0, work_between_checks=1):
        for seed in range(FAST):
            assert failure(seed, "bfc", RECURSIVE) is None
