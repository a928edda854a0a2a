"""What is told of the tasks of a stratum: the title of their job, the rounds that they have reached, a line of the log
when they have ended."""

from __future__ import annotations

import logging
import time
from typing import ClassVar

from elastalog.backends.spark.messages import rounds_reached
from elastalog.backends.spark.outcome import Outcome
from elastalog.backends.watch import Watch
from elastalog.planning.decompose import SharePlan

log = logging.getLogger("elastalog.spark")


class StratumNews:
    """News of one job, for whoever watches. `folder`: where its tasks exchange, if they do; `what`: what they do."""

    interval: ClassVar[float] = 1.0
    """Seconds between two looks at the folder, which may be far away."""

    def __init__(self, watch: Watch, plan: SharePlan, folder: str, what: str, tasks: int) -> None:
        names = ", ".join(plan.stratum.relations)
        kind = "tasks" if plan.decomposes else "exchanging tasks"
        self.title = f"stratum {plan.stratum.number} ({names}): {what} by {tasks} {kind}"
        self._watch = watch
        self._stratum = plan.stratum.number
        self._folder = None if plan.decomposes else folder
        self._began = self._looked = time.monotonic()
        self._rounds = 0
        watch.tell(self._stratum, 0, 0)

    def look(self) -> None:
        """Called while tasks run: tells the round that they have reached, if it is another."""
        now = time.monotonic()
        if self._folder is None or now - self._looked < self.interval:
            return
        self._looked = now
        self.reached(rounds_reached(self._folder))

    def reached(self, rounds: int) -> None:
        """Tells the round that tasks have reached, if it is another."""
        if rounds > self._rounds:
            self._rounds = rounds
            self._watch.tell(self._stratum, rounds, 0)

    @property
    def seconds(self) -> float:
        """How long the job has taken so far."""
        return time.monotonic() - self._began

    def done(self, outcome: Outcome) -> None:
        """Tells what came of the job."""
        found = sum(file.rows for written in outcome.written.values() for file in written.changes or written.states)
        log.info(
            "%s: %d facts written, %d derivations, %.2f s; %s",
            self.title, found, outcome.derivations, self.seconds, outcome.costs,
        )  # fmt: skip
        self._watch.tell(self._stratum, self._rounds, found)
