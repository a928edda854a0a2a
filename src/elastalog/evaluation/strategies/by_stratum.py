"""What the strategies that maintain sets have in common: strata in order, aggregates folded again, all else
maintained."""

from __future__ import annotations

import time
from typing import ClassVar

from elastalog.backends.protocol import Backend
from elastalog.backends.sets import Facts, SetMaintenance, Support
from elastalog.backends.watch import Watch
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.counters import Counters
from elastalog.evaluation.strategies.marking import Marking, Marks
from elastalog.evaluation.strategies.protocol import StratumWork, Work
from elastalog.evaluation.update import Update
from elastalog.planning.logical import LogicalStratum


class MaintainingStrategy:
    """A strategy that says in `maintain` how one stratum is brought to its new fixpoint."""

    name: ClassVar[str]
    is_annotated: ClassVar[bool] = True
    support: ClassVar[Support]

    marks: ClassVar[tuple[Marks, ...]] = (Marks.NONE,)
    """The kinds of look-ahead it offers."""

    is_transitive: ClassVar[bool] = False
    """Whether marks are passed on by marked implicit facts."""

    def __init__(self, watch: Watch, budget: float | None = None) -> None:
        self.watch = watch
        self.marking = Marking(is_transitive=self.is_transitive)

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> Facts:
        """Brings the stratum to its new fixpoint. Returns the facts that were derived or proved meanwhile, for
        look-ahead."""
        raise NotImplementedError

    def announce(self, upcoming: Update, marks: Marks) -> None:
        """Says which update will follow the next one. What it is used for never changes a result."""
        self.marking.announce(marks, upcoming.deleted, upcoming.inserted)

    def check(self, backend: Backend) -> None:
        """Raises if the program is not one for this strategy."""

    def bootstrap(self, backend: Backend) -> Work:
        self.check(backend)
        work = Work()
        for stratum in backend.program.strata:
            began = time.perf_counter()
            derivations = backend.bootstrap(stratum)
            seconds = time.perf_counter() - began
            work.counters.derivations += derivations
            work.strata.append(
                StratumWork(stratum.number, stratum.relations, "bootstrap", "first epoch", derivations, seconds)
            )
        return work

    def update(self, backend: Backend) -> Work:
        work = Work()
        self.marking.begin()
        for stratum in backend.program.strata:
            if backend.is_affected(stratum):
                work.strata.append(self.update_stratum(backend, stratum, work.counters))
            elif self.marking.wants_every_stratum and stratum.aggregate is None:
                unaffected = backend.maintain_sets(stratum)
                self.marking.look(unaffected, {}, work.counters)
                backend.finish_sets(unaffected)
        self.marking.end()
        return work

    def update_stratum(self, backend: Backend, stratum: LogicalStratum, counters: Counters) -> StratumWork:
        began = time.perf_counter()
        before = self.watch.derivations
        if stratum.aggregate is not None:
            backend.refold(stratum)
            how, why = "refold", "an aggregate"
        else:
            maintenance = backend.maintain_sets(stratum)
            applied = self.maintain(maintenance, counters)
            self.marking.look(maintenance, applied, counters)
            backend.finish_sets(maintenance)
            how, why = "update", self.name
        derivations = self.watch.derivations - before
        counters.derivations += derivations
        return StratumWork(stratum.number, stratum.relations, how, why, derivations, time.perf_counter() - began)

    def forecast(self, stratum: LogicalStratum, changes: int) -> Forecast:
        return Forecast(stratum.number, stratum.relations, "update", self.name, None, None, None)
