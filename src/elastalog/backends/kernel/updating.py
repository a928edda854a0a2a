"""How the kernel goes from one epoch to the next: strata maintained, refolded or evaluated anew, in a transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.evaluating import KernelEvaluation
from elastalog.backends.kernel.execution import aggregates, classes
from elastalog.backends.kernel.execution.bound_variant import Scratch
from elastalog.backends.kernel.levels.course import StratumCourse
from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan, StratumMaintenance, load_operators
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store import bookkeeping, transaction
from elastalog.backends.kernel.store.annotations import FIXED, IS, MARKS, WAS
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import Transaction
from elastalog.backends.protocol import Procedure, Reach, StateChanges
from elastalog.backends.rows import are_in, distinct
from elastalog.backends.watch import BudgetExceeded
from elastalog.planning.logical import LogicalProgram, LogicalStratum

if TYPE_CHECKING:
    from elastalog.backends.kernel.dense.dense_update import DenseMaintenance
    from elastalog.backends.kernel.levels.best_update import BestPlan, BestUpdate
    from elastalog.backends.kernel.sets.set_plan import SetPlan
    from elastalog.backends.kernel.sets.set_update import StratumSets

    AnyMaintenance: TypeAlias = StratumCourse | StratumMaintenance | DenseMaintenance | StratumSets | BestUpdate

T = TypeVar("T")


class KernelUpdates:
    """The update under way, in `transaction`; an empty one between updates. `plans`: how strata are maintained. While
    there are `departures` rows keep their numbers."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self.evaluation = evaluation
        self.held = evaluation.held
        self.transaction = Transaction()
        self.departures = 0
        self._scratch = Scratch(evaluation.watch)
        self._workspace = Workspace()
        self._maintenance: AnyMaintenance | None = None
        self._was_complete = True
        self.follow(evaluation.program)

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.plans: dict[int, MaintenancePlan] = {}
        self._courses: dict[int, StratumCourse] = {}
        self._set_plans: dict[int, SetPlan] = {}
        self._best_plans: dict[int, BestPlan] = {}
        self._flat = program.flat
        self._own = {stratum.number: frozenset(stratum.relations) for stratum in program.strata}
        self._reads = {stratum.number: stratum.reads for stratum in program.strata}
        self._owner = {name: stratum.number for stratum in program.strata for name in stratum.relations}
        self._place = {stratum.number: place for place, stratum in enumerate(program.strata)}
        self._readers: dict[str, list[int]] = {}
        for stratum in program.strata:
            for name in stratum.reads:
                self._readers.setdefault(name, []).append(stratum.number)
        self._concerned: set[int] = set()
        self._changes_followed = 0
        self._explicit_only = frozenset(
            name
            for stratum in program.strata
            if not stratum.clauses and not stratum.is_folded
            for name in stratum.relations
        )

    def prepare(self, stratum: LogicalStratum) -> None:
        """Plans updates of a stratum, makes the indexes they need and loads the operators."""
        if stratum.number in self.evaluation.best_only:
            self._best_plan(stratum).prepare(self.held.relations)
        else:
            self._plan(stratum).prepare(self.held.relations)
        if self.held.annotation.support in (Support.LEVELS, Support.VECTORS):
            load_operators()

    def _plan(self, stratum: LogicalStratum) -> MaintenancePlan:
        plan = self.plans.get(stratum.number)
        if plan is None:
            evaluation, annotation = self.evaluation, self.held.annotation
            plan = self.plans[stratum.number] = MaintenancePlan(
                stratum,
                self.held.relations,
                self._flat if annotation.is_global else self._reads[stratum.number],
                evaluation.dictionary,
                evaluation.program.checked.source,
                annotation.is_global,
                annotation.support is not Support.VECTORS,
            )
        return plan

    def begin(
        self,
        deleted: Mapping[str, Matrix],
        inserted: Mapping[str, Matrix],
        anew: frozenset[str],
        is_explicit: Callable[[str, Matrix], Vector],
    ) -> None:
        """Starts an update: see `Backend.begin`."""
        done = self.transaction = Transaction(anew=anew)
        self._changes_followed = 0
        self._was_complete = self.evaluation.is_complete
        for name in (*deleted, *(n for n in inserted if n not in deleted)):
            come = inserted.get(name)
            go = deleted.get(name)
            if come is not None and len(come):
                come = distinct(come)
                known = is_explicit(name, come)
                kept = come if not np.count_nonzero(known) else come[~known]
                if len(kept):
                    done.inserted[name] = kept
            if go is not None and len(go):
                go = distinct(go)
                known = is_explicit(name, go)
                go = go if np.count_nonzero(known) == len(go) else go[known]
                if come is not None and len(come) and len(go):
                    go = go[~are_in(go, come)]
                if len(go):
                    done.deleted[name] = go
        given = (*done.deleted, *done.inserted, *anew)
        self._concerned = {self._owner[name] for name in given if name in self._owner}

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How the update under way reaches a stratum: see `Backend.reached`."""
        done = self.transaction
        if len(done.changed) != self._changes_followed:
            self._follow_changes()
        if stratum.number not in self._concerned:
            return None
        own, reads = self._own[stratum.number], self._reads[stratum.number]
        if (
            reads.isdisjoint(done.changed)
            and own.isdisjoint(done.deleted)
            and own.isdisjoint(done.inserted)
            and own.isdisjoint(done.anew)
        ):
            return None
        size = 0
        for name in own:
            size += len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))
        for name in reads:
            size += len(done.changed.get(name, ()))
        return Reach(size, self.must_rebuild(stratum))

    def affected(self) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `Backend.affected`. Costs what they are, not what there
        are."""
        strata, changed = self.evaluation.program.strata, self.transaction.changed
        places = [self._place[number] for number in self._concerned]
        heapify(places)
        known = set(places)
        followed = 0
        while places:
            stratum = strata[heappop(places)]
            reach = self.reached(stratum)
            if reach is not None:
                yield stratum, reach
            for name in islice(changed, followed, None):
                for number in self._readers.get(name, ()):
                    place = self._place[number]
                    if place not in known:
                        known.add(place)
                        heappush(places, place)
            followed = len(changed)

    def follow_again(self) -> None:
        """Somebody has taken changes back."""
        self._changes_followed = 0

    def _follow_changes(self) -> None:
        """Finds the strata that read what has changed meanwhile: most do not, and are asked about all the same."""
        changed = self.transaction.changed
        for name in islice(changed, self._changes_followed, None):
            self._concerned.update(self._readers.get(name, ()))
        self._changes_followed = len(changed)

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        """Whether the stratum cannot be maintained in the update under way: its rules are others, it has a choice
        domain, or subsumption by which more than the best of every key matters, or a `.limitsize` may have to cut it
        short."""
        number, evaluation = stratum.number, self.evaluation
        if number in evaluation.limited or (number in evaluation.chosen and number not in evaluation.best_only):
            return True
        return not self.transaction.anew.isdisjoint(stratum.relations)

    def size_now(self, relation: str) -> int:
        """How many facts a relation has now, pairs of an equivalence that are not written out left aside."""
        stored = self.held.relations[relation]
        if relation in self.transaction.replaced:
            return stored.present
        marks = stored.touched[: stored.touched_used, MARKS]
        return stored.present + int(np.count_nonzero(marks & IS)) - int(np.count_nonzero(marks & WAS))

    def receive(self, relation: KernelRelation, changes: StateChanges) -> None:
        """Makes what somebody else has found to change in a relation a part of the update under way."""
        changed = transaction.receive(relation, changes, self.held.annotation.is_global)
        if len(changed):
            self.transaction.changed[relation.name] = changed

    # --- strata ----------------------------------------------------------------------------------------------------

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T]) -> T:
        """Has a procedure bring a stratum to its new fixpoint: see `Backend.maintain`."""
        support = self.held.annotation.support
        maintenance: AnyMaintenance
        if support is not Support.LEVELS and support is not Support.VECTORS:
            maintenance = self._by_sets(stratum)
        elif stratum.number in self.evaluation.best_only:
            maintenance = self._by_best(stratum)
        elif support is Support.VECTORS or self._is_given(stratum):
            if support is Support.LEVELS and not stratum.clauses:
                self._change_explicit(stratum)
                return cast(T, None)  # as every procedure of this kind
            maintenance = self._by_levels(stratum)
        else:
            maintenance = self._course(stratum)
        self._maintenance = maintenance
        try:
            outcome = cast(Any, procedure)(maintenance)
            self.transaction.changed.update(self._net_changes(maintenance))
            for name in maintenance.own:
                self.evaluation.watch.touched += self.held.relations[name].touched_used
        except BudgetExceeded:
            maintenance.abandon()
            for name in maintenance.own:
                transaction.rollback(self.held.relations[name])
            self._maintenance = None
            raise
        self._maintenance = None
        return cast(T, outcome)

    def _net_changes(self, maintenance: AnyMaintenance) -> dict[str, Vector]:
        if isinstance(maintenance, StratumMaintenance):
            return maintenance.end(self.held.annotation.is_global)
        return maintenance.end()

    def _is_given(self, stratum: LogicalStratum) -> bool:
        """Whether explicit facts of a stratum change."""
        own, done = self._own[stratum.number], self.transaction
        return not (own.isdisjoint(done.deleted) and own.isdisjoint(done.inserted))

    def _change_explicit(self, stratum: LogicalStratum) -> None:
        """All that an update means to a stratum without rules: explicit facts go and come."""
        done = self.transaction
        for name in stratum.relations:
            relation = self.held.relations[name]
            if (gone := done.deleted.get(name)) is not None:
                transaction.change_explicit(relation, relation.find(gone), is_present=False)
            if (come := done.inserted.get(name)) is not None:
                transaction.change_explicit(relation, transaction.add_rows(relation, come), is_present=True)
            if relation.touched_used:
                done.changed[name] = np.arange(relation.touched_used, dtype=np.int32)

    def _course(self, stratum: LogicalStratum) -> StratumCourse:
        """Only what it reads has changed."""
        plan = self._plan(stratum)
        course = self._courses.get(stratum.number)
        if course is None or course.plan is not plan.machine:
            course = self._courses[stratum.number] = StratumCourse(
                stratum.relations, plan, self.held.relations, self.evaluation.watch, self._workspace,
                self.held.annotation.is_global,
            )  # fmt: skip
        course.begin(self._below(stratum))
        return course

    def _by_levels(self, stratum: LogicalStratum) -> StratumMaintenance | DenseMaintenance:
        """The explicit facts that go and come get their entries."""
        done, relations = self.transaction, self.held.relations
        deleted: dict[str, Vector] = {}
        inserted: dict[str, Vector] = {}
        for name in stratum.relations:
            relation = relations[name]
            if name in done.deleted:
                deleted[name] = transaction.touch(relation, relation.find(done.deleted[name]))
            if name in done.inserted:
                inserted[name] = transaction.touch(relation, transaction.add_rows(relation, done.inserted[name]))
                bookkeeping.mark(inserted[name], relation.touched, FIXED, 0)
        below, plan, watch = self._below(stratum), self._plan(stratum), self.evaluation.watch
        if self.held.annotation.support is Support.VECTORS:
            from elastalog.backends.kernel.dense.dense_update import DenseMaintenance

            return DenseMaintenance(
                stratum, plan, relations, below, deleted, inserted, watch, self._workspace, self.held.vectors
            )
        return StratumMaintenance(stratum, plan, relations, below, deleted, inserted, watch, self._workspace)

    def _by_best(self, stratum: LogicalStratum) -> BestUpdate:
        from elastalog.backends.kernel.levels.best_update import BestUpdate

        done = self.transaction
        (name,) = stratum.relations
        gone, come = done.deleted.get(name), done.inserted.get(name)
        plan, below = self._best_plan(stratum), self._below(stratum)
        return BestUpdate(plan, self.held.relations, below, gone, come, self.evaluation.watch)

    def _best_plan(self, stratum: LogicalStratum) -> BestPlan:
        from elastalog.backends.kernel.levels.best_update import BestPlan

        forward, evaluation = self._plan(stratum), self.evaluation
        plan = self._best_plans.get(stratum.number)
        if plan is None or plan.forward is not forward.forward:
            plan = self._best_plans[stratum.number] = BestPlan(
                stratum, forward, evaluation.best_only[stratum.number], self.held.relations, evaluation.dictionary,
                evaluation.program.checked.source,
            )  # fmt: skip
        return plan

    def _by_sets(self, stratum: LogicalStratum) -> StratumSets:
        from elastalog.backends.kernel.sets.set_plan import SetPlan
        from elastalog.backends.kernel.sets.set_update import StratumSets

        done, relations = self.transaction, self.held.relations
        deleted: dict[str, Vector] = {}
        inserted: dict[str, Vector] = {}
        for name in stratum.relations:
            relation = relations[name]
            if name in done.deleted:
                deleted[name] = relation.find(done.deleted[name])
            if name in done.inserted:
                inserted[name] = transaction.add_rows(relation, done.inserted[name])
        below, evaluation = self._below(stratum), self.evaluation
        plan = self._set_plans.get(stratum.number)
        if plan is None:
            plan = self._set_plans[stratum.number] = SetPlan(
                stratum, self._plan(stratum), relations, evaluation.dictionary, evaluation.program.checked.source
            )
        return StratumSets(
            stratum, plan, relations, self.held.annotation.support, below, deleted, inserted,
            self._explicit_only & {*self._reads[stratum.number], *stratum.relations}, evaluation.watch, self._scratch,
        )  # fmt: skip

    def _below(self, stratum: LogicalStratum) -> dict[str, Vector]:
        """The changes of relations that a stratum reads."""
        changed = self.transaction.changed
        return {name: changed[name] for name in self._reads[stratum.number] if name in changed}

    def refold(self, stratum: LogicalStratum) -> None:
        """Maintains an aggregate, or the classes of an equivalence: see `Backend.refold`."""
        evaluation, done = self.evaluation, self.transaction
        equivalence = stratum.equivalence
        if equivalence is not None:
            changed = classes.refold(equivalence, done.changed[equivalence.pairs], self.held.relations)
            if len(changed):
                done.changed[equivalence.relation] = changed
            return
        assert stratum.aggregate is not None
        changed = aggregates.refold(
            stratum.aggregate, self._below(stratum), self.held.relations, evaluation.dictionary,
            evaluation.program, self.held.annotation.is_global,
        )  # fmt: skip
        if len(changed):
            done.changed[stratum.aggregate.relation] = changed

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum anew from its new explicit facts. Returns the derivations enumerated."""
        done, held = self.transaction, self.held
        variants = self.evaluation.variants.get(stratum.number)
        if variants is None or not variants.suit(stratum):
            variants = None
            self.plans.pop(stratum.number, None)
        for name in stratum.relations:
            old = done.replaced[name] = held.relations[name]
            if name in held.vectors:
                done.vectors[name] = held.vectors[name]
            indexed = variants.indexes_of(name) if variants is not None else ()
            # Facts of an aggregate are never explicit, though that of an empty group may have level 0.
            explicit = self._explicit_in(old) if stratum.aggregate is None else old.rows[:0]
            if stratum.aggregate is not None and stratum.aggregate.is_numbering:
                explicit = old.rows[old.present_rows()]  # derivations that stay keep their numbers
            held.relations[name] = rebuild.successor(old, explicit, indexed)
        derivations = self.evaluation.evaluate(stratum, variants)
        for name in stratum.relations:
            new, old = held.relations[name], done.replaced[name]
            if held.annotation.is_kept:
                changed = rebuild.adopt(new, old, held.annotation.is_global)
            else:
                changed = rebuild.differences(new, old)
            if len(changed):
                done.changed[name] = changed
        return derivations

    def explicit_facts(self, relation: str) -> Matrix:
        """The explicit facts of a relation after the update under way, which has not reached it yet."""
        return self._explicit_in(self.held.relations[relation])

    def _explicit_in(self, old: KernelRelation) -> Matrix:
        deleted, inserted = self.transaction.deleted.get(old.name), self.transaction.inserted.get(old.name)
        return rebuild.explicit_facts(old, self.held.explicit_rows(old), deleted, inserted)

    def forget(self, stratum: LogicalStratum) -> None:
        """A stratum was evaluated elsewhere: what was made for its last evaluation here is of no use."""
        self.evaluation.variants.pop(stratum.number, None)
        self.plans.pop(stratum.number, None)

    # --- the end ---------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Ends the update: its state becomes that of the new epoch."""
        held, done = self.held, self.transaction
        self._was_complete = self.evaluation.is_complete
        for vectors in held.vectors.values():
            vectors.commit()
        if held.annotation.is_kept:
            for name, relation in held.relations.items():
                if relation.touched_used:
                    transaction.commit(relation, name in done.replaced)
                    self._compact(relation)
        else:
            for name in done.replaced:
                held.explicit[name] = self.explicit_after(name)
        self.transaction = Transaction()

    def explicit_after(self, name: str) -> int:
        """The number of explicit facts of a relation after the update under way."""
        done = self.transaction
        before = self.held.explicit.get(name, 0)
        return before - len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))

    def rollback(self) -> None:
        """Ends the update: everything is as it was."""
        held, done = self.held, self.transaction
        self.evaluation.is_complete = self._was_complete
        if self._maintenance is not None:
            # What interrupted it may have kept it from telling its relations how far they go.
            self._maintenance.abandon()
            self._maintenance = None
        held.vectors.update(done.vectors)
        for vectors in held.vectors.values():
            vectors.rollback()
        for name, old in done.replaced.items():
            held.relations[name] = old
        for relation in held.relations.values():
            if relation.touched_used or not relation.is_settled:
                transaction.rollback(relation)
                self._compact(relation)
        self.transaction = Transaction()

    def _compact(self, relation: KernelRelation) -> None:
        # Other supports keep row numbers from epoch to epoch.
        if self.held.annotation.has_levels_only and relation.is_sparse and not self.departures:
            with contextlib.suppress(MemoryError):  # it is worth doing, not worth losing an epoch for
                relation.compact()
