"""What runs inside a task: the kernel, on the share of the facts that is the task's.

Nothing of the driver is captured: a task gets a `StratumSpec`, plain data, reads and writes files, and tells what came
of it as `results`. To maintain a stratum it reads the state of its share before the update and the changes of lower
relations, has a procedure of the strategy bring the share to its new fixpoint, and writes what has changed. It leaves
what it has read as it was.

In a stratum that decomposes, facts with the same word at the preserved argument are a *group*: what is derived in a
group follows from that group and from relations that every task holds whole. So only groups matter that a changed fact
falls into, or that have a fact which a clause may join with a changed fact of a whole relation. All others need not
even become relations of the kernel.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.annotation import Annotation
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.protocol import Matrix, Procedure, StateChanges
from elastalog.backends.rows import are_in, merged
from elastalog.backends.spark.results import Fault, FileWritten, Result
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.values import Values, shows_numbers_of_texts
from elastalog.backends.spark.word_files import (
    FiledRelation,
    WordFile,
    read_changes,
    read_words,
    write_changes,
    write_words,
)
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.folders.addresses import inside
from elastalog.folders.files import put
from elastalog.planning.decompose import Copy, SharedClause, SharePlan, with_copies
from elastalog.planning.logical import Clause, Goal, LogicalProgram, Scan, Test
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from elastalog.backends.kernel.backend import KernelBackend


def nothing_more(maintenance: Any) -> None:
    """The procedure where a strategy has nothing to decide: aggregates are folded again in one way only."""


@dataclass(frozen=True, slots=True)
class StratumSpec:
    """The work of all tasks of a stratum. `files`: those of every lower relation in the state under way, and of its own
    relations in the state before, of which only explicit facts count. `routings`: how every copy is shared. `folder`:
    where tasks write. `deleted` and `inserted`: the explicit facts that go and come. `is_rebuilt`: what is different
    from the state before is wanted too. `token`: by which tasks that exchange know each other. `agrees`: they agree on
    the numbers of values that they make.

    Of an update all `files` are in the state before it; those `below` are the changes of lower relations. What the
    `procedure` of a strategy returns is brought to the driver. `budget`: how many derivations are allowed."""

    program: LogicalProgram
    plan: SharePlan
    files: Mapping[str, FiledRelation]
    values: Values
    routings: Mapping[str, Routing]
    folder: str
    annotation: Annotation
    deleted: Mapping[str, WordFile] = field(default_factory=dict)
    inserted: Mapping[str, WordFile] = field(default_factory=dict)
    is_rebuilt: bool = False
    token: str = ""
    agrees: bool = False
    below: Mapping[str, tuple[WordFile, ...]] = field(default_factory=dict)
    procedure: Procedure[Any] = nothing_more
    budget: int | None = None

    @property
    def shares(self) -> int:
        """How many tasks there are, at most."""
        return next(iter(self.routings.values())).shares

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

    def kernel(self, share: int) -> KernelBackend:
        """A kernel for the task of a share, without facts."""
        from elastalog.backends.kernel.backend import KernelBackend

        dictionary = self.values.dictionary()
        program = with_copies(self.program, self.plan, self.clauses_of(share, dictionary))
        return KernelBackend(program, dictionary, annotation=self.annotation, jobs=threads_of_task(), watch=Watch())

    def width(self, copy: Copy) -> int:
        return self.program.relations[copy.relation].width

    def facts(self, copy: Copy, share: int) -> tuple[FactWords, list[StateChanges]]:
        """What a task holds of a copy: a state, and changes of it."""
        return self.files[copy.relation].read(self.width(copy), self.routings[copy.name], share)

    def owned(self, name: str, share: int) -> tuple[FactWords, list[StateChanges]]:
        """What a task owns of a relation of the stratum: a state, and changes of it."""
        return self.files[name].read(self.program.relations[name].width, self.owners(name), share)

    def owners(self, name: str) -> Routing:
        """Which task owns which facts of a relation of the stratum. Its files are shared so: every fact is in one."""
        return self.routings[self.plan.owner(name).name].of_owners

    def present(self, copy: Copy, share: int) -> Matrix:
        """The facts that a task holds of a copy of a lower relation."""
        return merged(*self.facts(copy, share)).words

    def changes_below(self, copy: Copy, share: int) -> StateChanges:
        """What has changed in a copy of a lower relation."""
        found = read_changes(self.below[copy.relation], self.width(copy), self.routings[copy.name], share)
        return StateChanges.joined(found, self.width(copy))

    def explicit_changes(self, copy: Copy, share: int) -> tuple[Matrix, Matrix]:
        """The explicit facts of a copy that go, and those that come."""
        gone, come = (
            read_words((side[copy.relation],), self.width(copy), self.routings[copy.name], share).words
            if copy.relation in side
            else np.empty((0, self.width(copy)), np.int32)
            for side in (self.deleted, self.inserted)
        )
        return gone, come

    def start(self, copy: Copy, share: int) -> Matrix:
        """The facts of an own relation that a task starts from: the explicit ones. Those of an aggregate are never
        explicit, though that of an empty group may have level 0; but facts that were numbered keep their numbers."""
        aggregate = self.plan.stratum.aggregate
        if aggregate is None:
            return self._explicit(copy, share)
        return self.present(copy, share) if aggregate.is_numbering else np.empty((0, self.width(copy)), np.int32)

    def _explicit(self, copy: Copy, share: int) -> Matrix:
        words: Matrix = np.empty((0, self.width(copy)), np.int32)
        if self.files[copy.relation].has_explicit:
            before = merged(*self.facts(copy, share))
            assert before.level is not None
            words = before.words[self.annotation.are_explicit(before.level)]
        gone, come = self.explicit_changes(copy, share)
        return np.concatenate((words[~are_in(words, gone)] if len(gone) else words, come))


def run_shares(work: Callable[[int], Result], shares: tuple[int, ...], positions: Iterable[int]) -> Iterator[Result]:
    """Does the work of the shares whose positions a task is given. An error of the program (an overflow, say) is a
    result too, since an exception would only be repeated."""
    from elastalog.diagnostics.diagnostic import ElastalogError
    from elastalog.diagnostics.quota import peak_memory
    from elastalog.folders.remote import UnreachableError

    for position in positions:
        began = time.perf_counter()
        try:
            result = work(shares[position])
        except UnreachableError:
            raise  # another attempt, or another machine, may reach it
        except ElastalogError:
            result = Result(shares[position], fault=Fault.ERROR)
        result.seconds, result.peak = time.perf_counter() - began, peak_memory()
        yield result


def threads_of_task() -> int:
    """The number of threads of a task: the processors that Spark counts for it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()


