"""What a service is asked without changing anything: facts, queries, why and why not, history. Of any epoch that is
kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from elastalog.analysis.program import Value
from elastalog.database import Written
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.evaluation.changes import RuleTexts
from elastalog.evaluation.differences import Differences
from elastalog.evaluation.statistics import Statistics
from elastalog.program import Program
from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Proof
from elastalog.relations.schema import Schema
from elastalog.session import Session
from elastalog.storage.entries import LogEntry
from elastalog.storage.history import Turn
from elastalog.web import rules
from elastalog.web.access import Access, Moment
from elastalog.web.answers import RelationSummary
from elastalog.web.calls import asks
from elastalog.web.feed import Event
from elastalog.web.pager import Pager
from elastalog.web.paging import Page

T = TypeVar("T")


class Reading:
    """Readers see the last committed epoch, or an earlier one, and never wait for a commit. Proofs and absences that
    are handed out stay as they are; to go further down, ask again with a fact of theirs."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._limits = access.limits
        self._pager = Pager(access.sides, access.limits)

    def at(self, epoch: Moment = None) -> AbstractContextManager[Session]:
        """A block in which the session of an epoch is read: only read, and only briefly. Raises ElastalogError if the
        epoch is not kept."""
        return self._access.at(epoch)

    def ask(self, question: Callable[[Session], T], epoch: Moment = None) -> T:
        """Asks a session of an epoch what may take longer; a second time, if it was in the way of a commit."""
        return self._access.ask(question, epoch)

    # --- facts -----------------------------------------------------------------------------------------------------

    def program(self, epoch: Moment = None) -> Program:
        """The program of an epoch."""
        with self.at(epoch) as session:
            return session.program

    def check_program(self, text: str) -> tuple[Diagnostic, ...]:
        """Errors, warnings and notes of a whole program that is to take the place of this one."""
        return rules.check_text(text, self.program())

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
            return RelationSummary.all_of(session, self._access.sides.record_of(session.epoch)), session.epoch

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
        `from > 10, !edge(from, to)`, with `parameters`. `order`: columns, also `@level` and `@count`, prefix `-` for
        descending; facts are in no particular order without. `annotations`: with levels and counts. `most`: how
        many rows a page may have, and has without a `limit`, instead of what the limits say."""
        cut = self._pager.cut(offset, limit, order, most)
        with self._access.question():
            with self.at(epoch) as session:
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
        offset: int = 0,
        limit: int | None = None,
        epoch: Moment = None,
        *,
        order: str | Sequence[str] = "",
        seconds: float | None = None,
        most: int | None = None,
    ) -> Page:
        """The answers to a query, with parameters `?name`; see `Session.query`."""
        with self._access.question(seconds):
            answer, number = self.ask(lambda session: (session.engine.asking(text, parameters), session.epoch), epoch)
            return self._pager.answers(answer(), number, self._pager.cut(offset, limit, order, most))

    def statistics(self, epoch: Moment = None) -> Statistics:
        """What rules and relations cost."""
        with self.at(epoch) as session:
            found = session.statistics()
        return found if found.rules or epoch is not None else replace(found, rules=self._access.sides.rule_costs)

    # --- why -------------------------------------------------------------------------------------------------------

    @asks
    def proof(self, fact: Written, depth: int | None = None, epoch: Moment = None) -> Proof:
        """Why a fact holds, to a depth (that of the limits unless given)."""
        return self.ask(lambda session: session.explain(fact, self._limits.depth if depth is None else depth), epoch)

    @asks
    def derivations(self, fact: Written, epoch: Moment = None) -> tuple[Proof, ...]:
        """Every derivation of a fact, as proofs of one level."""
        return self.ask(lambda session: session.derivations(fact), epoch)

    @asks
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
        return self.ask(lambda session: session.why_not(fact, limit, rule=rule, bindings=bindings), epoch)

    @asks
    def turns(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level; needs a store."""
        return self.ask(lambda session: session.history(fact))

    # --- history ---------------------------------------------------------------------------------------------------

    def epochs(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch, oldest first."""
        with self.at() as session:
            return session.log()

    @asks
    def diff(self, first: int, last: int) -> Differences:
        """What the epochs after one until another did together; needs a store."""
        return self.ask(lambda session: session.diff(first, last))

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The rules that went and came from one epoch to another."""
        with self.at() as session:
            return session.engine.changed_rules(first, last)

    def changes_since(self, epoch: int) -> Event:
        """What the epochs after one have changed together."""

        def changes(session: Session) -> Event:
            rules = session.engine.changed_rules(epoch, session.epoch)
            return Event(epoch, session.epoch, session.changes_since(epoch), rules)

        return self.ask(changes)
