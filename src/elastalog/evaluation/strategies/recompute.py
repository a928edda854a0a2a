"""Recompute: every affected stratum is evaluated anew. No annotations.

Invariant: after every epoch each relation holds exactly the facts of the fixpoint of its stratum.
"""

from __future__ import annotations

import time
from typing import ClassVar

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend
from elastalog.evaluation.costs import Forecast, How
from elastalog.evaluation.strategies.protocol import StratumWork, Work, evaluate_all
from elastalog.planning.logical import LogicalStratum


class Recompute:
    name: ClassVar[str] = "recompute"
    annotation: ClassVar[Annotation] = Annotation(is_kept=False)
    costs: ClassVar[None] = None

    def bootstrap(self, backend: Backend) -> Work:
        return evaluate_all(backend)

    def update(self, backend: Backend) -> Work:
        work = Work()
        for stratum, _ in backend.changes.affected():
            began = time.perf_counter()
            derivations = backend.rebuild(stratum)
            seconds = time.perf_counter() - began
            work.strata.append(
                StratumWork(stratum.number, stratum.relations, How.RECOMPUTE, "recompute", derivations, seconds)
            )
        return work

    def forecast(self, backend: Backend, stratum: LogicalStratum, changes: int, *, is_loss: bool) -> Forecast:
        return Forecast(stratum.number, stratum.relations, How.RECOMPUTE, "recompute", None, None)
