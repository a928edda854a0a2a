"""What runs inside a task: the kernel, on the share of the facts that is the task's.

Nothing of the driver is captured: a task gets a `StratumSpec`, plain data, and reads and writes files. It yields one
row for every file of results. Only the files named in the rows of a job that ended well count; a repeated task writes
others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import Matrix, StateChanges
from elastalog.backends.sets import Support
from elastalog.backends.spark.filed import FiledRelation
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.states import are_heard, changes_between, old_levels
from elastalog.backends.spark.values import Values, shows_numbers_of_texts
from elastalog.backends.spark.word_files import WordFile, are_explicit, read_words, write_changes, write_words
from elastalog.planning.decompose import Copy, SharePlan, with_copies
from elastalog.planning.logical import Clause, LogicalProgram
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

STATE, CHANGES = "state", "changes"


@dataclass(frozen=True, slots=True)
class StratumSpec:
    """The work of all tasks of a stratum. `inputs`: the files of every lower relation in the state under way, and of
    its own relations in the state before, of which only explicit facts count. `deleted` and `inserted`: the explicit
    facts that go and come. `is_rebuilt`: what is different from the state before is wanted too."""

    program: LogicalProgram
    plan: SharePlan
    inputs: Mapping[str, FiledRelation]
    values: Values
    routings: Mapping[str, Routing]
    shares: int
    folder: str
    is_annotated: bool
    is_global: bool
    support: Support = Support.LEVELS
    deleted: Mapping[str, WordFile] = field(default_factory=dict)
    inserted: Mapping[str, WordFile] = field(default_factory=dict)
    is_rebuilt: bool = False

    def clauses_of(self, share: int, dictionary: Dictionary) -> tuple[Clause, ...]:
        """The clauses that the task of a share evaluates."""
        kept: list[Clause] = []
        for shared in self.plan.clauses:
            match shared.pivot:
                case Constant(value=value, base=base):
                    word = np.array([dictionary.encode_value(base, value)], np.int32)
                    is_mine = int(self.routings[shared.clause.head].homes_of(word)[0]) == share
                case None:
                    is_mine = share == 0
                case _:
                    is_mine = True
            if is_mine:
                kept.append(shared.clause)
        return tuple(kept)

    def width(self, copy: Copy) -> int:
        return self.program.relations[copy.relation].width

    def facts(self, copy: Copy, share: int) -> tuple[FactWords, list[StateChanges]]:
        """What a task holds of a copy: a state, and changes of it."""
        return self.inputs[copy.relation].read(self.width(copy), self.routings[copy.name], share)

    def told(self, name: str, share: int) -> tuple[FactWords, list[StateChanges]]:
        """What a task tells of an own relation: a state, and changes of it."""
        return self.inputs[name].read(self.program.relations[name].width, self.teller(name), share)

    def teller(self, name: str) -> Routing:
        """How the files of an own relation are shared: every fact is in one."""
        return self.routings[self.plan.owner(name).name].of_tellers

    def present(self, copy: Copy, share: int) -> Matrix:
        """The facts that a task holds of a copy of a lower relation."""
        facts, changes = self.facts(copy, share)
        if not changes:
            return facts.words
        relation, _ = snapshot.restored(copy.name, self.width(copy), True, facts, changes)
        return relation.rows[relation.present_rows()]

    def explicit_changes(self, copy: Copy, share: int) -> tuple[Matrix, Matrix]:
        """The explicit facts of a copy that go, and those that come."""
        gone, come = (
            read_words((side[copy.relation],), self.width(copy), self.routings[copy.name], share).words
            if copy.relation in side
            else np.empty((0, self.width(copy)), np.int32)
            for side in (self.deleted, self.inserted)
        )
        return gone, come

    def explicit(self, copy: Copy, share: int) -> Matrix:
        """The explicit facts of an own relation that a task starts from."""
        words: Matrix = np.empty((0, self.width(copy)), np.int32)
        if self.inputs[copy.relation].has_explicit:
            before, changes = self.facts(copy, share)
            old, _ = snapshot.restored(copy.name, self.width(copy), True, before, changes)
            words = old.rows[: old.used][are_explicit(old_levels(old), self.support)]
        gone, come = self.explicit_changes(copy, share)
        if len(gone):
            lost = KernelRelation("", self.width(copy), is_annotated=False)
            lost.load(gone)
            words = words[lost.find(words) < 0]
        return np.concatenate((words, come)) if len(come) else words


@dataclass(frozen=True, slots=True)
class Result:
    """A row that a task yields: a file of the `state` of a relation or of its `changes`. `heard`: of how many changes
    strata above must hear. `fault`: why the task could not finish, as a JSON object, None if it could. `made`: values
    that its files have and the driver's dictionary may not."""

    share: int
    kind: str
    relation: str
    path: str
    rows: int
    grown: int
    explicit: int
    heard: int
    derivations: int
    fault: str | None = None
    outcome: bytes | None = None
    made: Values | None = None

    @staticmethod
    def of(
        share: int, kind: str, relation: str, file: WordFile, derivations: int, heard: int = 0,
        outcome: bytes | None = None,
    ) -> Result:  # fmt: skip
        counts = file.rows, file.grown, file.explicit, heard, derivations
        return Result(share, kind, relation, file.path, *counts, outcome=outcome)

    @staticmethod
    def failed(share: int, fault: str, derivations: int = 0) -> Result:
        return Result(share, "", "", "", 0, 0, 0, 0, derivations, fault)

    def file(self, routing: Routing) -> WordFile:
        return WordFile(self.path, self.rows, routing, self.share, self.grown, self.explicit)


