"""What the strategies that maintain sets have in common: strata in order, aggregates folded again, all else
maintained."""

from __future__ import annotations

import time
from functools import partial
from typing import ClassVar

from elastalog.backends.protocol import Backend
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Mark, SetMaintenance, Support
from elastalog.backends.watch import Watch
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.counters import Counters
from elastalog.evaluation.strategies.first_epoch import evaluate_all
from elastalog.evaluation.strategies.marking import Marking, Marks
from elastalog.evaluation.strategies.protocol import REBUILT, StratumWork, Work
from elastalog.evaluation.update import Update
from elastalog.planning.logical import LogicalProgram, LogicalStratum


class MaintainingStrategy:
    """A strategy that says in `maintain` how one stratum is brought to its new fixpoint."""

    name: ClassVar[str]
    is_annotated: ClassVar[bool] = True
    support: ClassVar[Support]

    marks: ClassVar[tuple[Marks, ...]] = (Marks.NONE,)
    """The kinds of look-ahead it offers."""

    is_memoryless: ClassVar[bool] = False
    """Whether `maintain` uses nothing but the stratum it is given, so that it may be called where the facts are."""

    def __init__(self, watch: Watch, budget: float | None = None) -> None:
        self.watch = watch
        self.marking = self.make_marking()

    def make_marking(self) -> Marking:
        """How it uses look-ahead."""
        return Marking()

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        """Brings the stratum to its new fixpoint. Facts that it adds get the mark DELAYED, for look-ahead."""
        raise NotImplementedError

    def announce(self, upcoming: Update, marks: Marks) -> None:
        """Says which update will follow the next one. What it is used for never changes a result."""
        self.marking.announce(marks, upcoming)

    def check(self, program: LogicalProgram) -> None:
        """Raises if the program is not one for this strategy."""

    def bootstrap(self, backend: Backend) -> Work:
        self.check(backend.program)
        return evaluate_all(backend)

    def update(self, backend: Backend) -> Work:
        work = Work()
        self.marking.begin(backend)
        for stratum in backend.program.strata:
            if backend.is_affected(stratum):
                work.strata.append(self.update_stratum(backend, stratum, work.counters))
            elif self.marking.concerns(stratum):
                unaffected = backend.maintain_sets(stratum)
                self.marking.look(unaffected, work.counters)
                unaffected.heads_of_changes(Evaluation.NEW, Change.GIVE)
                self.marking.gather(unaffected, work.counters)
                backend.finish_sets(unaffected)
        self.marking.end()
        return work

    def update_stratum(self, backend: Backend, stratum: LogicalStratum, counters: Counters) -> StratumWork:
        began = time.perf_counter()
        before = self.watch.derivations
        if backend.must_rebuild(stratum):
            backend.rebuild(stratum)
            how, why = REBUILT
        elif stratum.aggregate is not None:
            backend.refold(stratum)
            how, why = "refold", "an aggregate"
        else:
            self.update_rules(backend, stratum, counters)
            how, why = "update", self.name
        derivations = self.watch.derivations - before
        counters.derivations += derivations
        return StratumWork(stratum.number, stratum.relations, how, why, derivations, time.perf_counter() - began)

    def update_rules(self, backend: Backend, stratum: LogicalStratum, counters: Counters) -> None:
        """Maintains a stratum that is no aggregate."""
        if self._delegated(backend, stratum, counters):
            return
        maintenance = backend.maintain_sets(stratum)
        if maintenance.has_rules:
            self.marking.look(maintenance, counters)
            self.maintain(maintenance, counters)
            self.marking.gather(maintenance, counters)
        else:
            maintenance.mark(maintenance.explicit_losses(), NO_MARK, removed=Mark.PRESENT)
            maintenance.mark(maintenance.explicit_gains(), Mark.PRESENT)
        backend.finish_sets(maintenance)

    def _delegated(self, backend: Backend, stratum: LogicalStratum, counters: Counters) -> bool:
        """Whether the stratum has been maintained where its facts are. Look-ahead needs them here."""
        if not self.is_memoryless or self.marking.is_in_use:
            return False
        outcomes = backend.delegate(stratum, partial(_maintain_by, type(self)))
        for found in outcomes or ():
            counters += found
        return outcomes is not None

    def forecast(self, stratum: LogicalStratum, changes: int) -> Forecast:
        return Forecast(stratum.number, stratum.relations, "update", self.name, None, None, None)


def _maintain_by(strategy: type[MaintainingStrategy], stratum: SetMaintenance) -> Counters:
    """Maintains a stratum, or a share of it, by a strategy without memory."""
    counters = Counters()
    strategy(Watch()).maintain(stratum, counters)
    return counters
