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


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials of a kind: what is counted as one attack, how many are enough, and how many trials a test makes."""

    trial: Trial
    unit: str
    goal: int
    few: int = 4


KINDS: dict[str, Kind] = {
    "language": Kind(inputs.language, "programs", 1_000_000, 12),
    "facts": Kind(inputs.facts, "files", 100_000, 15),
    "diffs": Kind(inputs.diffs, "diffs", 20_000, 150),
    "arguments": Kind(inputs.arguments, "calls", 20_000, 3),
    "differential": Kind(evaluation.differential, "epochs", 90_000),
    "rule changes": Kind(evaluation.rule_changes, "epochs", 7_000),
    "constructs": Kind(constructs, "epochs", 30_000, 1),  # of programs, each under six sessions in the mean
    "computed heads": Kind(computed_heads, "epochs", 100_000, 1),  # of sessions, under nine strategies in turn
    "lattices": Kind(lattices, "epochs", 50_000, 6),  # of sessions, under nine strategies and options in turn
    "tasks": Kind(tasks, "epochs", 5_000, 1),  # of sessions on Spark, under seventeen strategies and options in turn
    "threads": Kind(evaluation.threads, "epochs", 50_000),
    "settings": Kind(evaluation.settings, "epochs", 150_000, 2),
    "strata": Kind(evaluation.strata, "epochs", 50_000, 2),
    "shell": Kind(shell, "scripts", 2_000),
    "interrupts": Kind(evaluation.interrupts, "interrupts", 2_000),
    "kills": Kind(stores.kills, "kills", 1_000, 1),
    "power cuts": Kind(power.power_cuts, "power cuts", 20_000, 1),
    "damage": Kind(stores.damage, "stores", 10_000, 2),
    "full disk": Kind(stores.full_disk, "lives", 500),
    "forks": Kind(stores.forks, "lives", 200),
    "buckets": Kind(buckets, "troubled requests", 5_000, 2),
}


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
        attacks = KINDS[kind].trial(seed)
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