def run_shares(
    work: Callable[[int], Iterator[Result]], shares: tuple[int, ...], positions: Iterable[int]
) -> Iterator[Result]:
    """Does the work of the shares whose positions a task is given. An error of the program (an overflow, say) is a row
    too, since an exception would only be repeated."""
    from elastalog.diagnostics.diagnostic import ElastalogError

    for position in positions:
        try:
            yield from work(shares[position])
        except ElastalogError as error:
            yield Result.failed(shares[position], fault_of(error))


def fault_of(error: Exception) -> str:
    """What tells the driver to evaluate the stratum itself, and so to meet the error where it can be shown well."""
    return json.dumps({"error": str(error)})


GROWN = json.dumps({"grown": True})
"""The fault of a task that made values which the driver does not know."""


def evaluate_alone(spec: StratumSpec, share: int) -> Iterator[Result]:
    """The whole fixpoint of a share of a stratum that decomposes."""
    from elastalog.backends.kernel.backend import KernelBackend

    dictionary = spec.values.dictionary()
    program = with_copies(spec.program, spec.plan, spec.clauses_of(share, dictionary))
    backend = KernelBackend(
        program, dictionary, is_annotated=spec.is_annotated, is_global=spec.is_global, support=spec.support
    )
    own = frozenset(spec.plan.stratum.relations)
    for copy in spec.plan.copies:
        if copy.relation in own:
            backend.load(copy.name, spec.explicit(copy, share))
        else:
            backend.restore(copy.name, *spec.facts(copy, share))
    derivations = backend.bootstrap(program.strata[0])
    new_values = values_made(spec, share, dictionary, derivations)
    if new_values is not None:
        yield new_values
        if new_values.fault is not None:
            return
        derivations = 0
    for name in spec.plan.stratum.relations:
        yield from results_of(spec, share, name, backend.state(name), derivations)
        derivations = 0


def values_made(spec: StratumSpec, share: int, dictionary: Dictionary, derivations: int) -> Result | None:
    """What a task says about values that it has made, None if there are none. They do not hinder it if no other task
    needs them, and if nothing was computed with their numbers."""
    if not spec.values.is_outgrown_by(dictionary):
        return None
    made = spec.values.made_in(dictionary)
    is_shown = made.texts and any(shows_numbers_of_texts(shared.clause) for shared in spec.plan.clauses)
    if is_shown or not spec.plan.decomposes:
        return Result.failed(share, GROWN, derivations)
    return Result(share, "", "", "", 0, 0, 0, 0, derivations, made=made)


def results_of(spec: StratumSpec, share: int, name: str, facts: FactWords, derivations: int) -> Iterator[Result]:
    """Writes the state of a relation, and what is different in it from the state before, if that is wanted."""
    folder = Path(spec.folder)
    yield Result.of(share, STATE, name, write_words(folder, name, facts, spec.support), derivations)
    if spec.is_rebuilt:
        old, _ = snapshot.restored(name, facts.words.shape[1], True, *spec.told(name, share))
        changes = changes_between(old, facts)
        if len(changes):
            heard = int(are_heard(changes, spec.is_global).sum())
            yield Result.of(share, CHANGES, name, write_changes(folder, name, changes, spec.support), 0, heard)


def facts_with(words: np.ndarray, level: np.ndarray, count: np.ndarray) -> FactWords:
    """Facts in the types of their files."""
    return FactWords(words, level.astype(np.int32, copy=False), count.astype(np.int32, copy=False))
