"""A session that many ask and one thread updates.

This is all that the interface over HTTP and the pages know of the engine. Methods may be called from any thread; they
wait for their answers, so that an event loop calls them by `await service.call(service.page, "path")`, which also keeps
the limits. Readers see the last committed epoch and never wait for a commit (see `sides`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from elastalog.analysis.program import Value
from elastalog.debugging.answers import Blame, Localisation, Suggestion
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.costs import Forecast
from elastalog.evaluation.differences import Differences
from elastalog.evaluation.epochs import EpochRecord
from elastalog.evaluation.pending import PendingUpdate
from elastalog.evaluation.statistics import Statistics
from elastalog.evaluation.update import RuleTexts
from elastalog.program import Program
from elastalog.provenance.absence import Absence
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.relations.schema import Schema
from elastalog.session import Session
from elastalog.session.initial_facts import Rows
from elastalog.session.session import Written
from elastalog.storage.entries import LogEntry
from elastalog.storage.history import Turn
from elastalog.web import faults, rules
from elastalog.web.answers import Committed, RelationSummary
from elastalog.web.calls import Calls, works
from elastalog.web.earlier import Earlier
from elastalog.web.feed import Event, Feed
from elastalog.web.keys import Keys
from elastalog.web.limits import Limits
from elastalog.web.metrics import Metrics
from elastalog.web.pager import Pager
from elastalog.web.paging import Page
from elastalog.web.sides import Sides
from elastalog.web.worker import Worker

Asked = ParamSpec("Asked")
T = TypeVar("T")
Moment = int | datetime | None
"""An epoch by its number, or by a time at which it was in force; None: the last one."""

SOURCE = "http"
"""Where updates with a key come from, unless they say."""


class Service:
    """Owns a session from now on: nobody else may update it. Proofs and absences that are handed out stay as they are;
    to go further down, ask again with a fact of theirs."""

    def __init__(self, session: Session, limits: Limits | None = None, *, is_twofold: bool = True) -> None:
        """Not `is_twofold`: in half the memory; readers wait for commits."""
        self.limits = limits or Limits()
        self.metrics_kept = Metrics()
        self._sides = Sides(session, is_twofold=is_twofold)
        self._worker = Worker(self.limits.waiting)
        self._calls = Calls(self.limits)
        self._earlier = Earlier(session.store, self.limits.earlier)
        self._pager = Pager(self._sides, self.limits)
        self._keys = Keys()
        self._last: EpochRecord | None = None
        self.feed = Feed(session.epoch, self._since)
        self.began = time.time()
        self._worker.afterwards(self._sides.prepare)

    def close(self) -> None:
        """Ends after the commit that is under way, and the session with it. Listeners hear nothing more."""
        self.feed.close()
        self._worker.close()
        self._calls.close()
        self._earlier.close()
        self._sides.close()

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a method in another thread, within the limits: raises LimitReached when too many wait, or when it is
        not done in time."""
        return await self._calls.call(function, *asked, **options)

    async def wait(self, function: Callable[[], T]) -> T:
        """The same for a function that calls methods which wait for the one thread that commits."""
        return await self._calls.call(works(function))

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The last committed epoch."""
        return self._sides.epoch

    @contextmanager
    def at(self, epoch: Moment = None) -> Iterator[Session]:
        """A block in which the session of an epoch is read: only read, and only briefly. Raises ElastalogError if the
        epoch is not kept."""
        with self._sides.reading() as session:
            number = session.epoch if epoch is None else session.epoch_at(epoch)
            if number == session.epoch:
                yield session
                return
        with self._earlier.at(number) as earlier:
            yield earlier

    def program(self, epoch: Moment = None) -> Program:
        """The program of an epoch."""
        with self.at(epoch) as session:
            return session.program

    def schemas(self, epoch: Moment = None) -> dict[str, Schema]:
        """The schemas of all relations, by name."""
        with self.at(epoch) as session:
            return dict(session.schemas)

    def relations(self, epoch: Moment = None) -> tuple[RelationSummary, ...]:
        """Every declared relation: its columns, how many facts it holds, and what the last epoch changed in it."""
        return self.relations_at(epoch)[0]

    def relations_at(self, epoch: Moment = None) -> tuple[tuple[RelationSummary, ...], int]:
        """The same, and the epoch."""
        with self.at(epoch) as session:
            last = self._last if self._last is not None and self._last.epoch == session.epoch else None
            return RelationSummary.all_of(session, last), session.epoch

    def require_relations(self, names: Iterable[str]) -> None:
        """Raises ElastalogError if there is no relation of a name."""
        with self.at() as session:
            for name in names:
                session[name]

    def page(
        self,
        relation: str,
        where: str = "",
        order: str | Sequence[str] = "",
        offset: int = 0,
        limit: int | None = None,
        epoch: Moment = None,
        *,
        parameters: Mapping[str, Value] | None = None,
        annotations: bool = False,
        most: int | None = None,
    ) -> Page:
        """Some facts of a relation. `where`: literals as in the body of a rule, in which the columns are variables, as
        `from > 10, !edge(from, to)`, with `parameters`. `order`: columns, also `@level` and `@count`, `-` before those
        that are turned; facts are in no particular order without. `annotations`: with levels and counts. `most`: how
        many rows a page may have, and has without a `limit`, instead of what the limits say."""
        with self.at(epoch) as session:
            cut = self._pager.cut(offset, limit, order, most)
            make = self._pager.page(session, relation, where, cut, parameters or {}, annotations)
        return make()

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        offset: int = 0,
        limit: int | None = None,
        epoch: Moment = None,
        *,
        order: str | Sequence[str] = "",
        seconds: float | None = None,
        most: int | None = None,
    ) -> Page:
        """The answers to a query, with parameters `?name`; see `Session.query`."""
        with self.at(epoch) as session:
            answer = session.asking(text, parameters, time_limit=self._time(seconds))
            number = session.epoch
        return self._pager.answers(answer(), number, self._pager.cut(offset, limit, order, most))

    def statistics(self, epoch: Moment = None) -> Statistics:
        """What rules and relations cost."""
        with self.at(epoch) as session:
            return session.statistics()

    # --- asking why ------------------------------------------------------------------------------------------------

    def proof(self, fact: Written, depth: int | None = None, epoch: Moment = None) -> Proof:
        """Why a fact holds, to a depth (that of the limits unless given)."""
        with self.at(epoch) as session:
            return session.explain(fact, self.limits.depth if depth is None else depth)

    def derivations(self, fact: Written, epoch: Moment = None) -> tuple[Proof, ...]:
        """Every derivation of a fact, as proofs of one level."""
        with self.at(epoch) as session:
            return session.derivations(fact)

    def why_not(
        self,
        fact: Written,
        limit: int = 5,
        epoch: Moment = None,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
    ) -> Absence:
        """Why a fact does not hold."""
        with self.at(epoch) as session:
            return session.explain_absence(fact, limit, rule=rule, bindings=bindings)

    def turns(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level; needs a store."""
        with self.at() as session:
            return session.turns(fact)

    @works
    def uses(self, fact: Written, all: bool = False, seconds: float | None = None) -> tuple[Fact, ...]:  # noqa: A002
        """The facts that follow directly from a fact; with `all`, those that would go with it."""
        if not all:
            with self.at() as session:
                return tuple(session.uses(fact))
        return self._work(lambda session, left: tuple(session.uses(fact, all=True)), seconds)

    # --- what if ---------------------------------------------------------------------------------------------------

    @works
    def preview(
        self,
        inserted: Mapping[str, Rows] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        seconds: float | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
    ) -> Changes:
        """What an update would change; also with rules that come and go."""
        texts, gone = _refused_or(added), list(removed)
        return self._work(lambda session, left: session.preview(inserted, deleted, added=texts, removed=gone), seconds)

    @works
    def forecast(
        self, inserted: Mapping[str, Rows] | None = None, deleted: Mapping[str, Rows] | None = None
    ) -> tuple[Forecast, ...]:
        """What would be chosen for the strata that an update reaches first."""
        return self._work(lambda session, left: session.forecast(inserted, deleted), None)

    def check_program(self, text: str) -> tuple[Diagnostic, ...]:
        """Errors, warnings and notes of a whole program that is to take the place of this one."""
        return rules.check_text(text, self.program())

    @works
    def preview_rules(
        self,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
        *,
        program: str | None = None,
        seconds: float | None = None,
    ) -> Changes:
        """What a change of rules would change; or another program in the place of this one."""
        texts = _refused_or(added)

        def preview(session: Session, left: float | None) -> Changes:
            if program is not None:
                return session.upgrade(rules.read_text(program, session.program), preview=True)
            return session.preview(added=texts, removed=list(removed))

        return self._work(preview, seconds)

    # --- updating --------------------------------------------------------------------------------------------------

    @works
    def apply(
        self,
        inserted: Mapping[str, Rows] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        key: str | None = None,
        source: str | None = None,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
        after: int | None = None,
    ) -> Committed:
        """Makes the next epoch, of facts and of rules `added` and `removed`. An update with a `key` is done once,
        however often it comes, also after a crash if there is a store; `source` says from where. `after`: only if this
        is still the last epoch."""
        texts, gone = _refused_or(added), list(removed)

        def fill(update: PendingUpdate) -> None:
            if after is not None and after != self.epoch:
                raise faults.not_after(after, self.epoch)
            if gone:
                update.remove_rules(gone)
            if texts:
                update.add_rules(texts)
            for rows_of, take in ((deleted, update.delete), (inserted, update.insert)):
                for name, rows in (rows_of or {}).items():
                    take(name, rows)

        return self._commit(fill, key, source, (inserted, deleted, texts, gone))

    @works
    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: Iterable[int | str] = (),
        *,
        program: str | None = None,
        key: str | None = None,
        source: str | None = None,
    ) -> Committed:
        """Adds and removes rules, or puts another program in the place of this one."""
        texts, gone = _refused_or(added), list(removed)

        def fill(update: PendingUpdate) -> None:
            if program is not None:
                update.become(rules.read_text(program, update.program))
                return
            update.remove_rules(gone)
            update.add_rules(texts)

        return self._commit(fill, key, source, (texts, gone, program))

    @works
    def undo(self, suggestion: Suggestion) -> Committed:
        """Undoes what a suggestion names. Raises ElastalogError if there have been other epochs since."""
        from elastalog.session.undoing import fill_undoing

        return self._commit(lambda update: fill_undoing(update, suggestion, self.epoch, self.epochs), None, None, ())

    def _commit(
        self, fill: Callable[[PendingUpdate], None], key: str | None, source: str | None, what: object
    ) -> Committed:
        batch = None if key is None else self._keys.batch(key, what)
        origin = source if source is not None or key is None else SOURCE

        def commit(left: float | None) -> Committed:
            update = self._sides.update(origin, batch)
            fill(update)
            record = self._sides.commit(update, self._committed)
            return Committed(record, self._sides.changes_of(record))

        done = self._worker.do(commit)
        self._worker.afterwards(self._sides.follow)
        return done

    def _committed(self, record: EpochRecord) -> None:
        self._last = record
        self.metrics_kept.epoch(record)
        self.feed.publish(
            Event(
                record.epoch - 1, record.epoch, self._sides.changes_of(record), record.rules, record.time,
                record.source, record.batch,
            )
        )  # fmt: skip

    def _work(self, question: Callable[[Session, float | None], T], seconds: float | None) -> T:
        """Asks what changes facts for a moment."""

        def work(left: float | None) -> T:
            with self._sides.working(left) as session:
                return question(session, left)

        return self._worker.do(work, self._time(seconds))

    def _time(self, seconds: float | None) -> float:
        return self.limits.seconds if seconds is None else min(seconds, self.limits.seconds)

    # --- debugging -------------------------------------------------------------------------------------------------

    @works
    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        seconds: float | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of what happened between two epochs, that shows all faults."""
        return self._work(
            lambda session, left: session.localise(unwanted, missing, epochs=epochs, time_limit=left), seconds
        )

    @works
    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        over: str | None = None,
        seconds: float | None = None,
    ) -> Suggestion:
        """A smallest repair; see `Session.suggest`. `service.undo` applies it."""
        found = self._work(
            lambda session, left: session.suggest(unwanted, missing, rejected, weights, left, epochs=epochs, over=over),
            seconds,
        )
        return replace(found, undo=lambda suggestion: self.undo(suggestion).changes)

    @works
    def blame(self, fact: Written, seconds: float | None = None) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        return self._work(lambda session, left: session.blame(fact), seconds)

    # --- history ---------------------------------------------------------------------------------------------------

    def epochs(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch, oldest first."""
        with self.at() as session:
            return session.log()

    def diff(self, first: int, last: int) -> Differences:
        """What the epochs after one until another did together; needs a store."""
        with self.at() as session:
            return session.diff(first, last)

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The rules that went and came from one epoch to another."""
        with self.at() as session:
            return session.changed_rules(first, last)

    def changes_since(self, epoch: int) -> Event:
        """What the epochs after one have changed together."""
        return self._since(epoch)

    def _since(self, epoch: int) -> Event:
        with self.at() as session:
            changes = session.changes_since(epoch)
            return Event(epoch, session.epoch, changes, session.changed_rules(epoch, session.epoch))

    async def subscribe(self, since: int | None = None, seconds: float | None = None) -> AsyncIterator[Event | None]:
        """Every change from an epoch on (by default from now), without gaps: the `since` of an event is the `epoch` of
        the one before. None comes after so many seconds without news. Ends when the service does."""
        async for event in self.feed.listen(self.epoch if since is None else since, seconds, self.limits.listeners):
            yield event

    # --- metrics ---------------------------------------------------------------------------------------------------

    def metrics(self) -> str:
        """What is counted, in the text format of Prometheus."""
        with self.at() as session:
            facts = {name: float(len(session[name])) for name in session}
            epoch = session.epoch
        return self.metrics_kept.text(
            {
                "elastalog_epoch": epoch,
                "elastalog_facts": facts,
                "elastalog_readers": self._sides.readers,
                "elastalog_questions_waiting": self._calls.waiting,
                "elastalog_writer_waiting": self._worker.waiting,
                "elastalog_listeners": self.feed.listeners,
                "elastalog_uptime_seconds": time.time() - self.began,
            }
        )


def _refused_or(added: str | Iterable[str]) -> list[str]:
    """The texts of rules, if there is nothing in them that must not come over the network."""
    texts = [added] if isinstance(added, str) else list(added)
    rules.refuse_in_rules(texts)
    return [text for text in texts if text.strip()]
