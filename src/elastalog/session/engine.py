"""The parts of a session for programs built on one: encoded facts, updates made of them, locks and limits; and
replicas, which are second sessions of the same epoch in this process, read while the first is updated.

Replicas share program and dictionary, so an encoded update of one is an update of the others.

Observers of a session are told of every commit and every question once it is over. OpenTelemetry spans and the metrics
of a service are made from these calls only.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.rows import are_in
from elastalog.diagnostics.arguments import require_number, require_package
from elastalog.diagnostics.diagnostic import error
from elastalog.evaluation.pending import Epoch, epoch_to_undo
from elastalog.session.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import date
    from pathlib import Path

    from elastalog.analysis.program import Value
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.evaluation.changes import Changes, RuleTexts, Update
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.provenance.fact import Written
    from elastalog.relations.facts import Relation
    from elastalog.session.materialisation import Materialisation, Rows
    from elastalog.session.pending import PendingUpdate
    from elastalog.session.session import Session


class Engine:
    """Low-level access to a session, `db.engine`: for programs built on one, such as a service."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._materialisation = session._materialisation
        self._history = session._history
        self._updates = session._updates

    # --- locks and limits --------------------------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[None]:
        """A block in which reading files obeys the limits of the session, counted from now."""
        return self._materialisation.reading()

    def exclusively(self) -> AbstractContextManager[object]:
        """A block in which no other thread updates the session: updates and questions of others wait."""
        return self._materialisation.lock

    def within(self, seconds: float | None = None, memory: int | None = None) -> AbstractContextManager[None]:
        """A block in which all questions and evaluations together may take this many seconds and allocate this many
        bytes; beyond that, the running call raises LimitReached and the session is unchanged. Other threads wait
        meanwhile. (The `time` of the session's limits applies to each call separately.)"""
        require_number("memory", memory, 0, whole=True)
        return self._materialisation.within(seconds, memory)

    def observe(self, observer: Observer) -> None:
        """Tells an observer of every commit and question from now on, those of replicas included; see `Observer`."""
        self._materialisation.observers.append(observer)

    # --- questions ---------------------------------------------------------------------------------------------------

    def asking(
        self, text: str, parameters: Mapping[str, Value] | None = None, *, time_limit: float | None = None
    ) -> Callable[[], Relation]:
        """A function that answers a query over the facts of this epoch, to be called in any thread: updates and other
        questions do not wait for it, and it does not see them. It gives up `time_limit` seconds from now."""
        return self._session._reader.asking(text, parameters or {}, time_limit)

    def fact(self, written: Written) -> tuple[str, tuple[Value, ...]]:
        """A fact, from text (`path(1,4)`) or from relation and values, checked against the declarations. Its values are
        plain numbers and texts, whatever was given."""
        relation, values = self._materialisation.fact(written)
        return relation, values

    # --- updates made of words ---------------------------------------------------------------------------------------

    def encode(self, name: str, rows: Rows) -> np.ndarray:
        """Encodes facts of a relation."""
        return self._materialisation.encode(name, rows)

    def commit(self, update: Update, committed: Callable[[EpochRecord], None] | None = None) -> EpochRecord:
        """Commits an encoded update as the next epoch; `update` and `apply` of the session make such updates.
        `committed` is called with the record of the epoch as soon as nothing can prevent it any more."""
        return self._updates.commit(update, committed)

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""
        return self._updates.is_applied(source, batch)

    def changes_of(self, record: EpochRecord) -> Changes:
        """The changes of an epoch."""
        return self._updates.changes_of(record)

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Announces the update that will follow the next one, so that the next one can prepare for it. `marks`: `eager`
        or `linked`, for dred, bf and bfc, or `auto`: linked marks where they pay, none with other strategies. Results
        never depend on it, nor on whether that update comes."""
        self._updates.announce(upcoming, marks)

    def undoing(self, epoch: Epoch, update: PendingUpdate | None = None) -> PendingUpdate:
        """An update, not yet committed, that undoes what an epoch did to explicit facts and rules: a new one unless one
        is given to be filled. The epoch must be after the first, and known to the session or its store. Declarations
        stay."""
        past, now = self._history.past, self._materialisation.epoch
        number = epoch_to_undo(epoch)
        if not (oldest := past.oldest) < number <= now:
            key = "E1004.none" if oldest == now else "E1004.undo_one" if oldest + 1 == now else "E1004.undo"
            raise error(key, epoch=number, oldest=oldest + 1, now=now)
        update = update or self._session.update()
        update.comes_from(f"undo of epoch {number}")
        for of, rules in past.rules(number - 1):
            if of == number:
                update.take_back(rules)
        for done in past.updates(number - 1, number):
            for change, words in ((update.delete, done.inserted), (update.insert, done.deleted)):
                for name, facts in words.items():
                    schema = self._materialisation.schema(name)
                    change(name, self._session._reader.relation_of(schema, facts))
        return update

    def warm(self) -> None:
        """Plans updates and builds the indexes that they need now, instead of with the first update."""
        backend = self._materialisation.backend
        with self._materialisation.lock:
            for stratum in backend.program.strata:
                backend.prepare(stratum)

    # --- history -----------------------------------------------------------------------------------------------------

    @property
    def store(self) -> Path | None:
        """The folder that keeps the epochs, if there is one; for a store at a URL, the folder of its copy."""
        return None if self._history.store is None else self._history.store.root

    @property
    def recovery(self) -> tuple[Diagnostic, ...]:
        """What was found and repaired when the store was opened after a crash; normally nothing."""
        return () if self._history.store is None else tuple(self._history.store.discarded)

    def epoch_at(self, moment: int | date | str) -> int:
        """The epoch with a number, or the one that was current at a time (see `Session.at`)."""
        return self._history.epoch_at(moment)

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The net rules removed and added by the epochs after one up to another; inverted when `last` is the earlier
        one. Works without a store, too."""
        return self._history.changed_rules(first, last)

    def added_declarations(self, first: int, last: int) -> tuple[str, ...]:
        """What the program of one epoch declares (types, relations, directives) and that of another does not, as text,
        in order. Declarations are never removed, so there are none when `last` is the earlier one."""
        return self._history.added_declarations(first, last)

    # --- replicas ----------------------------------------------------------------------------------------------------

    def twin(self) -> Session:
        """A second session of this epoch, with its own facts in memory, to be read while this one is updated. It is not
        updated itself; it follows."""
        with self._materialisation.lock:
            return type(self._session)(*_twin_of(self._materialisation, self._history))

    def follow(self, update: Update, record: EpochRecord) -> bool:
        """Of a twin: repeats an update of the other session, given with the record that `commit` returned. Returns
        whether the result is the same, which only numbers of `autoinc` and choices can prevent."""
        now, alike = self._materialisation, record.update or update
        with now.lock:
            made = now.epochs.apply(replace(alike, rules=update.rules, source=None, batch=None))
            if update.rules is not None:
                now.follow(update.rules.after)
            if self._history.store is None:
                self._history.add(record, update)
            return _are_alike(made.changes, record.changes)


