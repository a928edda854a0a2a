"""Recompute: every affected stratum is evaluated anew. No annotations.

Invariant: after every epoch each relation holds exactly the facts of the fixpoint of its stratum.
"""

from __future__ import annotations

import time
from typing import ClassVar

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend, Reach
from elastalog.evaluation.costs import How
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.protocol import Counters, StratumWork
from elastalog.planning.logical import LogicalStratum


class Recompute(Strategy):
    name: ClassVar[str] = "recompute"
    annotation: ClassVar[Annotation] = Annotation(is_kept=False)
    how: ClassVar[How] = How.RECOMPUTE

    def update_stratum(
        self, backend: Backend, stratum: LogicalStratum, reach: Reach, counters: Counters
    ) -> StratumWork:
        began = time.perf_counter()
        derivations = backend.rebuild(stratum)
        seconds = time.perf_counter() - began
        return StratumWork(stratum.number, stratum.relations, self.how, self.name, derivations, seconds)
