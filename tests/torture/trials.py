"""The kinds of trials, and how many of each are made."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.torture import evaluation, inputs, power, stores
from tests.torture.buckets import buckets
from tests.torture.computed_heads import computed_heads
from tests.torture.constructs import constructs
from tests.torture.lattices import lattices
from tests.torture.shells import shell
from tests.torture.tasks import tasks

Trial = Callable[[int], int | None]
"""Attacks from a seed; raises when a promise is broken. Returns how many attacks there were, if not one."""

KINDS: dict[str, Trial] = {
    "language": inputs.language,
    "facts": inputs.facts,
    "diffs": inputs.diffs,
    "arguments": inputs.arguments,
    "differential": evaluation.differential,
    "rule changes": evaluation.rule_changes,
    "constructs": constructs,
    "computed heads": computed_heads,
    "lattices": lattices,
    "tasks": tasks,
    "threads": evaluation.threads,
    "settings": evaluation.settings,
    "strata": evaluation.strata,
    "shell": shell,
    "interrupts": evaluation.interrupts,
    "kills": stores.kills,
    "power cuts": power.power_cuts,
    "damage": stores.damage,
    "full disk": stores.full_disk,
    "forks": stores.forks,
    "buckets": buckets,
}

UNITS = {
    "language": "programs",
    "facts": "files",
    "diffs": "diffs",
    "arguments": "calls",
    "differential": "epochs",
    "rule changes": "epochs",
    "constructs": "epochs",
    "computed heads": "epochs",
    "lattices": "epochs",
    "tasks": "epochs",
    "threads": "epochs",
    "settings": "epochs",
    "strata": "epochs",
    "shell": "scripts",
    "interrupts": "interrupts",
    "kills": "kills",
    "power cuts": "power cuts",
    "damage": "stores",
    "full disk": "lives",
    "forks": "lives",
    "buckets": "troubled requests",
}
"""What is counted as one attack."""


@dataclass(slots=True)
class Tally:
    """What trials of one kind came to: how many, with how many attacks, how long the longest took, and the seeds of
    those that failed."""

    trials: int = 0
    attacks: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)


def attempt(kind: str, seed: int, tally: Tally) -> None:
    """One trial, added to a tally."""
    began = time.perf_counter()
    try:
        attacks = KINDS[kind](seed)
        tally.attacks += 1 if attacks is None else attacks
    except Exception:
        tally.failed[seed] = traceback.format_exc()
        print(f"{kind}, seed {seed} failed", flush=True)
    took = time.perf_counter() - began
    tally.trials += 1
    tally.seconds += took
    tally.longest = max(tally.longest, took)


def attack(kinds: Sequence[str], first_seed: int, seconds: float, most: int | None = None) -> dict[str, Tally]:
    """Makes trials of every kind, each for an equal share of the time, at least one."""
    tallies = {kind: Tally() for kind in kinds}
    for kind, tally in tallies.items():
        while tally.trials == 0 or (tally.seconds < seconds / len(kinds) and tally.trials != most):
            attempt(kind, first_seed + tally.trials, tally)
    return tallies