def _twin_of(now: Materialisation, history: History) -> tuple[Materialisation, History]:
    """A copy of the present epoch, with its own history. Called under the lock of the first."""
    from elastalog.evaluation.stored import keeps_all, unmoved
    from elastalog.storage.store import Store

    other = now.another(now.program, now.dictionary)
    if keeps_all(now.epochs.strategy):
        for name in now.backend.program.relations:
            other.backend.states.restore(name, now.backend.states.of(name).copied(), ())
        other.epochs.number = now.epoch
        other.epochs.strategy.costs.become(now.epochs.strategy.costs)
    else:
        other.bootstrap({name: now.explicit_words(name) for name in now.schemas})
        other.epochs.number = now.epoch
    if history.store is None:
        past = History(other)
        past.records.extend(history.records)
        return other, past
    with unmoved(history.store.root):
        return other, History(other, Store.open(history.store.root, read_only=True, until=now.epoch))


def _are_alike(changes: ChangedWords, others: ChangedWords) -> bool:
    nothing = np.empty((0, 1), np.int32)
    for name in {*changes, *others}:
        for side, other in zip(changes.get(name, (nothing,) * 2), others.get(name, (nothing,) * 2), strict=True):
            if len(side) != len(other):
                return False
            # Pairs of an equivalence depend on no order.
            are_rows = isinstance(side, np.ndarray) and isinstance(other, np.ndarray)
            if are_rows and len(side) and not are_in(np.asarray(side), np.asarray(other)).all():
                return False
    return True


# --- observers -------------------------------------------------------------------------------------------------------


class Observer(Protocol):
    """What `db.engine.observe` takes. It is called under the lock of the session, so it should be quick; its exceptions
    are logged."""

    def committed(self, record: EpochRecord, ended: int) -> None:
        """Called when an epoch is committed, and durable if a store keeps it. `ended`: in nanoseconds since 1970."""

    def asked(self, text: str, began: int, error: BaseException | None) -> None:
        """Called when a question has been answered or has failed; it began at a time in nanoseconds."""


class Spans:
    """Makes spans of commits, of the strata within them, and of questions. Their parent is the span that was current at
    the call."""

    def __init__(self, provider: Any = None) -> None:
        trace = require_package("opentelemetry.trace")
        self._trace = trace
        self._tracer = trace.get_tracer("elastalog", tracer_provider=provider)

    def committed(self, record: EpochRecord, ended: int) -> None:
        # The strata are one after the other, up to when the epoch was complete; then it is made durable.
        complete = int(record.time * 1e9)
        began = complete - int(record.seconds * 1e9)
        strata = record.work.strata
        attributes: dict[str, int | str] = {
            "elastalog.epoch": record.epoch,
            "elastalog.inserted": record.inserted,
            "elastalog.deleted": record.deleted,
            "elastalog.impact": record.impact,
        }
        if record.source is not None:
            attributes["elastalog.source"] = record.source
        span = self._tracer.start_span("elastalog.commit", start_time=began, attributes=attributes)
        within = self._trace.set_span_in_context(span)
        at = began
        for stratum in strata:
            told = {
                "elastalog.stratum": stratum.stratum,
                "elastalog.relations": stratum.relations,
                "elastalog.how": stratum.how,
                "elastalog.why": stratum.why,
                "elastalog.derivations": stratum.derivations,
            }
            one = self._tracer.start_span("elastalog.stratum", within, start_time=at, attributes=told)
            at += int(stratum.seconds * 1e9)
            one.end(at)
        span.end(max(ended, at))

    def asked(self, text: str, began: int, error: BaseException | None) -> None:
        span = self._tracer.start_span("elastalog.question", start_time=began, attributes={"elastalog.asked": text})
        if error is not None:
            span.record_exception(error)
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, type(error).__name__))
        span.end(time.time_ns())


def instrument(db: Session, tracer_provider: Any = None) -> Session:
    """Makes a session emit OpenTelemetry spans for its commits, the strata within them, and its questions, with the
    given provider or the global one. Needs `pip install elastalog[otel]`. Returns the session."""
    db.engine.observe(Spans(tracer_provider))
    return db
