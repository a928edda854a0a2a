"""A session: a program, its facts, and everything that follows from them.

Each method says what it promises; the parts behind it do the work, and what most sessions never use is imported on
first use. Low-level access is in `engine`.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.analysis.pattern import parse_pattern
from elastalog.deprecated import Renamed, warn
from elastalog.diagnostics.arguments import require_one_of, require_place, require_text, stays_here
from elastalog.diagnostics.display import html_table
from elastalog.evaluation.pending import Epoch, require_alone
from elastalog.folders.addresses import is_address
from elastalog.pipeline.files.policy import FAIL, BadRows
from elastalog.program import as_program
from elastalog.provenance.fact import Fact
from elastalog.session.pending import GivenUpdate, PendingUpdate
from elastalog.session.questions import Answerers, Reader, warn_of_terms
from elastalog.session.updating import Updates

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.costs import Forecast
    from elastalog.evaluation.differences import Differences, Verification
    from elastalog.pipeline.files.policy import Mode, Report
    from elastalog.prepared import PreparedQuery
    from elastalog.program import Program
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.fact import Written
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.session.engine import Engine
    from elastalog.session.history import History
    from elastalog.session.materialisation import Materialisation, Rows
    from elastalog.session.questions import Statistics
    from elastalog.session.updating import Listener
    from elastalog.storage.entries import LogEntry
    from elastalog.storage.history import Turn


class Session(Renamed):
    """A program, its facts, and everything that follows from them. Made by `elastalog.open`."""

    def __init__(
        self,
        materialisation: Materialisation,
        history: History,
        reports: Sequence[Report] = (),
        *,
        heartbeats: bool = False,
        policy: BadRows = FAIL,
    ) -> None:
        self._heartbeats = heartbeats
        self._policy = policy
        self._reports = list(reports)
        self._take(materialisation, history)

    def _take(self, materialisation: Materialisation, history: History) -> None:
        """Makes the parts that work on a materialisation."""
        self._materialisation = materialisation
        self._lock = materialisation.lock
        self._backend, self._dictionary = materialisation.backend, materialisation.dictionary
        self._epochs = materialisation.epochs
        self._history = history
        self._reader = Reader(materialisation)
        self._updates = updates = Updates(materialisation, history, self._heartbeats, self._policy)
        self._answerers = Answerers(materialisation, history, partial(_undo, updates, history))

    # --- life --------------------------------------------------------------------------------------------------------

    __reduce__ = stays_here(
        "a session", "open it in the process that uses it; rows, and tables made by `to_arrow`, can be handed on"
    )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session: it cannot be updated any more. Its store, if it has one, is free for another writer."""
        with self._lock:
            self._updates.close()
            self._history.close()

    @property
    def reports(self) -> list[Report]:
        """What was read when the session was opened: rows loaded, invalid and converted, and how the files were
        understood."""
        return self._reports

    @property
    def engine(self) -> Engine:
        """Low-level access for programs built on a session: encoded facts, locks, limits, replicas."""
        from elastalog.session.engine import Engine

        return Engine(self)

    # --- reading -----------------------------------------------------------------------------------------------------

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

    def __repr__(self) -> str:
        with self._lock:
            facts = sum(self._backend.size(name) for name in self.schemas)
        return f"<Session of {self.program.tree.source.name}: epoch {self.epoch}, {facts:,} facts>"

    def _repr_html_(self) -> str:
        with self._lock:
            rows = [(name, str(self.schemas[name]), f"{self._backend.size(name):,}") for name in self.schemas]
        caption = f"{self.program.tree.source.name}: epoch {self.epoch}"
        return html_table(caption, ("relation", "schema", "facts"), rows)

    def __getitem__(self, name: str) -> Relation:
        return self._reader.relation(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.schemas)

    def __contains__(self, name: object) -> bool:
        return name in self.schemas

    def _ipython_key_completions_(self) -> list[str]:
        """What a notebook offers after `db["`."""
        return list(self)

    def query(self, text: str, /, parameters: Mapping[str, Value] | None = None, **values: Value) -> Relation:
        """The answers to a query: a pattern such as `path(1, X)`, or literals as in the body of a rule, such as
        `path(?a, X), edge(X, Y), X > 10`. They have a column for each variable, in the order of first appearance; with
        a head, `far(X) :- path(1, X), X > 10`, the columns of the head. `?a` is a parameter, whose value is given as
        `a=1` or in `parameters`."""
        return self._reader.query(text, {**(parameters or {}), **values})

    def sparql(self, text: str, /) -> Any:
        """The answers to a SPARQL query, over a session made by `elastalog.rdf.load` or one with a relation `triple` of
        three symbols; for ASK, whether there are any."""
        # It builds on sessions, so that it is found by its name.
        return import_module("elastalog.rdf.sparql").sparql(self, text)

    def prepare(self, text: str | None = None, /) -> PreparedQuery:
        """A query with parameters that is asked often: `docs = db.prepare("ok(?user, X)")`, then `docs("ann")` or
        `docs(user="ann")`. One atom without variables is a decision, `ok = db.prepare("ok(?user, ?doc)")`: `ok("ann",
        "plan")` is true or false, `ok("ann", "plan", explain=True)` also says why, or why not, and `ok.many(users,
        docs)` decides many at once. Errors in the text are raised now."""
        if text is None:
            warn("`prepare()` without a query is now `engine.warm()`")
            return self.engine.warm()  # type: ignore[func-returns-value,return-value]
        from elastalog.session.prepared import prepared

        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        return prepared(self, text)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation: those that were given, whether or not rules derive them too."""
        return self._reader.explicit(name)

    def statistics(self) -> Statistics:
        """The costs of rules and relations: time and derivations of the last bootstrap, present facts and memory."""
        return self._reader.statistics()

    # --- explaining --------------------------------------------------------------------------------------------------

    def explain(self, fact: Written, depth: int | None = None) -> Proof:
        """Why a fact holds: its best proof, to a depth (completely by default), as a tree that can be expanded. A
        pattern such as `path(1, _)` stands for the fact that matches it; if several do, the error lists some."""
        with self._materialisation.asking(fact):
            return self._answerers.explanations.proof(self._reader.only(fact), depth)

    def derivations(self, fact: Written) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level."""
        with self._materialisation.asking(fact):
            return self._answerers.explanations.derivations(self._reader.only(fact))

    def proofs(self, fact: Written, limit: int = 10) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, found on demand. No fact occurs below itself."""
        with self._materialisation.asking():
            found = self._answerers.explanations.proofs(self._reader.only(fact), limit)
        return self._one_by_one(found)

    def _one_by_one(self, proofs: Iterator[Proof]) -> Iterator[Proof]:
        """Finds each proof on demand, while no other thread updates."""
        while True:
            with self._materialisation.asking():
                proof = next(proofs, None)
            if proof is None:
                return
            yield proof

    def why_not(
        self,
        fact: Written,
        limit: int = 5,
        *,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
        depth: int = 1,
    ) -> Absence:
        """Why a fact does not hold: the derivations of it that come nearest to success, best first. `rule`, by its
        number in the relation, and `bindings`, values of its variables, restrict the search. With a `depth` of several
        levels, also why their literals fail, and so on. With a pattern such as `path(1, X)`: how many facts match it,
        and the derivations of others that come nearest to success, a `PatternAbsence`."""
        now = self._materialisation
        with now.asking(fact):
            known = self._answerers.explanations
            pattern = parse_pattern(fact, now.program.checked) if isinstance(fact, str) else None
            if pattern is not None and not pattern.is_fact:
                warn_of_terms(pattern.terms, now.dictionary)
                return known.pattern(pattern, str(fact).strip().rstrip("."), limit, rule, bindings, depth)
            wanted = now.fact(fact)
            warn_of_terms(wanted.values, now.dictionary)
            return known.absence(wanted, limit, rule, bindings, depth)

    def uses(self, fact: Written, all: bool = False) -> tuple[Fact, ...]:  # noqa: A002  # its public name
        """The facts that follow directly from a fact: rules derive them from it and others. With `all`, those that
        would disappear with it, because they could not be derived any more. Nothing is changed."""
        with self._materialisation.asking(fact):
            explanations = self._answerers.explanations
            known = explanations.proof(self._reader.only(fact), 0).fact
            if all:
                return tuple(self._gone_with(known))
            return tuple(self._answerers.uses.direct(known, self._reader.ask, explanations.derivations))

    def _gone_with(self, known: Fact) -> list[Fact]:
        from elastalog.provenance.explain import world_without

        derived = partial(self._reader.derived_by, known.relation)
        world = world_without(known, self._materialisation.program, derived)
        deleted = {known.relation: [known.values]}
        without = self._updates.pending(world.inserted, deleted, world.added, world.removed)
        gone = self._updates.preview(without)
        facts = [Fact(name, values) for name, changed in gone.items() for values in changed.deleted]
        return [other for other in facts if str(other) != str(known)]

    # --- debugging ---------------------------------------------------------------------------------------------------

    def localise(
        self,
        unwanted: Sequence[Any] = (),
        missing: Sequence[Any] = (),
        *,
        epochs: tuple[int, int] | None = None,
        time_limit: float | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Localisation:
        """A smallest part of the last update, or of the changes between two epochs, that alone shows all faults: facts
        that hold and are unwanted, facts that do not and are missing. After `time_limit` seconds (60), a small part
        that shows them."""
        from elastalog.debugging.questions import Inquiry
        from elastalog.session.faults import faults_named

        with self._materialisation.asking(unwanted, missing):
            unwanted, missing, _ = faults_named(unwanted, missing, self._materialisation)
            asked = Inquiry(unwanted, missing, time_limit=time_limit, on_progress=on_progress, epochs=epochs)
            return self._answerers.debugger.localise(asked)

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
        """A smallest part of the last update, or of the changes between two epochs, whose undoing removes all faults;
        of several, the one with the fewest side effects that is found in time. `rejected` elements stay as they are:
        facts, patterns, rules. `weights` are the costs of changing elements, 1 by default. An unwanted fault may be a
        pattern: nothing matches it afterwards. `over`: `update`, or `facts` for a smallest set of changes of explicit
        facts, whenever they came; by default the update, if the faults came with it. Over facts, unwanted facts are
        removed by deletions, and missing ones brought about by `candidates`: facts or patterns to insert (`-edge(1,2)`:
        to delete), or rows by relation; by default what why-not finds and what recent epochs deleted. `minimum` then
        refers to these. A pattern to insert stands for what why-not finds that fits it."""
        from elastalog.debugging.questions import Inquiry
        from elastalog.session.candidates import Likely
        from elastalog.session.repair import RepairSearch

        require_one_of("value of `over`", over or "update", ("update", "facts"))
        now = self._materialisation
        with now.asking(unwanted, missing):
            asked = Inquiry(unwanted, missing, rejected, weights, time_limit, on_progress, epochs)
            likely = Likely(self._reader.relation, now.schemas)
            search = (now, self._answerers, likely, self._updates, self._history, over, candidates, asked)
            return RepairSearch(*search).suggestion()

    def blame(self, fact: Written) -> Blame:
        """The epoch in which a fact last appeared or disappeared, and the part of its update that caused it. A pattern
        stands for the only fact that matches it now."""
        with self._materialisation.asking(fact):
            return self._answerers.debugger.blame(self._reader.only(fact, "E0608.never"))

    # --- looking back ------------------------------------------------------------------------------------------------

    def log(self) -> tuple[LogEntry, ...]:
        """The entries of all epochs, of this session or of its store, back to its retention."""
        return self._history.log()

    def changes_since(self, epoch: int) -> Changes:
        """The net changes of all epochs after one."""
        return self._updates.changes_since(epoch)

    def diff(self, first: int, last: int | None = None, *, explicit: bool = False) -> Differences:
        """The net changes from one epoch to another, by default to the latest: facts that came, went, or have other
        levels; `added_rules`, `removed_rules` and `added_declarations` say how the program changed. Inverted if `last`
        is the earlier one. `explicit`: only facts that became explicit or no longer are."""
        last = self.epoch if last is None else last
        found = self._history.diff(first, last)
        return found.among(self._reader.explicit_changes(self._history.past, first, last)) if explicit else found

    def history(self, fact: Written) -> tuple[Turn, ...]:
        """The epochs in which a fact appeared, disappeared or changed its level, oldest first, as far back as the store
        goes: none if it has been as it is since the first epoch, or never was. A pattern stands for the only fact that
        matches it now."""
        with self._materialisation.lock:
            return self._history.history(self._reader.only(fact, "E0608.never"))

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the store, with all epochs that it keeps, into a new or empty folder, while work goes on. Returns the
        epoch of the copy."""
        require_place("a copy of a store is a folder", path, "give its path")
        if is_address(path):
            from elastalog.storage.objects.writing import copied_to

            return copied_to(str(path), self._history.back_up)
        return self._history.back_up(Path(path))

    def verify(self) -> Verification:
        """Recomputes the program over the explicit facts, by joins of sorted arrays instead of indexes and compiled
        rounds, and compares all facts, levels and counts."""
        from elastalog.session.verifying import verify

        return verify(self._materialisation)

    # --- updating ----------------------------------------------------------------------------------------------------

    def update(
        self, source: str | None = None, batch: str | int | None = None, *, bad_rows: Mode | None = None
    ) -> PendingUpdate:
        """An update, as a context manager: committed on leaving the block, dropped if an exception leaves it. With a
        `batch` that its `source` has sent before it does nothing; a different update under the same batch is refused.
        An update that changes neither explicit facts nor rules makes no epoch, unless the session keeps heartbeats.
        `bad_rows`: how to handle invalid rows, by default as the session does; the `reports` of the update say what was
        skipped."""
        return GivenUpdate(self._updates, source, batch, bad_rows)

    def apply(
        self,
        inserted: Mapping[str, Rows] | Sequence[Fact] | str | os.PathLike[str] | None = None,
        deleted: Mapping[str, Rows] | Sequence[Fact] | None = None,
        *,
        undo: Epoch | None = None,
        source: str | None = None,
        batch: str | int | None = None,
        bad_rows: Mode | None = None,
    ) -> Changes:
        """Applies an update, given as rows by relation or as the path of a diff file, and returns what it changed; or,
        instead of these, takes back what an epoch did to explicit facts and rules (`undo`: its number). `bad_rows` as
        for `update`; the `reports` of the changes say what was skipped."""
        if undo is not None:
            require_alone(undo, inserted, deleted)
            return self.engine.undoing(undo, PendingUpdate(self._updates, source, batch)).commit()
        return self._updates.apply(inserted, deleted, source, batch, bad_rows)

    def change_rules(
        self,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Adds and removes rules, as an update: the next epoch is that of the new program. `added`: program text (or
        several), with rules, declarations of new relations, and facts. `removed`: rules by number or text. With
        `preview`, only returns what that would change. To change facts in the same update, use `update` with its
        `add_rules` and `remove_rules`."""
        if preview:
            return self.preview(added=added, removed=removed)
        update = PendingUpdate(self._updates, source, batch)
        update.remove_rules(removed)
        update.add_rules(added)
        return update.commit()

    def upgrade(
        self,
        program: str | os.PathLike[str] | Program,
        *,
        preview: bool = False,
        source: str | None = None,
        batch: str | int | None = None,
    ) -> Changes:
        """Replaces the program with another (a path, a text, or a `Program`): the difference of the two, in rules,
        declarations, directives and facts of the text, is one update. Relations that the new program does not declare
        stay. With `preview`, only returns what that would change."""
        after = as_program(program)
        with self._lock:
            update = PendingUpdate(self._updates, *((None, None) if preview else (source, batch)))
            update.become(after)
            return self._updates.preview(update) if preview else update.commit()

    def preview(
        self,
        inserted: Mapping[str, Rows] | Sequence[Fact] | str | os.PathLike[str] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | Sequence[Fact] | None = None,
        *,
        undo: Epoch | None = None,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> Changes:
        """What an update would change; nothing is committed. Facts, or an epoch to `undo`, are given as to `apply`,
        rules as to `change_rules`; or, instead of these, an update that has not been committed."""
        if undo is not None:
            require_alone(undo, inserted, deleted, added or None, removed or None)
            inserted = self.engine.undoing(undo, PendingUpdate(self._updates))
        return self._updates.preview(self._updates.pending(inserted, deleted, added, removed))

    def forecast(
        self,
        inserted: Mapping[str, Rows] | Sequence[Fact] | str | os.PathLike[str] | PendingUpdate | None = None,
        deleted: Mapping[str, Rows] | Sequence[Fact] | None = None,
        *,
        added: str | Iterable[str] = "",
        removed: int | str | Iterable[int | str] = (),
    ) -> tuple[Forecast, ...]:
        """What the strategy would choose for an update, for the strata affected first: those whose rules change, or
        that read or hold a changed relation. Strata further up depend on what these change. Facts are given as to
        `apply`, rules as to `change_rules`; or, instead of these, an update that has not been committed."""
        return self._updates.forecast(self._updates.pending(inserted, deleted, added, removed))

    def on_commit(self, function: Listener) -> Listener:
        """Calls a function with the `Changes` of every epoch from now on, once it is durable, in the thread that made
        it. Exceptions of the function are logged. Returns the function, so that this can be a decorator."""
        return self._updates.listeners.add(function)

    # --- other epochs ------------------------------------------------------------------------------------------------

    def at(self, epoch: int | date | str) -> Session:
        """A read-only session of an earlier epoch, kept by the store back to its retention: by its number, or by a time
        at which it was current, also as a text, `2026-11-18 09:30` (without a time zone: that of this machine)."""
        return Session(*self._history.at(epoch))

    def refresh(self) -> bool:
        """Follows a store that another process writes: a session of `Store(…, read_only=True)` moves to the latest
        epoch. Returns whether there was a later one. Relations and answers taken before do not change."""
        with self._lock:
            later = self._history.later()
            if later is None:
                return False
            self._take(*later)
        return True


def _undo(updates: Updates, history: History, suggestion: Suggestion) -> Changes:
    """Applies a suggestion. Not a method: an answerer that referred to its session would keep it alive."""
    from elastalog.session.repair import undo

    return undo(suggestion, updates, history)
