"""Questions to a service, at any epoch that is kept: pages of facts and of answers, and every other question to a
session, within a quota of time and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, Unpack

from elastalog.analysis.program import Value
from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.diagnostics.quota import Quota, Stopped, time_left, within
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord
from elastalog.relations.schema import Schema
from elastalog.session import Session
from elastalog.session.questions import Statistics, without_doubt
from elastalog.storage.errors import epoch_unknown
from elastalog.web import rules
from elastalog.web.calls import T, Worker, asks
from elastalog.web.feed import Event
from elastalog.web.paging import Page, Pager, Wanted
from elastalog.web.replicas import Earlier, Replicas
from elastalog.web.settings import Limits

Moment: TypeAlias = int | datetime | None
"""An epoch, by its number or by a time at which it was the current one; None: the last one."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of an update: the `record` of the epoch (`is_repeated`: the update was known already; `is_unchanged`:
    there was nothing to do), and its `changes`."""

    record: EpochRecord
    changes: Changes

    @property
    def epoch(self) -> int:
        return self.record.epoch


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation at an epoch. `inserted` and `deleted`: how many facts this epoch changed, None where that is unknown.
    `rules`: how many derive it. `is_input`, `is_output`: declared with `.input` or `.output`."""

    schema: Schema
    facts: int
    inserted: int | None
    deleted: int | None
    rules: int
    is_input: bool
    is_output: bool

    @property
    def name(self) -> str:
        return self.schema.name

    @staticmethod
    def all_of(session: Session, last: EpochRecord | None) -> tuple[RelationSummary, ...]:
        """The summary of every declared relation; `last` is the record of the epoch, if it is known."""
        checked = session.program.checked
        rules = dict.fromkeys(checked.relations, 0)
        for rule in checked.rules:
            rules[rule.head.relation] += 1
        found = []
        for name, schema in session.schemas.items():
            changed = None if last is None else last.changes.get(name, ((), ()))
            kinds = {directive.kind for directive in checked.relations[name].directives}
            found.append(
                RelationSummary(
                    schema, len(session[name]), None if changed is None else len(changed[0]),
                    None if changed is None else len(changed[1]), rules[name], "input" in kinds, "output" in kinds,
                )
            )  # fmt: skip
        return tuple(found)


SEARCHED = 0.8
"""The part of the time of a question that its search may take; the rest is for the proofs of what it found."""


