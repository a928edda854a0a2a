"""What a session answers: what follows from its facts, why, why not, what broke it, and what was before.

Nothing here changes a fact. Each method says what it promises; the parts behind it do the work, and what most sessions
never ask is imported when it is asked. A new kind of question is a file of its own beside them, and a method here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.diagnostics.arguments import require_place
from elastalog.folders.addresses import is_address
from elastalog.relations.display import html_table
from elastalog.session.questions import Questions
from elastalog.session.reading import Reader
from elastalog.session.updating import Updates

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from elastalog.analysis.program import Value
    from elastalog.debugging.answers import Blame, Localisation, Suggestion
    from elastalog.diagnostics.diagnostic import Diagnostic
    from elastalog.evaluation.changes import Changes
    from elastalog.evaluation.differences import Differences, Verification
    from elastalog.evaluation.statistics import Statistics
    from elastalog.evaluation.update import RuleTexts
    from elastalog.pipeline.files.policy import Policy
    from elastalog.program import Program
    from elastalog.provenance.absence import Absence
    from elastalog.provenance.fact import Fact
    from elastalog.provenance.proof import Proof
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.session.history import History
    from elastalog.session.initial_facts import Rows
    from elastalog.session.materialisation import Materialisation, Written
    from elastalog.storage.entries import LogEntry
    from elastalog.storage.history import Turn


class Answering:
    """The half of a session that is only asked."""

    def __init__(self, materialisation: Materialisation, history: History, heartbeats: bool, policy: Policy) -> None:
        self._heartbeats = heartbeats
        self._policy = policy
        self._take(materialisation, history)

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

    # --- explaining --------------------------------------------------------------------------------------------------

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

    def uses(self, fact: Written, all: bool = False) -> Iterator[Fact]:  # noqa: A002  # its public name
        """The facts that follow directly from a fact: a rule derives them from it and others. With `all`, those that
        would go if it went and could not be derived any more. Nothing is changed."""
        return self._questions.uses(fact, all)

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

    # --- looking back ------------------------------------------------------------------------------------------------

    def log(self) -> tuple[LogEntry, ...]:
        """What is known of every epoch: of this session, or of the store, back to its retention."""
        return self._history.log()

    def epoch_at(self, moment: int | datetime) -> int:
        """The epoch of a number, or that which was in force at a time (without a time zone: of this machine)."""
        return self._history.epoch_at(moment)

    def changes_since(self, epoch: int) -> Changes:
        """What the epochs after one have changed together: facts that came and went again are left out."""
        return self._updates.changes_since(epoch)

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
    def store(self) -> Path | None:
        """The folder that keeps the epochs, if there is one."""
        return None if self._history.store is None else self._history.store.root

    @property
    def recovery(self) -> tuple[Diagnostic, ...]:
        """What opening the store found and repaired after a crash: nothing, as a rule."""
        return self._history.recovery

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copies the store, with all epochs that it keeps, into a folder that is not there or is empty, while work goes
        on. Returns the epoch of the copy."""
        require_place("a copy of a store is a folder", path, "give its path")
        if is_address(path):
            from elastalog.storage.objects.copying import copied_to

            return copied_to(str(path), self._history.back_up)
        return self._history.back_up(Path(path))

    def verify(self) -> Verification:
        """Evaluates the program anew over the explicit facts, by joins of sorted arrays instead of indexes and compiled
        rounds, and compares all facts, levels and counts."""
        from elastalog.session.verifying import verify

        return verify(self._materialisation)
