"""How a session goes from epoch to epoch."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.watch import memory_as_limit
from elastalog.diagnostics.arguments import require_mapping, require_one_of, require_text, wrong_kind
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.epochs import EpochRecord, Epochs
from elastalog.evaluation.pending import PendingUpdate
from elastalog.evaluation.stored import DurableEpochs
from elastalog.evaluation.strategies import marks_of
from elastalog.evaluation.strategies.by_stratum import MaintainingStrategy
from elastalog.evaluation.strategies.marking import Marks
from elastalog.evaluation.strategies.protocol import Work
from elastalog.evaluation.update import Update
from elastalog.program import Program
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema, schema_named
from elastalog.relations.thread_lock import ThreadLock
from elastalog.relations.words import Dictionary
from elastalog.session.initial_facts import Rows
from elastalog.storage import faults
from elastalog.storage.batches import Batches


class Updates(ABC):
    """The part of a session that changes it."""

    program: Program
    schemas: dict[str, Schema]
    _dictionary: Dictionary
    _backend: KernelBackend
    _epochs: Epochs
    _lock: ThreadLock
    _history: list[EpochRecord]
    _batches: Batches
    _durable: DurableEpochs | None
    _is_read_only: bool
    _is_closed: bool

    @property
    @abstractmethod
    def epoch(self) -> int: ...

    @abstractmethod
    def encode(self, name: str, rows: Any, schemas: Mapping[str, Schema] | None = None) -> np.ndarray: ...

    @abstractmethod
    def _start_clock(self) -> None: ...

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """A block in which reading files obeys the limits of the session."""

    @abstractmethod
    def _follow(self, program: Program) -> None:
        """Everything that depends on the program which the backend has now."""

    def update(self, source: str | None = None, batch: str | int | None = None) -> PendingUpdate:
        """An update to fill, as a context manager: it is committed on leaving, or dropped if an exception passes. An
        update that carries a batch that its source has sent before does nothing."""
        return PendingUpdate(self, source, _batch_id(source, batch))

    def apply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file, and returns what it changed."""
        update = self.update(source, batch)
        if isinstance(inserted, str | os.PathLike):
            update.read(inserted)
            inserted = None
        _fill(update, inserted, deleted)
        return update.commit()

    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Adds and removes rules, as an update: the next epoch is that of the new program. `added`: program text (or
        several), with rules, declarations of new relations, and facts. `removed`: rules by number or text. An update
        that changes facts as well is made with `update` and its `add_rules` and `remove_rules`."""
        update = self.update(source, batch)
        update.remove_rules(removed)
        update.add_rules(added)
        return update.commit()

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Says which update will follow the next one, so that the next one can prepare for it. `marks`: `eager` or
        `linked`, for dred, bf and bfc. Results never depend on it, nor on whether that update comes."""
        strategy = self._epochs.strategy
        require_one_of("marks", marks, tuple(kind.value for kind in Marks))
        if not isinstance(upcoming, PendingUpdate):
            raise wrong_kind("what is announced is an update", upcoming, "make one with `db.update()`, and fill it")
        if Marks(marks) not in marks_of(strategy):
            advice = "`eager` and `linked` marks are for dred, bf and bfc"
            raise ElastalogError([Diagnostic("E0903", f"strategy `{strategy.name}` has no {marks} marks", help=advice)])
        if isinstance(strategy, MaintainingStrategy):
            strategy.announce(upcoming.as_update(), Marks(marks))

    def prepare(self) -> None:
        """Plans updates and makes the indexes that they need now, instead of when the first update needs them."""
        with self._lock:
            for stratum in self._backend.program.strata:
                self._backend.prepare(stratum)

    def forecast(
        self,
        inserted: Mapping[str, Rows] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update, by the strata that would be affected first: those whose rules
        change, or that read a changed relation or hold one. Strata further up depend on what these change. Facts are
        given as to `apply`, rules as to `change_rules`; or, instead of all, an update that has not been committed."""
        if isinstance(inserted, PendingUpdate):
            update = inserted
        else:
            update = self.update()
            if removed != ():
                update.remove_rules(removed)
            if added != "":
                update.add_rules(added)
            _fill(update, inserted, deleted)
        with self._lock:
            return self._epochs.forecast(update.as_update())

    def exclusively(self) -> AbstractContextManager[object]:
        """A block in which no other thread updates the session: updates and questions of others wait."""
        return self._lock

    def commit(self, update: Update, committed: Callable[[EpochRecord], None] = lambda record: None) -> EpochRecord:
        """Applies an update made of words: the next epoch. `update` and `apply` are the ways to make one. `committed`
        is called with what is returned, also when Ctrl-C was held back until the commit was done and ends this call."""
        with self._lock:
            if self._is_closed:
                raise faults.closed()
            if self._is_read_only:
                raise faults.read_only("it cannot be updated")
            if self._durable is not None:
                self._durable.store.refuse_elsewhere()
            if (update.source, update.batch) in self._batches:
                record = EpochRecord(
                    self.epoch, 0, 0, update.size, {}, Work(), 0.0, update.source, update.batch, is_repeated=True
                )
                committed(record)
                return record
            if update.rules is not None and update.rules.before is not self.program:
                raise InternalError("commit", "the rules of an update were changed from a program that is gone")
            self._start_clock()
            before = self.epoch
            try:
                with memory_as_limit():
                    record = self._epochs.apply(update)
            finally:
                last = self._epochs.last
                if self.epoch > before and last is not None:
                    self._batches.add(update.source, update.batch)
                    if update.rules is not None:
                        self._follow(update.rules.after)
                    self._history.append(last)
                    if self._durable is not None:
                        del self._history[:-1]  # the store has the others
                    committed(last)
            if self._durable is not None:
                self._durable.after_commit()
            return record

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""
        return (source, _batch_id(source, batch)) in self._batches

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed, as relations."""
        schemas = self.schemas  # those of now, whatever becomes of the rules

        def relation(name: str, words: np.ndarray | None) -> Relation:
            schema = schema_named(schemas, name)
            facts = np.empty((0, schema.arity), np.int32) if words is None else words
            return Relation.of(schema, self._dictionary, facts)

        return Changes(record.changes, relation)


_DELETED, _INSERTED = "what is deleted is given by relation", "what is inserted is given by relation"


def _fill(update: PendingUpdate, inserted: Mapping[str, Rows] | None, deleted: Mapping[str, Rows] | None) -> None:
    for told, rows_of, take in ((_DELETED, deleted, update.delete), (_INSERTED, inserted, update.insert)):
        if rows_of is not None:
            require_mapping(told, rows_of, 'give a mapping, as `{"edge": [(1, 2)]}`')
            for name, rows in rows_of.items():
                take(name, rows)


def _batch_id(source: object, batch: object) -> str | None:
    """How a batch is remembered, once it and its source are what they must be."""
    if source is not None:
        require_text("`source` is a text", source, "give the name of where updates come from")
    if batch is None or isinstance(batch, str):
        return batch
    if isinstance(batch, int):
        return str(batch)
    raise wrong_kind("`batch` is a text or a number", batch, "give what identifies the update in its source")