def evaluate_alone(spec: StratumSpec, share: int) -> Result:
    """The whole fixpoint of a share of a stratum that decomposes."""
    kernel = spec.kernel(share)
    own = frozenset(spec.plan.stratum.relations)
    for copy in spec.plan.copies:
        if copy.relation in own:
            kernel.load({copy.name: spec.start(copy, share)})
        else:
            kernel.states.restore(copy.name, *spec.facts(copy, share))
    derivations = kernel.bootstrap(kernel.program.strata[0])
    result = Result(share, derivations=derivations, is_complete=kernel.is_complete)
    if note_values(spec, kernel.evaluation.dictionary, result):
        for name in spec.plan.stratum.relations:
            result.files += written_facts(spec, share, name, kernel.states.of(name))
    return result


def note_values(spec: StratumSpec, dictionary: Dictionary, result: Result) -> bool:
    """Notes the values that a task has made. Returns False if it cannot go on with them: another task needs them, or
    rules have computed with their numbers while other tasks make values too. Otherwise the driver gives them its own
    numbers."""
    if spec.values.is_outgrown_by(dictionary):
        made = spec.values.made_in(dictionary)
        is_shown = made.texts and any(shows_numbers_of_texts(shared.clause) for shared in spec.plan.clauses)
        if (is_shown and not spec.plan.is_for_one) or not spec.plan.decomposes:
            result.fault = Fault.NEW_VALUES
        else:
            result.made = made
    return result.fault is None


def written_facts(spec: StratumSpec, share: int, name: str, facts: FactWords) -> Iterator[FileWritten]:
    """Writes the state of a relation and, if that is wanted, how it differs from the state before."""
    yield FileWritten(name, write_words(spec.folder, name, facts, spec.annotation))
    if spec.is_rebuilt:
        old, _ = snapshot.restored(name, facts.words.shape[1], True, *spec.owned(name, share))
        changes = snapshot.changes_between(old, facts)
        if len(changes):
            yield _changes_file(spec, name, changes)


def _changes_file(spec: StratumSpec, name: str, changes: StateChanges) -> FileWritten:
    heard = int(changes.are_heard(spec.annotation.is_global).sum())
    return FileWritten(name, write_changes(spec.folder, name, changes, spec.annotation), heard)


def write_share(name: str, filed: FiledRelation, width: int, routing: Routing, folder: str, share: int) -> Result:
    """Writes a share of a relation anew, without changes."""
    file = write_words(folder, name, merged(*filed.read(width, routing, share)))
    return Result(share, [FileWritten(name, replace(file, routing=routing, share=share))])


OVER_BUDGET = "over-budget"
"""The file by which a task that has spent the budget tells the driver at once."""


