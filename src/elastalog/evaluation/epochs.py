"""Epochs: the materialisation of a program and its updates, each a transaction.

Between epochs the state is exactly the fixpoint of the rules over the explicit facts. An update that fails for whatever
reason (an error in a rule, a limit, Ctrl-C) is rolled back, and the previous epoch stands.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from elastalog.backends.changed_words import impact_of
from elastalog.backends.protocol import Backend, ChangedWords, FactFiles, Matrix
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError
from elastalog.evaluation import needed_groups
from elastalog.evaluation.changes import NO_RULES, RuleTexts, Update
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.rewriting import Rewriting
from elastalog.evaluation.strategies.protocol import REBUILT, Strategy, Work
from elastalog.evaluation.trials import Limits, Trial
from elastalog.late import dataclass
from elastalog.storage.interrupts import uninterrupted

log = logging.getLogger("elastalog.evaluation")

_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Exceptions that nothing a user does can raise in an update."""

_NO_WAY_BACK: tuple[int, Any, Update | None] = 0, None, None
"""Of the last epoch: its number, the shift to the one before, and its update."""

MOST_KEPT = 1_000_000
"""Facts touched by an update of which the previous annotations are kept until the next, for whoever looks back."""


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """What is remembered of an epoch: its number, the update as it took effect, what it changed and cost."""

    epoch: int
    deleted: int
    inserted: int
    ignored: int
    changes: ChangedWords
    work: Work
    seconds: float
    source: str | None = None
    batch: str | int | None = None
    is_repeated: bool = False
    """The batch had been applied before: nothing was done."""
    is_unchanged: bool = False
    """The update changed no explicit fact and no rule: there is no epoch of it, and `epoch` is the one before."""
    update: Update | None = None
    """The explicit facts that went and came; None for the first epoch."""
    rules: RuleTexts = NO_RULES
    """The rules that went and came."""
    time: float = field(default_factory=time.time)
    """When it was complete, in seconds since 1970."""
    facts: int = 0
    """How many facts the first epoch has; 0 for any other."""

    @property
    def impact(self) -> int:
        return self.facts + impact_of(self.changes)


