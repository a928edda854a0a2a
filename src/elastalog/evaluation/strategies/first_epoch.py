"""The bootstrap of every strategy: each stratum is evaluated from the explicit facts."""

from __future__ import annotations

import time
from collections.abc import Callable

from elastalog.backends.protocol import Backend
from elastalog.evaluation.strategies.protocol import StratumWork, Work
from elastalog.planning.logical import LogicalStratum

Learn = Callable[[LogicalStratum, int, float], None]
"""Takes note of what a stratum cost: derivations and seconds."""


def evaluate_all(backend: Backend, learn: Learn = lambda stratum, derivations, seconds: None) -> Work:
    """Evaluates the strata in order; what each cost is told to `learn`."""
    work = Work()
    for stratum in backend.program.strata:
        began = time.perf_counter()
        derivations = backend.bootstrap(stratum)
        seconds = time.perf_counter() - began
        learn(stratum, derivations, seconds)
        work.strata.append(
            StratumWork(stratum.number, stratum.relations, "bootstrap", "first epoch", derivations, seconds)
        )
    return work
