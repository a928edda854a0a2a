"""A session: a program, its facts, and everything that follows from them.

This is the front door, and says what each call promises; the parts behind it do the work. What most sessions never ask
is imported when it is asked. A new kind of question or service is a file of its own beside them, and a method here.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.diagnostics.arguments import require_path
from elastalog.folders.addresses import is_address
from elastalog.pipeline.files.policy import FAIL, Policy
from elastalog.program import Program, as_program
from elastalog.relations.display import html_table
from elastalog.session.questions import Questions
from elastalog.session.reading import Reader
from elastalog.session.updating import Updates

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    import numpy as np

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.costs import Forecast
    from elastalog.evaluation.differences import Differences, Verification
    from elastalog.evaluation.epochs import EpochRecord
    from elastalog.evaluation.pending import PendingUpdate
    from elastalog.evaluation.statistics import Statistics
    from elastalog.evaluation.update import RuleTexts, Update
    from elastalog.pipeline.files.policy import Mode, Report
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.fact import Fact
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.session.history import History
    from elastalog.session.initial_facts import Rows
    from elastalog.session.materialisation import Materialisation, Written
    from elastalog.session.services import Listener
    from elastalog.storage.entries import LogEntry
    from elastalog.storage.history import Turn


class Session:
    """A program, its facts, and everything that follows from them. Made by `elastalog.open`."""

    def __init__(
        self,
        materialisation: Materialisation,
        history: History,
        reports: Sequence[Report] = (),
        *,
        heartbeats: bool = False,
        policy: Policy = FAIL,
    ) -> None:
        self._heartbeats = heartbeats
        self._policy = policy
        self._take(materialisation, history)
        self.reports = list(reports)

    def _take(self, materialisation: Materialisation, history: History) -> None:
        """Makes the parts that work on a materialisation."""
        self._materialisation = materialisation
        self._lock = materialisation.lock
        self._backend, self._dictionary = materialisation.backend, materialisation.dictionary
        self._epochs = materialisation.epochs
        self._history = history
        self._reader = Reader(materialisation)
        self._updates = Updates(materialisation, history, self._reader, self._heartbeats, self._policy)
        self._questions = Questions(materialisation, history, self._reader, self._updates)

    # --- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def reading(self) -> AbstractContextManager[None]:
        """A block in which reading files obeys the limits of the session, its time beginning now."""
        return self._materialisation.reading()

    def close(self) -> None:
        """Ends the session: it cannot be updated any more. Its store, if it has one, is free for another writer."""
        with self._lock:
            self._updates.close()
            self._history.close()

    def __repr__(self) -> str:
        with self._lock:
            facts = sum(self._backend.size(name) for name in self.schemas)
        return f"<Session of {self.program.tree.source.name}: epoch {self.epoch}, {facts:,} facts>"

    def _repr_html_(self) -> str:
        with self._lock:
            rows = [(name, str(self.schemas[name]), f"{self._backend.size(name):,}") for name in self.schemas]
        caption = f"{self.program.tree.source.name}: epoch {self.epoch}"
        return html_table(caption, ("relation", "schema", "facts"), rows)

    def exclusively(self) -> AbstractContextManager[object]:
        """A block in which no other thread updates the session: updates and questions of others wait."""
        return self._lock

    def within(self, seconds: float | None) -> AbstractContextManager[None]:
        """A block in which all that is asked and evaluated may take so many seconds together: then the call that is
        under way raises LimitReached, and the session is as it was. No other thread uses the session meanwhile. What
        the session was opened with as `timeout` limits every single call."""
        return self._materialisation.within(seconds)

    # --- twins -----------------------------------------------------------------------------------------------------

    def twin(self) -> Session:
        """A second session of this epoch, with facts of its own in memory, to be read while this one is updated. It is
        not updated itself, it follows."""
        from elastalog.session.following import twin_of

        with self._lock:
            return Session(*twin_of(self._materialisation, self._history))

    def follow(self, update: Update, record: EpochRecord) -> bool:
        """For a twin: does what the other session did, an update and what `commit` returned for it. Returns whether it
        came to the same, which only numbers of `autoinc` and choices can prevent."""
        from elastalog.session.following import follow

        with self._lock:
            return follow(self._materialisation, self._history, update, record)

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The program of the latest epoch."""
        return self._materialisation.program

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas of its relations, by name."""
        return self._materialisation.schemas

    @property
    def epoch(self) -> int:
        """The number of the latest epoch; the bootstrap is epoch 1."""
        return self._materialisation.epoch

    def __getitem__(self, name: str) -> Relation:
        return self._reader.relation(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.schemas)

    def __contains__(self, name: object) -> bool:
        return name in self.schemas

    def query(self, text: str, /, *, parameters: Mapping[str, Value] | None = None, **values: Value) -> Relation:
        """The answers to a query: a pattern such as `path(1, X)`, or literals as in the body of a rule, such as
        `path(?a, X), edge(X, Y), X > 10`. They have a column for each variable, in the order of first appearance; with
        a head, `far(X) :- path(1, X), X > 10`, those of the head. `?a` is a parameter, whose value is given as `a=1`
        or in `parameters`."""
        return self._reader.query(text, {**(parameters or {}), **values})

    def asking(
        self, text: str, parameters: Mapping[str, Value] | None = None, *, time_limit: float | None = None
    ) -> Callable[[], Relation]:
        """What answers a query over the facts of this epoch, called when it suits, in any thread: updates and other
        questions do not wait for it, and it does not see them. After `time_limit` seconds from now it gives up."""
        return self._reader.asking(text, parameters or {}, time_limit)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation: those that were given, whether or not they also follow from rules."""
        return self._reader.explicit(name)

    def statistics(self) -> Statistics:
        """What rules and relations cost: time and derivations of the last bootstrap, facts and memory now."""
        return self._reader.statistics()

    def fact(self, written: Written) -> tuple[str, tuple[Value, ...]]:
        """A fact, from text (`path(1,4)`) or from relation and values, checked against the declarations. Its values are
        those that facts have: plain numbers and texts, whatever was given."""
        relation, values = self._materialisation.fact(written)
        return relation, values

    # --- updating --------------------------------------------------------------------------------------------------

    def update(
        self, source: str | None = None, batch: str | int | None = None, *, bad_rows: Mode | None = None
    ) -> PendingUpdate:
        """An update to fill, as a context manager: it is committed on leaving, or dropped if an exception passes. An
        update that carries a batch that its source has sent before does nothing; one that changes neither explicit
        facts nor rules makes no epoch, unless the session keeps heartbeats. `bad_rows`: what happens to rows that are
        no facts, as the session says unless given; `reports` of the update tell what was let pass."""
        return self._updates.begin(source, batch, bad_rows)

    def apply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file, and returns what it changed.
        `bad_rows` as for `update`; the `reports` of the changes tell what was let pass."""
        return self._updates.apply(inserted, deleted, source=source, batch=batch, bad_rows=bad_rows)

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
        return self._updates.change_rules(added, removed, source=source, batch=batch)

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
        return self._updates.forecast(inserted, deleted, added=added, removed=removed)

    def upgrade(
        self,
        program: str | os.PathLike[str] | Program,
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Goes over to another program (a path, a text, or a `Program`): the difference of the two, in rules,
        declarations and facts of the text, is one update. Relations that the other program does not declare stay. With
        `preview`, only what it would change is told."""
        after = as_program(program)
        if preview:
            return self._updates.preview_upgrade(after)
        return self._updates.upgrade(after, source=source, batch=batch)

    def preview(
        self,
        inserted: Mapping[str, Rows] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> Changes:
        """What an update would change: it is done and taken back, and no epoch is made. Facts are given as to `apply`,
        rules as to `change_rules`; or, instead of all, an update that has not been committed."""
        return self._updates.preview(inserted, deleted, added=added, removed=removed)

    async def aapply(
        self,
        inserted: Mapping[str, Rows] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | None = None,
        *,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """`apply` for programs with an event loop: it is done in another thread, and the loop goes on."""
        import asyncio

        applied = partial(self.apply, inserted, deleted, source=source, batch=batch, bad_rows=bad_rows)
        return await asyncio.to_thread(applied)

    def on_commit(self, function: Listener) -> Listener:
        """Calls a function with the `Changes` of every epoch from now on, when it is durable, in the thread that made
        it. What goes wrong in it is logged. Returns the function, so that this can be a decorator."""
        return self._updates.listeners.add(function)

    def announce(self, upcoming: PendingUpdate, marks: str = "eager") -> None:
        """Says which update will follow the next one, so that the next one can prepare for it. `marks`: `eager` or
        `linked`, for dred, bf and bfc, or `auto`: linked ones where they pay, none under other strategies. Results
        never depend on it, nor on whether that update comes."""
        self._updates.announce(upcoming, marks)

    def prepare(self) -> None:
        """Plans updates and makes the indexes that they need now, instead of when the first update needs them."""
        self._updates.prepare()

    def encode(self, name: str, rows: Rows) -> np.ndarray:
        """Facts of a relation as words."""
        return self._materialisation.encode(name, rows)

    def commit(self, update: Update) -> EpochRecord:
        """Applies an update made of words: the next epoch. `update` and `apply` are the ways to make one."""
        return self._updates.commit(update)

    def is_applied(self, source: str | None, batch: str | int | None) -> bool:
        """Whether a batch of a source has been applied before."""
        return self._updates.is_applied(source, batch)

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed, as relations."""
        return self._updates.changes_of(record)

    def uses(self, fact: Written, all: bool = False) -> Iterator[Fact]:  # noqa: A002  # its public name
        """The facts that follow directly from a fact: a rule derives them from it and others. With `all`, those that
        would go if it went and could not be derived any more. Nothing is changed."""
        return self._questions.uses(fact, all)

    # --- explaining ------------------------------------------------------------------------------------------------

    def explain(self, fact: Written, depth: int | None = None) -> Proof:
        """Why a fact holds: its best proof, to a depth (all the way by default), as a tree that can be expanded."""
        return self._questions.explain(fact, depth)

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level."""
        return self._questions.derivations(fact)

    def proofs(self, fact: Written, limit: int = 10) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, found as they are asked for. In none is a fact below itself."""
        return self._questions.proofs(fact, limit)

    def explain_absence(
        self,
        fact: Written,
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
    ) -> Absence:
        """Why a fact does not hold: the derivations of it that fail nearest to success, best first. `rule`, by its
        number in the relation, and `bindings`, values of its variables, restrict the search. With a pattern, such as
        `path(1, X)`: how many facts fit it, and the derivations of others that fail nearest to success, a
        `PatternAbsence`."""
        return self._questions.explain_absence(fact, limit, rule, bindings)

    # --- debugging -------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of what happened between two epochs, that alone shows all faults:
        facts that hold and are unwanted, facts that do not and are missing. After `time_limit` seconds (60) a small
        part that shows them."""
        return self._questions.localise(unwanted, missing, epochs, time_limit, on_progress)

    def suggest(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        rejected: Sequence[Any] = (),
        weights: Mapping[Any, float] | None = None,
        time_limit: float | None = None,
        *,
        epochs: tuple[int, int] | None = None,
        on_progress: Callable[[str], None] | None = None,
        over: str | None = None,
        candidates: Mapping[str, Rows] | Sequence[Any] | None = None,
    ) -> Suggestion:
        """A smallest part of the last update, or of what happened between two epochs, whose undoing removes all faults.
        `rejected` elements (`+edge(1,2)`) stay applied; `weights` say how dear it is to undo an element, 1 by
        default. An unwanted fault may be a pattern: all facts that fit it. `over`: `update`, or `facts` for a smallest
        set of changes of explicit facts, whenever they came; by default the update, if there has been one. Over facts,
        unwanted ones are mended by deletions, missing ones by `candidates`: facts to insert (`-edge(1,2)`: to delete),
        or rows by relation; those that why-not finds unless given. Then `minimum` speaks of these candidates."""
        from elastalog.session.repair import Repair

        asked = Repair(unwanted, missing, rejected, weights, time_limit, on_progress, candidates)
        return self._questions.suggest(asked, epochs, over)

    def blame(self, fact: Written) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that did that."""
        return self._questions.blame(fact)

    # --- looking back ----------------------------------------------------------------------------------------------

    def log(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch: of this session, or of the store, back to its retention."""
        return self._history.log()

    def epoch_at(self, moment: int | datetime) -> int:
        """The epoch of a number, or that which was in force at a time (without a time zone: of this machine)."""
        return self._history.epoch_at(moment)

    @property
    def store(self) -> Path | None:
        """The folder that keeps the epochs, if there is one."""
        return None if self._history.store is None else self._history.store.root

    def at(self, epoch: int | datetime) -> Session:
        """A read-only session of an earlier epoch, kept by the store back to its retention: by its number, or by a time
        (without a time zone: of this machine) at which it was in force."""
        return Session(*self._history.at(epoch))

    def changes_since(self, epoch: int) -> Changes:
        """What the epochs after one have changed together: facts that came and went again are left out."""
        return self._updates.changes_since(epoch)

    def refresh(self) -> bool:
        """Follows a store that another process writes: a session opened with `read_only=True` goes on to the latest
        epoch. Returns whether there was a later one. Relations and answers taken before stay as they are."""
        with self._lock:
            later = self._history.later()
            if later is None:
                return False
            self._take(*later)
        return True

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the store, with all epochs that it keeps, into a folder that is not there or is empty, while work goes
        on. Returns the epoch of the copy."""
        require_path("a copy of a store is a folder", path, "give its path")
        if is_address(path):
            from elastalog.storage.objects.copying import copied_to

            return copied_to(str(path), self._history.back_up)
        return self._history.back_up(Path(path))

    def diff(self, first: int, last: int) -> Differences:
        """What the epochs after one until another did together: facts that came and went, and those that have other
        levels. The other way round when `last` is the earlier one."""
        return self._history.diff(first, last)

    def changed_rules(self, first: int, last: int) -> RuleTexts:
        """The rules that the epochs after one until another removed and added together. The other way round when `last`
        is the earlier one."""
        return self._history.changed_rules(first, last)

    def added_declarations(self, first: int, last: int) -> tuple[str, ...]:
        """What the program of one epoch declares (types, relations, directives) and that of another does not, printed,
        in order. Declarations only ever come, so there is none when `last` is the earlier one."""
        return self._history.added_declarations(first, last)

    def turns(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level, oldest first, as far back as the store
        goes."""
        return self._history.turns(self._materialisation.fact(fact))

    @property
    def recovery(self) -> tuple[Diagnostic, ...]:
        """What opening the store found and repaired after a crash: nothing, as a rule."""
        return self._history.recovery

    def verify(self) -> Verification:
        """Evaluates the program anew over the explicit facts, and compares all facts, levels and counts."""
        from elastalog.session.verifying import verify

        return verify(self._materialisation)