class Epochs:
    """The epochs of one backend under one strategy. Epoch 0 is empty; the bootstrap makes epoch 1. `before_commit` is
    called when an epoch is complete but not yet in force: it may make it durable, or raise to refuse it. `last`: the
    record of the last one made here, even if Ctrl-C was held back until its commit was done."""

    def __init__(self, backend: Backend, strategy: Strategy) -> None:
        self.backend = backend
        self.strategy = strategy
        self.number = 0
        self.last: EpochRecord | None = None
        self._way_back = _NO_WAY_BACK
        self.before_commit: Callable[[EpochRecord, Rewriting | None], None] | None = None

    def bootstrap(self, facts: dict[str, Matrix | FactFiles]) -> EpochRecord:
        """Loads the explicit facts of the first epoch, or takes the files that tasks have written of them, and
        evaluates every stratum. The facts are taken out of the dict: while strata are evaluated nobody keeps them
        twice."""
        began = time.perf_counter()
        here = {name: given for name, given in facts.items() if isinstance(given, np.ndarray)}
        filed = {name: given for name, given in facts.items() if not isinstance(given, np.ndarray)}
        facts.clear()
        inserted = sum(map(len, here.values()))
        self.backend.load(here)
        for relation, files in filed.items():
            elsewhere = self.backend.capabilities.elsewhere
            assert elsewhere is not None
            elsewhere.load(relation, files)
            inserted += sum(file.rows for file in files.base)
        work = needed_groups.bootstrap(self.backend, self.strategy)
        self.number = 1
        seconds = time.perf_counter() - began
        declared = [name for name, stored in self.backend.program.relations.items() if not stored.is_hidden]
        record = EpochRecord(
            1, 0, inserted, 0, {}, work, seconds, facts=sum(self.backend.size(name) for name in declared)
        )
        self.last = record
        return record

    def forecast(self, update: Update) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches directly. Nothing is changed."""
        backend = self.backend
        rewriting = None if update.rules is None else Rewriting.of(update.rules, backend, self.strategy)
        try:
            self._begin(update, rewriting)
            changed = Counter[str]()
            sizes = [{name: len(words) for name, words in side.items()} for side in backend.changes.explicit()]
            for side in sizes:
                changed.update(side)
            is_loss = sum(sizes[0].values()) > sum(sizes[1].values())
            found: list[Forecast] = []
            for stratum in backend.program.strata:
                size = sum(changed[name] for name in (*stratum.relations, *stratum.reads))
                if rewriting is not None and not rewriting.anew.isdisjoint(stratum.relations):
                    found.append(Forecast(stratum.number, stratum.relations, *REBUILT, None, None, None))
                elif size:
                    found.append(self.strategy.forecast(backend, stratum, size, is_loss=is_loss))
            return tuple(found if rewriting is None else rewriting.in_new_program(found))
        finally:
            with uninterrupted():
                backend.rollback()
                if rewriting is not None:
                    rewriting.rollback()

    def apply(self, update: Update, *, heartbeats: bool = True) -> EpochRecord:
        """Applies an update and commits it: the next epoch. Without `heartbeats`, one that changes no explicit fact and
        no rule makes none."""
        began = time.perf_counter()
        backend = self.backend
        if not backend.is_complete:
            raise ElastalogError([_cut_short()])
        change = update.rules
        rewriting = None if change is None else Rewriting.of(change, backend, self.strategy)
        is_committed = False
        try:
            guards = self._begin(update, rewriting)
            deleted, inserted = backend.changes.explicit()
            if not (deleted or inserted or heartbeats) and rewriting is None:
                with uninterrupted():
                    backend.rollback()
                return self._unchanged(update, time.perf_counter() - began)
            needed = backend.program.needed
            work = self.strategy.update(backend) if rewriting is None and not needed else self._evaluate(rewriting)
            if rewriting is not None or needed:
                unnamed = guards.union(needed)
                deleted, inserted = (
                    {name: side[name] for name in side if name not in unnamed} for side in backend.changes.explicit()
                )
            went = sum(map(len, deleted.values())) if deleted else 0
            came = sum(map(len, inserted.values())) if inserted else 0
            ignored = update.size - went - came
            is_all = not ignored and len(deleted) == len(update.deleted) and len(inserted) == len(update.inserted)
            record = EpochRecord(
                self.number + 1, went, came, ignored, backend.changes.facts(), work,
                time.perf_counter() - began, update.source, update.batch,
                update=update if is_all and change is None else Update(deleted, inserted, update.source, update.batch),
                rules=NO_RULES if change is None else RuleTexts(change.removed, change.added),
            )  # fmt: skip
            # Neither memory alone nor the store alone may have the epoch, whenever Ctrl-C comes.
            with uninterrupted():
                if self.before_commit is not None:
                    self.before_commit(record, rewriting)
                shifts = backend.capabilities.shifts
                shift = None
                if shifts is not None and rewriting is None:
                    shift, self._way_back = shifts.back(MOST_KEPT, self._way_back[1]), _NO_WAY_BACK
                backend.commit()
                if rewriting is not None:
                    rewriting.commit()
                self.number += 1
                self._way_back = self.number, shift, record.update
                self.last = record
                is_committed = True
        except BaseException as error:
            if not is_committed:
                with uninterrupted():
                    backend.rollback()
                    if rewriting is not None:
                        rewriting.rollback()
            if isinstance(error, _MISTAKES):
                stands = f"epoch {self.number} stands"
                raise InternalError("an update", f"{type(error).__name__}: {error}; {stands}") from error
            raise
        if log.isEnabledFor(logging.INFO):
            for stratum in work.strata:
                log.info("epoch %d: %s: %s (%s)", self.number, ", ".join(stratum.relations), stratum.how, stratum.why)
        return record

    def preview(self, update: Update) -> ChangedWords:
        """What an update would change. Nothing is changed."""
        if not self.backend.is_complete:
            raise ElastalogError([_cut_short()])
        rewriting = None if update.rules is None else Rewriting.of(update.rules, self.backend, self.strategy)
        try:
            self._begin(update, rewriting)
            self._evaluate(rewriting)
            return self.backend.changes.facts()
        finally:
            with uninterrupted():
                self.backend.rollback()
                if rewriting is not None:
                    rewriting.rollback()

    def _unchanged(self, update: Update, seconds: float) -> EpochRecord:
        return EpochRecord(
            self.number, 0, 0, update.size, {}, Work(), seconds, update.source, update.batch, is_unchanged=True
        )

    def _evaluate(self, rewriting: Rewriting | None) -> Work:
        """Brings the backend to the new fixpoint, not yet committed. Returns what was done."""
        if rewriting is None:
            return needed_groups.update(self.backend, self.strategy)
        return rewriting.end(needed_groups.update(self.backend, self.strategy, rewriting.anew))

    def _begin(self, update: Update, rewriting: Rewriting | None) -> frozenset[str]:
        """Tells the backend what changes. Returns the guards among it."""
        if rewriting is None:
            self.backend.begin(update.deleted, update.inserted)
            return frozenset()
        rewriting.begin()
        self.backend.begin(
            {**update.deleted, **rewriting.deleted}, {**update.inserted, **rewriting.inserted}, rewriting.anew
        )
        return frozenset((*rewriting.deleted, *rewriting.inserted))

    def trial(self, update: Update, limits: Limits | None = None) -> Trial:
        """What an update would do: within the block of a trial it is in force, and the backend answers for that state;
        afterwards all is as before."""
        return Trial(self.backend, self.strategy, update, limits)

    def trial_of_previous(self) -> Trial | None:
        """A trial in which the previous epoch is in force, if the way there is at hand."""
        number, shift, update = self._way_back
        shifts = self.backend.capabilities.shifts
        if number != self.number or shift is None or update is None or shifts is None or not shifts.can_make(shift):
            return None
        return Trial.of_past(self.backend, self.strategy, update, shift)


def _cut_short() -> Diagnostic:
    return Diagnostic(
        "E0615",
        "the facts cannot be kept up to date: `.limitsize` has cut their evaluation short",
        help="remove the `.limitsize`, or raise it above the size of the relation",
    )