class Reading:
    """Readers see the last committed epoch, or an earlier one, and never wait for a commit. Returned proofs and
    absences do not change; to expand one further, ask again with one of its facts. A question that exceeds its time or
    memory raises LimitReached, and its thread is free again."""

    def __init__(self, replicas: Replicas, worker: Worker, earlier: Earlier, limits: Limits) -> None:
        self.replicas = replicas
        self.worker = worker
        self._earlier = earlier
        self.limits = limits
        self._pager = Pager(replicas, limits)

    def question(self, seconds: float | None = None) -> Quota:
        """The quota of a block that answers a question: `seconds`, within the limits of the service."""
        return within(self.time(seconds), self.limits.memory)

    @contextmanager
    def at(self, epoch: Moment = None) -> Iterator[Session]:
        """A block that reads the session of an epoch, only briefly and without changing it. Raises ElastalogError if
        the epoch is not kept."""
        with self.question():
            with self.replicas.reading() as session:
                number = self._earlier_than(session, epoch)
                if number is None:
                    with session.engine.within():
                        yield session
                    return
            with self._earlier.at(number) as earlier, earlier.engine.within():
                yield earlier

    def look(self, question: Callable[[Session], T], epoch: Moment = None) -> T:
        """Answers a brief question that only reads a session."""
        with self.at(epoch) as session:
            return question(session)

    @asks
    def ask(
        self,
        question: Callable[[Session], T],
        epoch: Moment = None,
        seconds: float | None = None,
        *,
        changes: bool = False,
    ) -> T:
        """Answers a question that may take long. `changes`: the question changes facts, and reverts them. A question
        that is stopped in favour of a commit is asked again."""
        with self.question(seconds):
            with self.replicas.reading() as session:
                number = self._earlier_than(session, epoch)
            if number is not None:
                with self._earlier.at(number) as session, session.engine.within():
                    return question(session)
            if not (changes and self.replicas.has_replicas):
                try:
                    with Quota() as own, self.replicas.reading(own) as session, session.engine.within():
                        return question(session)
                except Stopped:
                    if not self.replicas.has_replicas:
                        raise
            with self.replicas.replica() as session, session.engine.within():
                return question(session)

    def _earlier_than(self, session: Session, epoch: Moment) -> int | None:
        """The number of an epoch, None if it is the one of the session."""
        number = session.epoch if epoch is None else session.engine.epoch_at(epoch)
        if number < 1 and session.engine.store is not None:
            raise epoch_unknown(session.engine.store, number, session.log()[0].epoch, session.epoch)
        return None if number == session.epoch else number

    def require(self, *epochs: int) -> None:
        """Raises ElastalogError for epochs in the future."""
        with self.at() as session:
            for epoch in epochs:
                if epoch > session.epoch:
                    raise epoch_unknown(session.engine.store, epoch, session.log()[0].epoch, session.epoch)

    def time_to_search(self) -> float:
        """How long the search of a question may take."""
        return SEARCHED * self.time()

    def time(self, seconds: float | None = None) -> float:
        """How long the present question may take, if it asks for `seconds`. Raises LimitReached if its time is over."""
        limit = self.limits.seconds
        left = time_left(limit if seconds is None else min(seconds, limit))
        if left <= 0:
            raise LimitReached.of("E0921", seconds=limit)
        return left

    # --- facts -----------------------------------------------------------------------------------------------------

    def check_program(self, text: str) -> tuple[Diagnostic, ...]:
        """Errors, warnings and notes of a whole program that is to take the place of this one."""
        return rules.check_text(text, self.look(lambda session: session.program))

    def relations(self, epoch: Moment = None) -> tuple[tuple[RelationSummary, ...], int]:
        """A summary of every declared relation, and the number of the epoch."""
        with self.at(epoch) as session:
            return RelationSummary.all_of(session, self.replicas.record_of(session.epoch)), session.epoch

    def page(
        self,
        relation: str,
        where: str = "",
        *,
        epoch: Moment = None,
        parameters: Mapping[str, Value] | None = None,
        annotations: bool = False,
        explicit: bool = False,
        **wanted: Unpack[Wanted],
    ) -> Page:
        """A page of the facts of a relation. `where`: literals as in the body of a rule, in which the
        columns are variables, as `from > 10, !edge(from, to)`, with `parameters`. `annotations`: with levels and
        counts, and ordered by `@level` or `@count` if so requested. `explicit`: only explicit facts, in any order."""
        cut = self._pager.cut(**wanted)
        with self.question():
            with self.at(epoch) as session:
                if explicit:
                    return self._pager.answers(session.explicit(relation), session.epoch, cut)
                make = self._pager.page(session, relation, where, cut, parameters or {}, annotations)
            return make()

    @asks
    def search(self, *asked: Any, **options: Any) -> Page:
        """A `page` that has to be filtered or sorted, which may take longer."""
        return self.page(*asked, **options)

    @asks
    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        epoch: Moment = None,
        seconds: float | None = None,
        **wanted: Unpack[Wanted],
    ) -> Page:
        """The answers to a query, with parameters `?name`; see `Session.query`."""
        with self.question(seconds):
            answer, number = self.ask(lambda session: (session.engine.asking(text, parameters), session.epoch), epoch)
            return self._pager.answers(without_doubt(answer()), number, self._pager.cut(**wanted))

    def statistics(self, epoch: Moment = None) -> Statistics:
        """What rules and relations cost."""
        with self.at(epoch) as session:
            found = session.statistics()
        return found if found.rules or epoch is not None else replace(found, rules=self.replicas.rule_costs)

    def changes_since(self, epoch: int) -> Event:
        """The changes of all epochs after one, together."""
        self.require(epoch)

        def changes(session: Session) -> Event:
            rules = session.engine.changed_rules(epoch, session.epoch)
            return Event(epoch, session.epoch, session.changes_since(epoch), rules)

        return self.ask(changes)