def update_share(spec: StratumSpec, share: int) -> Result:
    """Maintains one share of a stratum that decomposes."""
    kernel = spec.kernel(share)
    dictionary, watch = kernel.evaluation.dictionary, kernel.watch
    own = frozenset(spec.plan.stratum.relations)
    held = {copy.name: spec.facts(copy, share) for copy in spec.plan.copies}
    explicit = {copy.name: spec.explicit_changes(copy, share) for copy in spec.plan.copies if copy.relation in own}
    below = {copy.name: spec.changes_below(copy, share) for copy in spec.plan.copies if copy.relation in spec.below}
    changed = {name: np.concatenate(sides) for name, sides in explicit.items()}
    groups = groups_concerned(spec.plan, held, below, changed, dictionary)
    if groups is not None:
        shared = ((copy.name, copy.column) for copy in spec.plan.copies if copy.column is not None)
        held |= {name: only_groups(held[name], column, groups) for name, column in shared}
    for name, found in held.items():
        kernel.states.restore(name, *found)
    kernel.begin(
        {name: gone for name, (gone, _) in explicit.items()}, {name: come for name, (_, come) in explicit.items()}
    )
    for name, changes in below.items():
        kernel.receive(name, changes)
    watch.allow(spec.budget)

    result = Result(share)
    try:
        returned = _perform(kernel, spec.procedure)
    except BudgetExceeded:
        put(inside(spec.folder, OVER_BUDGET))
        result.fault = Fault.OVER_BUDGET
        return result
    if note_values(spec, dictionary, result):
        result.derivations, result.returned = watch.derivations, pickle.dumps(returned)
        for name, changes in kernel.states.changed().items():
            if name in own:
                result.files += written_changes(spec, share, name, changes)
    return result


def _perform(kernel: KernelBackend, procedure: Procedure[Any]) -> Any:
    stratum = kernel.program.strata[0]
    if stratum.aggregate is None:
        (outcome,) = kernel.maintain(stratum, procedure, is_portable=True)
        return outcome
    if kernel.changes.reached(stratum) is not None:
        kernel.refold(stratum)
    return None


def written_changes(spec: StratumSpec, share: int, name: str, changes: StateChanges) -> Iterator[FileWritten]:
    """Writes what has changed in a relation, and its whole state if the changes of this share have become many."""
    if not len(changes):
        return
    yield _changes_file(spec, name, changes)
    if spec.files[name].is_worn_in(spec.owners(name), share):
        facts, before = spec.owned(name, share)
        yield FileWritten(name, write_words(spec.folder, name, merged(facts, [*before, changes]), spec.annotation))


Held = tuple[FactWords, list[StateChanges]]
"""What a task holds of a copy: a state, and changes of it."""


def groups_concerned(
    plan: SharePlan,
    held: Mapping[str, Held],
    below: Mapping[str, StateChanges],
    explicit: Mapping[str, np.ndarray],
    dictionary: Dictionary,
) -> np.ndarray | None:
    """The words of the groups that an update may concern; None if it may concern any. By copy: the facts `held`, the
    changes `below`, and the `explicit` facts of own relations that are deleted or inserted."""
    columns = {copy.name: copy.column for copy in plan.copies}
    found = [words[:, column] for name, words in explicit.items() if (column := columns[name]) is not None]
    for name, changes in below.items():
        column = columns[name]
        if column is not None:
            found.append(changes.words[:, column])
            continue
        for shared in plan.clauses:
            for goal in shared.clause.goals:
                if not isinstance(goal, Test) and goal.relation == name:
                    words = _groups_joined(shared, goal, changes.words, held, columns, dictionary)
                    if words is None:
                        return None
                    found.append(words)
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)


def _groups_joined(
    shared: SharedClause,
    goal: Goal,
    changed: np.ndarray,
    held: Mapping[str, Held],
    columns: Mapping[str, int | None],
    dictionary: Dictionary,
) -> np.ndarray | None:
    """The groups with a fact that a clause may join with changed facts of a whole relation."""
    assert not isinstance(goal, Test)
    if isinstance(shared.pivot, Constant):
        return np.array([dictionary.encode_value(shared.pivot.base, shared.pivot.value)], np.int32)
    for other in shared.clause.goals:
        if not isinstance(other, Scan) or columns.get(other.relation) is None:
            continue
        common = [term for term in other.terms if isinstance(term, str) and term in goal.terms]
        if common:
            wanted = np.unique(changed[:, goal.terms.index(common[0])])
            place, column = other.terms.index(common[0]), columns[other.relation]
            facts, changes = held[other.relation]
            known = (facts.words, *(change.words for change in changes))
            return np.concatenate([words[np.isin(words[:, place], wanted), column] for words in known])
    return None


def only_groups(held: Held, column: int, groups: np.ndarray) -> Held:
    """The facts of some groups."""
    facts, changes = held
    fewer = [change.taken(np.isin(change.words[:, column], groups)) for change in changes]
    return facts.taken(np.isin(facts.words[:, column], groups)), fewer
