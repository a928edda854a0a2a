"""What a service is asked, at any epoch that is kept, without changing anything: pages of facts and answers, and what
else a session can be asked, also what it answers by trying things out. All within a quota."""

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
"""An epoch by its number, or by a time at which it was in force; None: the last one."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What came of an update: `record` says what was done and what it cost (`is_repeated`: it had been done before;
    `is_unchanged`: there was nothing to do), `changes` what the epoch changed."""

    record: EpochRecord
    changes: Changes

    @property
    def epoch(self) -> int:
        return self.record.epoch


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """A relation at an epoch. `inserted` and `deleted`: facts that came and went in this epoch, None where that is not
    at hand. `rules`: how many derive it. `is_input`, `is_output`: declared so."""

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
"""The part of its time that a search may take: the rest is for the proofs of what it found."""


class Reading:
    """Readers see the last committed epoch, or an earlier one, and never wait for a commit. Proofs and absences that
    are handed out stay as they are; to go further down, ask again with a fact of theirs. A question whose time or
    memory is used up gets LimitReached, and its thread is free again."""

    def __init__(self, replicas: Replicas, worker: Worker, earlier: Earlier, limits: Limits) -> None:
        self.replicas = replicas
        self.worker = worker
        self._earlier = earlier
        self.limits = limits
        self._pager = Pager(replicas, limits)

    def question(self, seconds: float | None = None) -> Quota:
        """What a block that answers a question may take: `seconds`, as far as the limits allow."""
        return within(self.time(seconds), self.limits.memory)

    @contextmanager
    def at(self, epoch: Moment = None) -> Iterator[Session]:
        """A block in which the session of an epoch is read: only read, and only briefly. Raises ElastalogError if the
        epoch is not kept."""
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
        """What a session of an epoch has at hand: it is only read, and only briefly."""
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
        """Asks a session of an epoch what may take long. `changes`: the question changes facts, and changes them back.
        It may be asked a second time, if it was in the way of a commit."""
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
        """The number of an epoch, None if it is that of a session."""
        number = session.epoch if epoch is None else session.engine.epoch_at(epoch)
        if number < 1 and session.engine.store is not None:
            raise epoch_unknown(session.engine.store, number, session.log()[0].epoch, session.epoch)
        return None if number == session.epoch else number

    def require(self, *epochs: int) -> None:
        """Raises ElastalogError for an epoch that is still to come."""
        with self.at() as session:
            for epoch in epochs:
                if epoch > session.epoch:
                    raise epoch_unknown(session.engine.store, epoch, session.log()[0].epoch, session.epoch)

    def time_to_search(self) -> float:
        """How long a search may take that is part of a question."""
        return SEARCHED * self.time()

    def time(self, seconds: float | None = None) -> float:
        """How many seconds what is asked now may take, if it wants `seconds`. Raises LimitReached if the time of the
        question that it belongs to is over."""
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
        """Every declared relation: its columns, how many facts it holds, and what the last epoch changed in it; and the
        number of the epoch."""
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
        """Some facts of a relation, those that are wanted. `where`: literals as in the body of a rule, in which the
        columns are variables, as `from > 10, !edge(from, to)`, with `parameters`. `annotations`: with levels and
        counts, which they may be ordered by, too: `@level`, `@count`. `explicit`: only facts that were given, as they
        come."""
        cut = self._pager.cut(**wanted)
        with self.question():
            with self.at(epoch) as session:
                if explicit:
                    return self._pager.answers(session.explicit(relation), session.epoch, cut)
                make = self._pager.page(session, relation, where, cut, parameters or {}, annotations)
            return make()

    @asks
    def search(self, *asked: Any, **options: Any) -> Page:
        """A `page` of what has to be filtered or sorted, which may take longer."""
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
        """What the epochs after one have changed together."""
        self.require(epoch)

        def changes(session: Session) -> Event:
            rules = session.engine.changed_rules(epoch, session.epoch)
            return Event(epoch, session.epoch, session.changes_since(epoch), rules)

        return self.ask(changes)
