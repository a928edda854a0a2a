"""Answers do not depend on the settings: random programs and updates with each of them at its extremes, beside the
reference."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import get_type_hints

import pytest

from elastalog.settings import Settings
from tests.forcing import ELSEWHERE, EXTREMES, THREADS, drawn, forced
from tests.generators.construction import EVERYTHING
from tests.generators.seeded import seeded_case
from tests.generators.strata import large_case
from tests.poisoning import poisoned
from tests.torture.comparing import Comparison, Lineup

WAYS = Lineup(
    (
        {"strategy": "elastic"},
        {"strategy": "elastic", "levels": "global", "jobs": 2},
        {"strategy": "bfc"},
        {"strategy": "dredc"},
        {"strategy": "dense"},
    )
)


def test_every_setting_is_covered() -> None:
    assert get_type_hints(Settings).keys() == EXTREMES.keys() | ELSEWHERE.keys()
    assert not EXTREMES.keys() & ELSEWHERE.keys()


NAMES = sorted(EXTREMES)
GROUPS = [NAMES[number::18] for number in range(18)]
"""Three settings each, the last two, which force mechanisms of different places."""


@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_settings_at_their_extremes(names: list[str]) -> None:
    """Every extreme of each, though not every one of one setting with every one of the other."""
    seed = GROUPS.index(names)
    number = max(len(EXTREMES[name]) for name in names)
    play(
        seed, seed % 2 == 0, *({name: EXTREMES[name][i % len(EXTREMES[name])] for name in names} for i in range(number))
    )


@pytest.mark.parametrize("seed", range(12))
def test_several_settings_at_extremes(seed: int) -> None:
    with forced(**drawn(Random(seed))), poisoned():
        play(1000 + seed, seed % 2 == 0)


@pytest.mark.parametrize("seed", range(3))
def test_threads_share_everything(seed: int) -> None:
    with forced(**THREADS):
        play(2000 + seed, is_large=True)


def play(seed: int, is_large: bool, *settings: dict[str, float]) -> None:
    """A program and its updates, under strategies that keep different things, with each of some settings. They are the
    same in every run, and small enough for brute force: `tests.torture` has others, and larger ones."""
    features = replace(EVERYTHING, subsumptions=False, choices=seed % 3 == 0)
    program, updates = large_case(seed, 20, 3) if is_large else seeded_case(seed, features, most_updates=3)
    explicit = program.explicit
    played: list[tuple[dict[str, float], Comparison]] = []
    for update in [None, *updates]:
        if update is not None:
            explicit = update.apply_to(explicit)
        for number, values in enumerate(settings or ({},)):
            with forced(**values):
                if update is None:
                    first = played[0][1] if played else None
                    played.append((values, Comparison(program.text, program.facts, WAYS.always, first)))
                else:
                    played[number][1].advance(update)
                assert played[number][1].judge(explicit, seconds=60), "no epoch goes unjudged"
    for _, compared in played:
        compared.close()
