"""Random programs with everything that the language has, under every strategy that accepts them, epoch by epoch."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from elastalog.evaluation.strategies import STRATEGIES
from tests.engine.judging import LEVEL_KINDS
from tests.generators.construction import EVERYTHING
from tests.generators.seeded import seeded_case
from tests.torture.comparing import Comparison, Lineup

EVERY = Lineup((*({"strategy": name} for name in sorted(STRATEGIES)), {"strategy": "elastic", "levels": "global"}))


def constructs(seed: int) -> int:
    """The number of epochs that were judged, in all sessions: the first one, and one for every update as long as that
    is quick."""
    return followed(seed, EVERY).epochs


def followed(seed: int, lineup: Lineup) -> Comparison:
    """A program through all its epochs."""
    features = replace(EVERYTHING, recursion=seed % 4 != 0, subsumptions=seed % 2 == 0, choices=seed % 3 == 0)
    program, updates = seeded_case(seed, features, most_updates=60, percent=99)
    explicit = program.explicit
    compared = Comparison(program.text, program.facts, lineup.on(jobs=1 + seed % 2).drawn(Random(seed)))
    for epoch, update in enumerate([None, *updates] if compared.runners else []):
        if update is not None:
            compared.advance(update)
            explicit = update.apply_to(explicit)
        # Of levels one kind in turn: brute force takes longer than the engine.
        if not compared.judge(explicit, LEVEL_KINDS[epoch % 2 : epoch % 2 + 1]):
            break
    compared.close()
    return compared
