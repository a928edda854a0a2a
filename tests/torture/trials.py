"""The kinds of trials, and how many of each are made."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.torture import evaluation, inputs, stores
from tests.torture.computed_heads import computed_heads
from tests.torture.constructs import constructs

Trial = Callable[[int], int | None]
"""One attack from a seed; raises when a promise is broken. It may say how many epochs it compared."""

KINDS: dict[str, Trial] = {
    "language": inputs.language,
    "facts": inputs.facts,
    "diffs": inputs.diffs,
    "arguments": inputs.arguments,
    "differential": evaluation.differential,
    "constructs": constructs,
    "computed heads": computed_heads,
    "interrupts": evaluation.interrupts,
    "kills": stores.kills,
    "damage": stores.damage,
    "full disk": stores.full_disk,
    "forks": stores.forks,
}


@dataclass(slots=True)
class Tally:
    """What trials of one kind came to: how many, how many epochs they compared, how long the longest took, and the
    seeds of those that failed."""

    trials: int = 0
    epochs: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)


def attack(
    kinds: Sequence[str], first_seed: int, seconds: float, most: int | None = None, most_epochs: int | None = None
) -> dict[str, Tally]:
    """Makes trials of every kind, each for an equal share of the time, at least one; no more than `most`, and none
    after `most_epochs` were compared."""
    tallies = {kind: Tally() for kind in kinds}
    for kind, tally in tallies.items():
        while tally.trials == 0 or (
            tally.seconds < seconds / len(kinds)
            and tally.trials != most
            and (most_epochs is None or tally.epochs < most_epochs)
        ):
            seed = first_seed + tally.trials
            began = time.perf_counter()
            try:
                tally.epochs += KINDS[kind](seed) or 0
            except Exception:
                tally.failed[seed] = traceback.format_exc()
                print(f"{kind}, seed {seed} failed", flush=True)
            took = time.perf_counter() - began
            tally.trials += 1
            tally.seconds += took
            tally.longest = max(tally.longest, took)
    return tallies
