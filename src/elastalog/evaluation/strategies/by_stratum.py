"""What strategies have in common: strata in order, aggregates folded again, all else maintained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import ClassVar

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend, Reach
from elastalog.backends.sets import ADDING, NO_MARK, Change, Evaluation, Facts, Mark, SetMaintenance, size, union
from elastalog.backends.watch import Watch
from elastalog.evaluation.changes import Update
from elastalog.evaluation.costs import Budget, CostModel, Forecast, How
from elastalog.evaluation.strategies.look_ahead import Marking, Marks, MarksChoice
from elastalog.evaluation.strategies.protocol import Counters, StratumWork, Work, evaluate_all, rebuilt
from elastalog.planning.logical import LogicalProgram, LogicalStratum


class Strategy:
    """A strategy evaluates every stratum in the first epoch, and brings those that an update affects to their new
    fixpoints; `maintain` says how one stratum is brought there. `update` runs between the backend's `begin` and
    `commit`; it may raise, and the caller rolls back."""

    name: ClassVar[str]
    annotation: ClassVar[Annotation]
    """What facts carry for it, with local levels."""
    how: ClassVar[How] = How.UPDATE
    """What it does to a stratum that an update affects, unless it chooses."""

    marks: ClassVar[tuple[Marks, ...]] = (Marks.NONE,)
    """The kinds of look-ahead it offers."""

    marking_options: ClassVar[Mapping[str, bool]] = {}
    """How it uses look-ahead."""

    is_memoryless: ClassVar[bool] = False
    """Whether `maintain` uses nothing but the stratum it is given, so that it may be called where the facts are."""

    def __init__(self, watch: Watch, budget: Budget = None) -> None:
        self.watch = watch
        self.costs = CostModel(budget)
        """What it has learnt about what updates cost, if that guides it."""
        self._choice: MarksChoice | None = None

    @cached_property
    def marking(self) -> Marking:
        """What it marks for the update after the next one."""
        return Marking(**self.marking_options)

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        """Brings the stratum to its new fixpoint. Facts that it adds get the mark DELAYED, for look-ahead."""
        raise NotImplementedError

    def announce(self, upcoming: Callable[[], Update], marks: Marks) -> None:
        """Announces the update after the next one; it is made when it is looked at. What it is used for never changes a
        result."""
        if marks is Marks.AUTO:
            if Marks.LINKED not in self.marks:
                return
            self._choice = self._choice or MarksChoice()
            marks = self._choice.next()
        self.marking.announce(marks, None if marks is Marks.NONE else upcoming())

    def check(self, program: LogicalProgram) -> None:
        """Raises if the program is not one for this strategy."""

    def bootstrap(self, backend: Backend) -> Work:
        """Evaluates every stratum from the explicit facts."""
        self.check(backend.program)
        return evaluate_all(backend)

    def update(self, backend: Backend) -> Work:
        """Brings every stratum that the update under way affects to its new fixpoint."""
        work = Work()
        self.marking.begin(backend)
        is_marked, is_looking, effort = self.marking.is_known, self.marking.is_looking, self.watch.effort
        counters = work.counters
        for stratum in backend.program.strata:
            reach = backend.changes.reached(stratum)
            if reach is not None:
                work.strata.append(self.update_stratum(backend, stratum, reach, counters))
            elif self.marking.concerns(stratum):
                backend.maintain(stratum, partial(self.look_ahead, counters=counters), is_portable=False)
        self.marking.end()
        if self._choice is not None:
            changes = sum(len(words) for side in backend.changes.explicit() for words in side.values())
            spent = self.watch.effort - effort
            self._choice.observe(changes, spent, is_marked=is_marked, is_looking=is_looking)
        return work

    def look_ahead(self, unaffected: SetMaintenance, counters: Counters) -> None:
        """Marks facts of a stratum that stays as it is."""
        self.marking.look(unaffected, counters)
        unaffected.heads_of_changes(Evaluation.NEW, Change.GIVE)
        self.marking.gather(unaffected, counters)

    def update_stratum(
        self, backend: Backend, stratum: LogicalStratum, reach: Reach, counters: Counters
    ) -> StratumWork:
        began, before = time.perf_counter(), self.watch.derivations
        work = StratumWork(stratum.number, stratum.relations, self.how, self.name, 0, 0.0)
        if reach.must_rebuild:
            work.how, work.reason = rebuilt(backend, stratum)
        elif stratum.is_folded:
            backend.refold(stratum)
            work.how, work.reason = How.REFOLD, "classes" if stratum.aggregate is None else "an aggregate"
        else:
            self.update_rules(backend, stratum, reach.changes, work, counters)
        if work.how in (How.RECOMPUTE, How.SWITCH):
            self.rebuild(backend, stratum, reach.changes, work)
        work.derivations = self.watch.derivations - before
        work.seconds = time.perf_counter() - began
        return work

    def rebuild(self, backend: Backend, stratum: LogicalStratum, changes: int, work: StratumWork) -> None:
        """Evaluates a stratum anew; `work` says what it has cost until now."""
        backend.rebuild(stratum)

    def update_rules(
        self, backend: Backend, stratum: LogicalStratum, changes: int, work: StratumWork, counters: Counters
    ) -> None:
        """Maintains a stratum that is no aggregate, or says in `work` that it is to be evaluated anew."""
        if self.is_memoryless and not (self.marking.is_looking or self.marking.is_known):
            for found in backend.maintain(stratum, partial(_maintain_by, type(self)), is_portable=True):
                counters += found
        else:
            # What it remembers, and look-ahead, are here.
            backend.maintain(stratum, partial(self.bring, counters=counters), is_portable=False)

    def bring(self, maintenance: SetMaintenance, counters: Counters) -> None:
        """Brings a stratum, with rules or without, to its new fixpoint."""
        if maintenance.has_rules:
            self.marking.look(maintenance, counters)
            self.maintain(maintenance, counters)
            self.marking.gather(maintenance, counters)
        else:
            maintenance.mark(maintenance.explicit_losses(), NO_MARK, removed=Mark.PRESENT)
            maintenance.mark(maintenance.explicit_gains(), Mark.PRESENT)

    def forecast(self, backend: Backend, stratum: LogicalStratum, changes: int, *, is_loss: bool) -> Forecast:
        """What it would choose for a stratum that reads `changes` facts that change; most of them go if `is_loss`."""
        return Forecast(stratum.number, stratum.relations, self.how, self.name, None, None)


def _maintain_by(strategy: Callable[[Watch], Strategy], stratum: SetMaintenance) -> Counters:
    """Maintains a stratum, or a share of it, by a strategy without memory."""
    counters = Counters()
    _made(strategy).bring(stratum, counters)
    return counters


@cache
def _made(strategy: Callable[[Watch], Strategy]) -> Strategy:
    return strategy(Watch())


def insert(stratum: SetMaintenance, again: Facts, counters: Counters) -> None:
    """A of the stratum: adds what was found again, what is explicit now, and what follows. Every new derivation is
    counted, if derivations are."""
    given = union(again, stratum.explicit_gains())
    found = union(given, stratum.heads_of_changes(Evaluation.NEW, Change.GIVE))
    counters.insertions -= size(stratum.having(given, NO_MARK, Mark.PRESENT))
    counters.insertions += size(stratum.propagate(found, Evaluation.NEW, Change.GIVE, ADDING))
