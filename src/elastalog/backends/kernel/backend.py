"""The in-process backend: relations in memory, rules evaluated by compiled operators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.dense.dense_update import DenseMaintenance
from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.execution import aggregates as aggregates
from elastalog.backends.kernel.execution.bound_variant import Scratch
from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan, StratumMaintenance, load_operators
from elastalog.backends.kernel.machine.workspace import Workbench
from elastalog.backends.kernel.sets.set_plan import SetPlan
from elastalog.backends.kernel.sets.set_update import StratumSets
from elastalog.backends.kernel.store import bookkeeping, shifts, snapshot, transaction
from elastalog.backends.kernel.store.annotations import ABSENT, FIXED
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import Transaction
from elastalog.backends.protocol import ChangedWords, StateChanges
from elastalog.backends.sets import Support
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.words import Dictionary

T = TypeVar("T")


class KernelBackend(KernelEvaluation):
    """See `backends.protocol.Backend`. With `is_annotated` every fact has a level and a count and updates can be
    maintained; without, relations can only be evaluated anew."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        is_annotated: bool,
        is_global: bool = False,
        support: Support = Support.LEVELS,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> None:
        self._scratch = Scratch()
        self._bench = Workbench()
        self._transaction = Transaction()
        self._maintenance: StratumMaintenance | DenseMaintenance | StratumSets | None = None
        self._departures = 0
        self._was_complete = True
        super().__init__(program, dictionary, is_annotated, is_global, support, jobs, watch or Watch())

    def _follow(self, program: LogicalProgram) -> None:
        super()._follow(program)
        self._plans: dict[int, MaintenancePlan] = {}
        self._set_plans: dict[int, SetPlan] = {}
        self._flat = program.flat
        self._reads = {stratum.number: stratum.reads for stratum in program.strata}
        self._explicit_only = frozenset(
            name
            for stratum in program.strata
            if not stratum.clauses and stratum.aggregate is None
            for name in stratum.relations
        )

    def prepare(self, stratum: LogicalStratum) -> None:
        """Plans updates of a stratum, makes the indexes they need and loads the operators."""
        self._plan(stratum).prepare(self.relations)
        if self.support in (Support.LEVELS, Support.VECTORS):
            load_operators()

    def _plan(self, stratum: LogicalStratum) -> MaintenancePlan:
        plan = self._plans.get(stratum.number)
        if plan is None:
            source = self.program.checked.source
            flat = self._flat if self.is_global else self._reads[stratum.number]
            looks_back = self.support is not Support.VECTORS
            plan = MaintenancePlan(stratum, self.relations, flat, self.dictionary, source, self.is_global, looks_back)
            self._plans[stratum.number] = plan
        return plan

    # --- updates ---------------------------------------------------------------------------------------------------

    def begin(
        self,
        deleted: Mapping[str, Matrix],
        inserted: Mapping[str, Matrix],
        anew: frozenset[str] = frozenset(),
    ) -> tuple[int, int]:
        """Starts an update. It is normalised against the explicit facts: insertion wins, deleting what is not explicit
        and inserting what is are no changes. Returns how many deletions and insertions remain. `anew`: relations that
        cannot be maintained, and must be evaluated anew."""
        self._transaction = Transaction(anew=anew)
        self._was_complete = self.is_complete
        for name in (*deleted, *(n for n in inserted if n not in deleted)):
            come = inserted.get(name)
            go = deleted.get(name)
            if come is not None and len(come):
                come = _distinct(come)
                kept = come[~self.is_explicit(name, come)]
                if len(kept):
                    self._transaction.inserted[name] = kept
            if go is not None and len(go):
                go = _distinct(go)
                go = go[self.is_explicit(name, go)]
                if come is not None and len(come) and len(go):
                    go = go[~_is_in(go, come)]
                if len(go):
                    self._transaction.deleted[name] = go
        deletions = sum(len(words) for words in self._transaction.deleted.values())
        return deletions, sum(len(words) for words in self._transaction.inserted.values())

    def is_affected(self, stratum: LogicalStratum) -> bool:
        """Whether an explicit fact of the stratum or a relation it reads has changed."""
        done = self._transaction
        own = self._own[stratum.number]
        return not (
            self._reads[stratum.number].isdisjoint(done.changed)
            and own.isdisjoint(done.deleted)
            and own.isdisjoint(done.inserted)
            and (not done.anew or own.isdisjoint(done.anew))
        )

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        """Whether the stratum cannot be maintained in the update under way: its rules are others, it has a choice
        domain or subsumption, or a `.limitsize` may have to cut it short."""
        if stratum.number in self._limited or stratum.number in self.chosen:
            return True
        return not self._transaction.anew.isdisjoint(stratum.relations)

    def input_size(self, stratum: LogicalStratum) -> int:
        """How many explicit facts of the stratum and facts that it reads have changed."""
        done = self._transaction
        size = 0
        for name in stratum.relations:
            size += len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))
        for name in self._reads[stratum.number]:
            size += len(done.changed.get(name, ()))
        return size

    def receive(self, relation: str, changes: StateChanges) -> None:
        """Makes what somebody else has found to change in a relation a part of the update under way."""
        changed = transaction.receive(self.relations[relation], changes, self.is_global)
        if len(changed):
            self._transaction.changed[relation] = changed

    def delegate(self, stratum: LogicalStratum, procedure: Callable[[Any], T]) -> list[T] | None:
        """See the protocol: here all facts are at hand."""
        return None

    def maintain(self, stratum: LogicalStratum) -> StratumMaintenance | DenseMaintenance:
        """Starts the maintenance of a stratum: the explicit facts that go and come get their entries."""
        done = self._transaction
        deleted: dict[str, Vector] = {}
        inserted: dict[str, Vector] = {}
        for name in stratum.relations:
            relation = self.relations[name]
            if name in done.deleted:
                deleted[name] = transaction.touch(relation, relation.find(done.deleted[name]))
            if name in done.inserted:
                inserted[name] = transaction.touch(relation, transaction.add_rows(relation, done.inserted[name]))
                bookkeeping.mark(inserted[name], relation.touched, FIXED, 0)
        inputs = {name: done.changed[name] for name in self._reads[stratum.number] if name in done.changed}
        plan = self._plan(stratum)
        maintenance: StratumMaintenance | DenseMaintenance
        if self.support is Support.VECTORS:
            maintenance = DenseMaintenance(
                stratum, plan, self.relations, inputs, deleted, inserted, self.watch, self._bench, self.vectors
            )
        else:
            maintenance = StratumMaintenance(
                stratum, plan, self.relations, inputs, deleted, inserted, self.watch, self._bench
            )
        self._maintenance = maintenance
        return maintenance

    def maintain_sets(self, stratum: LogicalStratum) -> StratumSets:
        """Starts the maintenance of a stratum by a strategy that maintains sets."""
        done = self._transaction
        deleted: dict[str, Vector] = {}
        inserted: dict[str, Vector] = {}
        for name in stratum.relations:
            relation = self.relations[name]
            if name in done.deleted:
                deleted[name] = relation.find(done.deleted[name])
            if name in done.inserted:
                inserted[name] = transaction.add_rows(relation, done.inserted[name])
        below = {name: done.changed[name] for name in self._reads[stratum.number] if name in done.changed}
        plan = self._set_plans.get(stratum.number)
        if plan is None:
            plan = self._set_plans[stratum.number] = SetPlan(
                stratum, self._plan(stratum), self.relations, self.dictionary, self.program.checked.source
            )
        self._maintenance = maintenance = StratumSets(
            stratum, plan, self.relations, self.support, below, deleted, inserted,
            self._explicit_only & {*self._reads[stratum.number], *stratum.relations}, self.watch, self._scratch,
        )  # fmt: skip
        return maintenance

    def finish_sets(self, maintenance: StratumSets) -> None:
        """The stratum is done; those above see its net change."""
        self._transaction.changed.update(maintenance.end())
        self._maintenance = None

    def finish(self, maintenance: StratumMaintenance | DenseMaintenance) -> None:
        """The stratum is done; those above see its net change."""
        self._transaction.changed.update(maintenance.end(self.is_global))
        self._maintenance = None

    def abandon(self, maintenance: StratumMaintenance | DenseMaintenance) -> None:
        """Forgets what maintenance has done to its stratum."""
        maintenance.abandon()
        for name in maintenance.own:
            transaction.rollback(self.relations[name])
        self._maintenance = None

    def refold(self, stratum: LogicalStratum) -> None:
        """Maintains an aggregate: folds the groups with changed members again, and only those."""
        assert stratum.aggregate is not None
        members = self._transaction.changed[stratum.aggregate.members]
        changed = aggregates.refold(
            stratum.aggregate, members, self.relations, self.dictionary, self.program, self.is_global
        )
        if len(changed):
            self._transaction.changed[stratum.aggregate.relation] = changed

    def pretend(self, relation: str, absent: Matrix | None, present: Matrix | None) -> None:
        """Strata above a finished relation are told that some facts are absent and others present, during an update
        that will be taken back."""
        stored = self.relations[relation]
        if absent is not None and len(absent):
            entries = transaction.touch(stored, transaction.add_rows(stored, absent))
            transaction.set_annotation(stored, entries, ABSENT, is_present=False)
        if present is not None and len(present):
            entries = transaction.touch(stored, transaction.add_rows(stored, present))
            transaction.set_annotation(stored, entries, max(stored.lowest, 1), is_present=True)
        changed = transaction.changed_entries(stored, self.is_global)
        if len(changed):
            self._transaction.changed[relation] = changed
        else:
            self._transaction.changed.pop(relation, None)

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum anew from its new explicit facts. Returns the derivations enumerated."""
        done = self._transaction
        pipelines = self.pipelines.get(stratum.number)
        if pipelines is None or not pipelines.suit(stratum):
            pipelines = None
            self._plans.pop(stratum.number, None)
        for name in stratum.relations:
            old = done.replaced[name] = self.relations[name]
            if name in self.vectors:
                done.vectors[name] = self.vectors[name]
            indexed = pipelines.indexes_of(name) if pipelines is not None else ()
            self.relations[name] = rebuild.successor(old, self._new_explicit(name, old), indexed)
        derivations = self.evaluate(stratum, pipelines)
        for name in stratum.relations:
            new, old = self.relations[name], done.replaced[name]
            changed = rebuild.adopt(new, old, self.is_global) if self.is_annotated else rebuild.differences(new, old)
            if len(changed):
                done.changed[name] = changed
        return derivations

    def _new_explicit(self, name: str, old: KernelRelation) -> Matrix:
        done = self._transaction
        if self.is_annotated:
            is_explicit = self._is_explicit(old.level[: old.used])
        else:
            is_explicit = np.arange(old.used) < self._explicit.get(name, 0)
        return rebuild.explicit_facts(old, is_explicit, done.deleted.get(name), done.inserted.get(name))

    def explicit_changes(self) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
        """The explicit facts that the update under way deletes and inserts, normalised."""
        return dict(self._transaction.deleted), dict(self._transaction.inserted)

    def changes(self, with_hidden: bool = False) -> ChangedWords:
        """The facts that the update has inserted and deleted so far; those of hidden relations only `with_hidden`."""
        relations = self.program.relations
        visible = {n: e for n, e in self._transaction.changed.items() if with_hidden or not relations[n].is_hidden}
        if self.is_annotated:
            return transaction.changed_words(self.relations, visible)
        return {name: rebuild.changed_facts(self.relations[name], self._transaction.replaced[name]) for name in visible}

    def state_changes(self) -> dict[str, StateChanges]:
        """What the update under way has changed, hidden relations and annotations included."""
        done = self._transaction
        found = {}
        for name, relation in self.relations.items():
            if name in done.replaced:
                old = done.replaced[name]
                if self.is_annotated:
                    found[name] = snapshot.replaced_changes(relation, old)
                else:
                    explicit = self._explicit.get(name, 0)
                    found[name] = snapshot.recomputed_changes(relation, self._explicit_after(name), old, explicit)
            elif relation.touched_used:
                found[name] = snapshot.maintained_changes(relation)
        return {name: changes for name, changes in found.items() if len(changes)}

    def commit(self) -> None:
        """Ends the update: its state becomes that of the new epoch."""
        self._was_complete = self.is_complete
        for vectors in self.vectors.values():
            vectors.commit()
        done = self._transaction
        if self.is_annotated:
            for name, relation in self.relations.items():
                if relation.touched_used:
                    transaction.commit(relation, name in done.replaced)
                    self._compact(relation)
        else:
            for name in done.replaced:
                self._explicit[name] = self._explicit_after(name)
        self._transaction = Transaction()

    @property
    def has_shifts(self) -> bool:
        """Whether states are levels and counts in the memory of this process, and nothing else."""
        return self.is_annotated and self.support is Support.LEVELS

    def shift_back(self, most: int | None = None) -> shifts.Shift | None:
        """What `shift` will need to go back, and forth again, once the update under way is committed. None where more
        than levels and counts make up a state, where a relation was evaluated anew, or if more than `most` facts were
        touched."""
        if not self.has_shifts or self._transaction.replaced:
            return None
        touched = [relation for relation in self.relations.values() if relation.touched_used]
        if most is not None and sum(relation.touched_used for relation in touched) > most:
            return None
        return tuple(map(shifts.before_commit, touched))

    def can_shift(self, shift: shifts.Shift) -> bool:
        """Whether a shift can still be made."""
        return all(part.is_usable() and self.relations.get(part.relation.name) is part.relation for part in shift)

    def shift(self, shift: shifts.Shift) -> None:
        """Goes from the state before a committed update to the one after it, or back, outside an update."""
        for part in shift:
            part.toggle()

    def depart(self) -> None:
        """From now on, until `arrive`, rows keep their numbers, so that a shift stays possible."""
        self._departures += 1

    def arrive(self) -> None:
        """See `depart`."""
        self._departures -= 1

    def _explicit_after(self, name: str) -> int:
        done = self._transaction
        before = self._explicit.get(name, 0)
        return before - len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))

    def rollback(self) -> None:
        """Ends the update: everything is as it was."""
        self.is_complete = self._was_complete
        if self._maintenance is not None:
            # What interrupted it may have kept it from telling its relations how far they go.
            self._maintenance.abandon()
            self._maintenance = None
        self.vectors.update(self._transaction.vectors)
        for vectors in self.vectors.values():
            vectors.rollback()
        for name, old in self._transaction.replaced.items():
            self.relations[name] = old
        for relation in self.relations.values():
            if relation.touched_used or not relation.is_settled:
                transaction.rollback(relation)
                self._compact(relation)
        self._transaction = Transaction()

    def _compact(self, relation: KernelRelation) -> None:
        # Other supports keep row numbers from epoch to epoch.
        if self.support is Support.LEVELS and relation.is_annotated and relation.is_sparse and not self._departures:
            with contextlib.suppress(MemoryError):  # it is worth doing, not worth losing an epoch for
                relation.compact()


def _distinct(words: Matrix) -> Matrix:
    """The rows of a matrix, each once."""
    if len(words) < 2:
        return words
    scratch = KernelRelation("", words.shape[1], is_annotated=False)
    scratch.load(words)
    return words if scratch.used == len(words) else scratch.rows[: scratch.used].copy()


def _is_in(words: Matrix, others: Matrix) -> Vector:
    """Which rows of a matrix occur in another."""
    scratch = KernelRelation("", words.shape[1], is_annotated=False)
    scratch.load(np.ascontiguousarray(others))
    result: Vector = scratch.find(words) >= 0
    return result
