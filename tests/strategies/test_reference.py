"""Every strategy equals the reference after every epoch, on random programs."""

from __future__ import annotations

from itertools import product

import pytest

from tests.forcing import forced
from tests.generators.construction import Features
from tests.strategies.running import NO_RECURSION, failure

STRATEGIES = ("dense", "dred", "dredc", "bf", "bfc")
RECURSIVE = Features(aggregates=False, arithmetic=False, symbols=False)
POSITIVE = Features(negation=False, aggregates=False)
COMPUTED = Features(aggregates=False, symbols=False, disjunctions=False)
FAST = 6
"""Seeds that are the same in every run: few of them do, as `tests.torture` has new ones."""


@pytest.mark.parametrize(
    ("strategy", "features"), [*product(STRATEGIES, (Features(), RECURSIVE, POSITIVE)), ("counting", NO_RECURSION)]
)
def test_facts_are_those_of_the_reference(strategy: str, features: Features) -> None:
    for seed in range(FAST):
        assert failure(seed, strategy, features) is None


GIVING_UP = [{"backward_limit": rows, "backward_chunk": 2} for rows in (1, 20)]
"""At once, or in the middle of a search: then clauses are enumerated and their derivations remembered."""
TAKING_OVER = [{"set_machine_after": rounds, "bfc_plain_after": rounds} for rounds in (0, 1)]
BETWEEN_ROUNDS = {"bfc_plain_after": 0, "work_between_checks": 1}
"""Where limits are looked at between rounds there is no block at which the machine has left off."""


@pytest.mark.parametrize("features", [COMPUTED, RECURSIVE], ids=["arithmetic", "recursion and negation"])
@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        *product(("bf", "bfc", "dred"), GIVING_UP),
        *product(("bf", "bfc", "dred", "dredc"), TAKING_OVER),
        ("bfc", BETWEEN_ROUNDS),
    ],
    ids=str,
)
def test_other_ways_give_the_same_facts(strategy: str, settings: dict[str, float], features: Features) -> None:
    with forced(**settings):
        for seed in range(FAST):
            assert failure(seed, strategy, features) is None


def test_plain_rounds_end_where_something_may_be_proved() -> None:
    """In these cases a derivation of a questioned fact needs one that has not been checked, or a fact has support."""
    with forced(bfc_plain_after=0):
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
