"""What a search is about: goals, the switches that may be flipped, and the state around which others are tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from elastalog.backends.protocol import Backend
from elastalog.debugging.connections import ConnectingProofs
from elastalog.debugging.dependencies import Dependencies
from elastalog.debugging.investigation import Case, limits_for
from elastalog.debugging.sandbox import Goals, Sandbox, Seconds, WordSet
from elastalog.debugging.switches import Switches
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps

RESERVED = 0.3
"""The part of the time that is kept for delta debugging."""

_SHARE_OF_A_TRIAL, _SECONDS_A_FACT = 0.1, 2e-5
LEAST_SECONDS = 1.0
"""What a state, and a derivation graph, may take however little time is given."""


def seconds_a_trial(allowed: float, backend: Backend) -> float:
    """How long a state may take in a search that is allowed this many seconds: several may have no end, and with few
    facts one that has takes no longer."""
    facts = sum(map(backend.stored, backend.program.relations))
    return max(min(_SHARE_OF_A_TRIAL * allowed, _SECONDS_A_FACT * facts), LEAST_SECONDS)


@dataclass(kw_only=True)
class Problem:
    """Which of some `switches` to flip so that goals are reached, in this many seconds from now on. `signs`: how
    relations depend on those of the switches. `base_steps` gives the steps of proofs in the base. `corners`: see
    `Corners`; those that are found are added. `in_full`: states are tried in the whole program."""

    case: Case
    goals: Goals
    switches: Switches
    signs: Dependencies
    base_steps: Callable[[], Steps]
    corners: dict[str, WordSet | None]
    seconds: Seconds
    seconds_allowed: float
    in_full: bool = False

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds_allowed
        self.deadline = self.end - self.seconds_allowed * RESERVED
        self.limits = None if self.in_full else limits_for(self.case, (name for name, _ in self.goals.all))
        epochs = self.case.epochs
        longest = seconds_a_trial(self.seconds_allowed, epochs.backend)
        self.sandbox = Sandbox(epochs, self.switches.known, self.seconds, longest)

        self.connecting = ConnectingProofs(self.case, self.goals)

    def unmet(self) -> tuple[list[WordFact], list[WordFact]]:
        """The goals that the state which is being tried misses."""
        return self.goals.unmet(self.sandbox.are_present(self.goals.all))
