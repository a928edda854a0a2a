"""Epochs: the materialisation of a program and its updates, each a transaction.

Between epochs the state is exactly the fixpoint of the rules over the explicit facts. An update that fails for whatever
reason (an error in a rule, a limit, Ctrl-C) is rolled back, and the previous epoch stands.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from elastalog.backends.protocol import Backend, ChangedWords, Matrix
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.strategies.protocol import Strategy, Work
from elastalog.evaluation.update import Update
from elastalog.storage.interrupts import uninterrupted

log = logging.getLogger("elastalog.evaluation")


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
    batch: str | None = None
    is_repeated: bool = False
    """The batch had been applied before: nothing was done."""
    update: Update | None = None
    """The explicit facts that went and came; None for the first epoch."""

    @property
    def impact(self) -> int:
        return sum(len(inserted) + len(deleted) for inserted, deleted in self.changes.values())


class Epochs:
    """The epochs of one backend under one strategy. Epoch 0 is empty; the bootstrap makes epoch 1. `before_commit` is
    called when an epoch is complete but not yet in force: it may make it durable, or raise to refuse it."""

    def __init__(self, backend: Backend, strategy: Strategy) -> None:
        self.backend = backend
        self.strategy = strategy
        self.number = 0
        self.before_commit: Callable[[EpochRecord], None] | None = None

    def bootstrap(self, facts: Mapping[str, Matrix]) -> EpochRecord:
        """Loads the explicit facts of the first epoch and evaluates every stratum."""
        began = time.perf_counter()
        for relation, words in facts.items():
            self.backend.load(relation, words)
        work = self.strategy.bootstrap(self.backend)
        self.number = 1
        inserted = sum(len(words) for words in facts.values())
        return EpochRecord(1, 0, inserted, 0, {}, work, time.perf_counter() - began)

    def forecast(self, update: Update) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches directly. Nothing is changed."""
        backend = self.backend
        try:
            backend.begin(update.deleted, update.inserted)
            changed = Counter[str]()
            for side in backend.explicit_changes():
                changed.update({name: len(words) for name, words in side.items()})
            sizes = (
                (stratum, sum(changed[name] for name in (*stratum.relations, *stratum.reads)))
                for stratum in backend.program.strata
            )
            return tuple(self.strategy.forecast(stratum, size) for stratum, size in sizes if size)
        finally:
            backend.rollback()

    def apply(self, update: Update) -> EpochRecord:
        """Applies an update and commits it: the next epoch."""
        began = time.perf_counter()
        backend = self.backend
        if not backend.is_complete:
            raise ElastalogError([_cut_short()])
        is_committed = False
        try:
            deleted, inserted = backend.begin(update.deleted, update.inserted)
            work = self.strategy.update(backend)
            work.counters.derivations = work.derivations
            changes = backend.changes()
            seconds = time.perf_counter() - began
            record = EpochRecord(
                self.number + 1, deleted, inserted, update.size - deleted - inserted, changes, work, seconds,
                update.source, update.batch, update=Update(*backend.explicit_changes(), update.source, update.batch),
            )  # fmt: skip
            # Neither memory alone nor the store alone may have the epoch, whenever Ctrl-C comes.
            with uninterrupted():
                if self.before_commit is not None:
                    self.before_commit(record)
                backend.commit()
                self.number += 1
                is_committed = True
        except BaseException:
            if not is_committed:
                backend.rollback()
            raise
        if log.isEnabledFor(logging.INFO):
            for stratum in work.strata:
                log.info("epoch %d: %s: %s (%s)", self.number, ", ".join(stratum.relations), stratum.how, stratum.why)
        return record

    @contextmanager
    def trial(self, update: Update) -> Iterator[ChangedWords]:
        """What an update would do: within the block it is in force, and the backend answers for that state; afterwards
        all is as before. Yields what it changed, hidden relations included. No epoch is made, nothing is recorded or
        stored.

        The update is committed and then undone by its inverse: a commit costs little, all questions can be asked of the
        state as of any epoch, and the inverse leads back to the very same state, because what a strategy keeps for a
        state does not depend on the way there."""
        undo: list[Update] = []
        try:
            yield self._try(update, undo)
        finally:
            if undo:
                self._undo(undo[0])

    def _try(self, update: Update, undo: list[Update]) -> ChangedWords:
        """Applies an update; what undoes it is added to `undo` once it is in force."""
        backend = self.backend
        try:
            backend.begin(update.deleted, update.inserted)
            deleted, inserted = backend.explicit_changes()
            self.strategy.update(backend)
            changes = backend.changes(with_hidden=True)
            with uninterrupted():
                backend.commit()
                undo.append(Update(inserted, deleted))
        except BaseException:
            if not undo:
                backend.rollback()
            raise
        return changes

    def _undo(self, inverse: Update) -> None:
        """Neither Ctrl-C nor a limit of the user may leave a state that is no epoch."""
        watch = self.backend.watch
        limits = watch.deadline, watch.memory
        watch.deadline = watch.memory = None
        try:
            with uninterrupted():
                self._try(inverse, [])
        finally:
            watch.deadline, watch.memory = limits


def _cut_short() -> Diagnostic:
    return Diagnostic(
        "E0615",
        "the facts cannot be kept up to date: `.limitsize` has cut their evaluation short",
        help="remove the `.limitsize`, or raise it above the size of the relation",
    )
