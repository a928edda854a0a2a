"""Every way to keep facts gives those of the reference after every epoch, on random programs."""

from __future__ import annotations

from typing import Any

import pytest

from elastalog.evaluation.strategies import STRATEGIES
from tests.forcing import forced
from tests.generators.construction import Features
from tests.generators.seeded import seeded_case
from tests.strategies.running import NO_RECURSION
from tests.torture.comparing import MARKED, Comparison

RECURSIVE = Features(aggregates=False, arithmetic=False, symbols=False)
COMPUTED = Features(aggregates=False, symbols=False, disjunctions=False)
FEATURES = {
    "most": Features(),
    "recursion and negation": RECURSIVE,
    "no negation": Features(negation=False, aggregates=False),
    "no recursion": NO_RECURSION,
    "records": Features(records=True),
    "equivalences": Features(equivalences=True),
    "choices and subsumption": Features(equivalences=True, choices=True, subsumptions=True),
}
WAYS: list[dict[str, Any]] = [
    *({"strategy": name} for name in sorted(STRATEGIES)),
    *({"strategy": "elastic", **options} for options in ({"levels": "global"}, {"jobs": 2}, {"engine": "gpu"})),
    *(way for way in MARKED if way["marks"] != "none"),
]
FAST = 4
"""Seeds that are the same in every run: few of them do, as `tests.torture` has new ones."""


def play(seed: int, features: Features, ways: list[dict[str, Any]], proofs: int = 0) -> None:
    program, updates = seeded_case(seed, features)
    compared = Comparison(program.text, program.facts, ways)
    assert compared.runners
    assert compared.follow(program.explicit, updates, seconds=60), "no epoch goes unjudged"
    compared.prove(proofs)
    compared.close()


@pytest.mark.parametrize("seed", range(FAST))
@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_facts_levels_and_counts_are_those_of_the_reference_and_have_proofs(features: Features, seed: int) -> None:
    play(seed, features, WAYS, proofs=3)


GIVING_UP = [{"backward_limit": rows, "backward_chunk": 2} for rows in (1, 20)]
"""At once, or in the middle of a search: then clauses are enumerated and their derivations remembered."""
TAKING_OVER = [{"bfc_plain_after": rounds} for rounds in (0, 1)]
BETWEEN_ROUNDS = {"bfc_plain_after": 0, "work_between_checks": 1}
"""Where limits are looked at between rounds there is no block at which the machine has left off."""


@pytest.mark.parametrize("features", [COMPUTED, RECURSIVE], ids=["arithmetic", "recursion and negation"])
@pytest.mark.parametrize("settings", [*GIVING_UP, *TAKING_OVER, BETWEEN_ROUNDS], ids=str)
def test_other_ways_give_the_same_facts(settings: dict[str, float], features: Features) -> None:
    with forced(**settings):
        for seed in range(FAST):
            play(seed, features, [{"strategy": name} for name in ("bf", "bfc", "dred", "dredc")])


def test_plain_rounds_end_where_something_may_be_proved() -> None:
    """In these cases a derivation of a questioned fact needs one that has not been checked, or a fact has support."""
    with forced(bfc_plain_after=0):
        for seed in (53, 54, 73):
            play(seed, RECURSIVE, [{"strategy": "bfc"}])
