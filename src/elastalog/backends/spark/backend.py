"""The backend on Spark: strata are evaluated and maintained by tasks where that is possible and pays, and by a kernel
in the driver otherwise.

An update of a stratum that decomposes runs in tasks too, as the kernel's own maintenance, in those whose shares it
concerns. What tasks have exchanged is maintained by the kernel in the driver, if there is room, and evaluated anew by
exchanging tasks otherwise. Results are identical, levels and counts included. Where the facts are meanwhile is the
business of `relations`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.protocol import (
    GONE,
    Capabilities,
    ChangedWords,
    Matrix,
    Procedure,
    Profile,
    Reach,
    Small,
    Vector,
)
from elastalog.backends.spark.cluster import Cluster
from elastalog.backends.spark.placement import FALLEN_BACK, Placement, bytes_of, choose, memory_allowed, spared
from elastalog.backends.spark.relations import FilesOfTasks, SparkRelations
from elastalog.backends.spark.results import Outcome
from elastalog.backends.spark.strata import Explicit, StratumJobs
from elastalog.backends.spark.task import nothing_more
from elastalog.backends.spark.word_files import FiledRelation, Pending
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.folders.files import files_at
from elastalog.planning.decompose import SharePlan
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.words import Dictionary

T = TypeVar("T")


class SparkBackend:
    """See `backends.protocol.Backend`. `is_elastic`: strata that fit the driver's memory stay there. `placements`:
    where each stratum was last evaluated."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        cluster: Cluster,
        is_elastic: bool,
        annotation: Annotation,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> None:
        self.annotation = annotation
        self._dictionary = dictionary
        self.is_elastic = is_elastic
        self.placements: dict[int, Placement] = {}
        self.kernel = KernelBackend(
            program, dictionary, annotation=annotation, jobs=jobs, watch=watch,
            fetch=lambda name: self.relations.fetch(name),
        )  # fmt: skip
        kernel, self.watch = self.kernel, self.kernel.watch
        self.contains, self.facts, self.select = kernel.contains, kernel.facts, kernel.select
        self.derivations = kernel.derivations
        folder = cluster.new_folder("relations")
        # Files go with the backend, however it goes.
        weakref.finalize(self, files_at(folder).remove_folder, folder)
        self._jobs = StratumJobs(cluster.spark, program, dictionary, folder, self.kernel.watch, annotation)
        self.relations = self.states = SparkRelations(self.kernel, annotation, folder)
        self.size = self.stored = self.relations.size
        self.commit, self.rollback = self.relations.commit, self.relations.rollback
        self.changes = SparkChanges(self.kernel, self.relations)
        self.capabilities = Capabilities(elsewhere=FilesOfTasks(cluster.spark, self.relations))

    def __getstate__(self) -> Any:
        raise TypeError("a backend stays in the driver")

    @property
    def program(self) -> LogicalProgram:
        return self.kernel.program

    @property
    def is_complete(self) -> bool:
        return self.kernel.is_complete

    # --- facts -----------------------------------------------------------------------------------------------------

    def load(self, facts: dict[str, Matrix]) -> None:
        for relation in facts:
            self.relations.files.forget(self.relations.home_of(relation))
        self.kernel.load(facts)

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        return self.relations.is_explicit(self.relations.home_of(relation), words)

    def profile(self) -> Profile:
        strata = {stratum.number: stratum for stratum in self.kernel.program.strata}
        placed = {
            number: placement.placed(strata[number])
            for number, placement in self.placements.items()
            if number in strata
        }
        profile = self.kernel.profile()
        elsewhere = tuple(cost for number, cost in sorted(self._jobs.costs.items()) if self._is_in_tasks(number))
        places = tuple(placed.get(one.stratum, one) for one in profile.places)
        return replace(profile, places=places, elsewhere=elsewhere)

    def _is_in_tasks(self, stratum: int) -> bool:
        placement = self.placements.get(stratum)
        return placement is not None and placement.plan is not None

    # --- placement -------------------------------------------------------------------------------------------------

    def placement(self, stratum: LogicalStratum) -> Placement:
        """Where a stratum would be evaluated now."""
        sizes = {name: self.size(name) for name in (*stratum.reads, *stratum.relations)}
        return choose(
            self.program, stratum, sizes, annotation=self.annotation, is_elastic=self.is_elastic,
            least_rows=self._jobs.least_rows, memory=memory_allowed(self.watch.memory),
            functions=self._dictionary.functions, has_made_values=stratum.number in self._jobs.value_makers,
            why_apart=self._jobs.why_apart,
        )  # fmt: skip

    def _place(self, stratum: LogicalStratum, placement: Placement) -> Placement:
        self.placements[stratum.number] = placement
        placement.tell(stratum)
        return placement

    def _plan_for(self, stratum: LogicalStratum, placement: Placement, files: Mapping[str, FiledRelation]) -> SharePlan:
        """The plan of the tasks, now that the files that they read are known."""
        plan = placement.plan
        assert plan is not None
        if plan.decomposes and not plan.is_for_one and self._may_exchange(stratum):
            part = self._jobs.heavy(plan, files).greatest
            placement = spared(placement, stratum, part, self._jobs.shares(plan))
        return self._place(stratum, placement).plan or plan

    def _may_exchange(self, stratum: LogicalStratum) -> bool:
        """Whether tasks may exchange facts although the stratum decomposes."""
        has_choices = any(self.program.relations[name].choices for name in stratum.relations)
        has_levels = self.annotation.support is Support.LEVELS and not self.annotation.is_global
        is_hindered = has_choices or stratum.aggregate is not None or stratum.number in self._jobs.value_makers
        return has_levels and not is_hindered and self._jobs.why_apart is None

    def _after_failure(self, stratum: LogicalStratum) -> Placement:
        """Where a stratum is evaluated after tasks have failed: by tasks again, if they failed only because each had
        numbered new values for itself, or because they could not exchange."""
        return self.placement(stratum) if self._jobs.is_hindered else FALLEN_BACK

    def _is_read_here(self, name: str) -> bool:
        """Whether strata that read a relation are evaluated, or maintained, in the driver."""
        return any(name in stratum.reads and self._is_here(stratum) for stratum in self.program.strata)

    def _is_here(self, stratum: LogicalStratum) -> bool:
        placement = self.placements.get(stratum.number)
        if placement is None or placement.plan is None:
            return True
        return not placement.plan.decomposes and self.kernel.evicted.isdisjoint(stratum.relations)

    # --- evaluation ------------------------------------------------------------------------------------------------

    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None:
        self.relations.files.rename(renamed, program.relations)
        self.kernel.reprogram(program, renamed, guards)
        self.placements.clear()
        self._jobs.follow(program)

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Evaluates the stratum in tasks or in the driver."""
        if stratum.aggregate is None and not stratum.clauses:
            return self.kernel.bootstrap(stratum)
        found = self._evaluated_by_tasks(stratum, self.relations.now)
        if found is not None:
            for name in stratum.relations:
                self.relations.only_in(name, found.written[name].states)
            self.kernel.updates.forget(stratum)
            return found.derivations
        self.kernel.fetch(stratum)  # explicit facts may be in files only
        for name in stratum.relations:
            self.relations.files.forget(name)
        return self.kernel.bootstrap(stratum)

    def _evaluated_by_tasks(
        self, stratum: LogicalStratum, files_of: Callable[[str], FiledRelation], explicit: Explicit | None = None
    ) -> Outcome | None:
        """What came of a stratum that tasks evaluate, anew if explicit changes are given; None if the driver must."""
        placement = self.placement(stratum)
        while placement.plan is not None:
            files = {name: files_of(name) for name in placement.plan.relations}
            plan = self._plan_for(stratum, placement, files)
            found = self._jobs.evaluate(plan, files, explicit or ({}, {}), is_rebuilt=explicit is not None)
            if found is not None:
                if not found.is_complete:
                    self.kernel.evaluation.is_complete = False
                return found
            placement = self._after_failure(stratum)
        self._place(stratum, placement)
        return None

    def prepare(self, stratum: LogicalStratum) -> None:
        if self.kernel.evicted.isdisjoint(stratum.relations):
            self.kernel.prepare(stratum)

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T], *, is_portable: bool) -> list[T]:
        """Maintains the stratum in tasks, if it was last evaluated there and decomposes."""
        if self._is_given(stratum):
            self._take_given(stratum)
            return []
        if stratum.ranked is not None and self._known_placement(stratum).plan is not None:
            raise BudgetExceeded("a task evaluates it in rounds")
        outcomes = self._maintained_by_tasks(stratum, procedure) if is_portable and stratum.clauses else None
        if outcomes is None:
            self.kernel.fetch(stratum)
            outcomes = self.kernel.maintain(stratum, procedure, is_portable=is_portable)
        return outcomes

    def _is_given(self, stratum: LogicalStratum) -> bool:
        """Whether a stratum has only explicit facts with levels, and has them in files only."""
        is_bare = not (stratum.clauses or stratum.is_folded or stratum.dominance) and not any(
            self.program.relations[name].choices for name in stratum.relations
        )
        return is_bare and self.annotation.has_levels_only and self.kernel.evicted.issuperset(stratum.relations)

    def _take_given(self, stratum: LogicalStratum) -> None:
        deleted, inserted = self._explicit_of(stratum)
        for name in {**deleted, **inserted}:
            filed = self.relations.files.current[name]
            if filed.is_worn and (routing := filed.base[0].routing) is not None:
                self.relations.files.set(name, self._jobs.write_anew(name, filed, routing))
            nothing = np.empty((0, self.program.relations[name].width), np.int32)
            self.relations.take_given(name, deleted.get(name, nothing), inserted.get(name, nothing))

    def _known_placement(self, stratum: LogicalStratum) -> Placement:
        """Where the stratum was evaluated last; if it was not, where it is best evaluated."""
        known = self.placements.get(stratum.number)
        return self._place(stratum, self.placement(stratum)) if known is None else known

    def _maintained_by_tasks(self, stratum: LogicalStratum, procedure: Procedure[T]) -> list[T] | None:
        """What the procedure returned for every share; None if nothing has been done, and the driver is to do it.
        Raises BudgetExceeded if the driver has no room for what tasks have exchanged."""
        placement = self._known_placement(stratum)
        while placement.plan is not None and placement.plan.decomposes:
            returned = self._maintained_by(placement.plan, procedure)
            if returned is not None:
                return returned
            placement = self._place(stratum, self._after_failure(stratum))
        if placement.plan is not None and not self._is_here(stratum):
            sizes = {name: self.size(name) for name in (*stratum.reads, *stratum.relations)}
            if bytes_of(self.program, sizes) > memory_allowed(self.watch.memory):
                raise BudgetExceeded("the driver has no room for what tasks have exchanged")
        return None

    def _maintained_by(self, plan: SharePlan, procedure: Procedure[T]) -> list[T] | None:
        """What the procedure returned for every share, by the tasks of a plan; None if nothing has been done."""
        stratum, relations = plan.stratum, self.relations
        for name in stratum.relations:
            # The last evaluation may have been taken back, or was of another program.
            self._jobs.share_as(plan, name, relations.files.current.get(name))
        owners = {name: self._jobs.owners(plan, name) for name in stratum.relations}
        before = {name: relations.before(name, owners.get(name)) for name in plan.relations}
        lower = (name for name in plan.relations if name not in owners)
        below = {n: pending for n in lower if (pending := relations.pending(n)) is not None and pending.number}
        found = self._jobs.maintain(plan, before, below, self._explicit_of(stratum), procedure)
        if found is None:
            return None
        for name in stratum.relations:
            written = found.written[name]
            if written.changes:
                after = before[name].followed_by(written.changes)
                for state in written.states:
                    after = after.with_share_anew(state)
                self._take(name, Pending(after, written.changes, written.heard))
            elif name not in self.kernel.evicted and not self._is_read_here(name):
                self.kernel.evict(name)
        return found.returned

    def _take(self, name: str, pending: Pending) -> None:
        self.relations.take(name, pending, is_read_here=self._is_read_here(name))

    def _explicit_of(self, stratum: LogicalStratum) -> Explicit:
        own = set(stratum.relations)
        done = self.kernel.updates.transaction
        deleted, inserted = ({n: w for n, w in side.items() if n in own} for side in (done.deleted, done.inserted))
        return deleted, inserted

    def refold(self, stratum: LogicalStratum) -> None:
        """Refolds the aggregate in tasks, if its members are in files only."""
        assert stratum.aggregate is not None
        is_evicted = stratum.aggregate.members in self.kernel.evicted
        if not is_evicted or self._maintained_by_tasks(stratum, nothing_more) is None:
            self.kernel.fetch(stratum)
            self.kernel.refold(stratum)

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates the stratum anew in tasks or in the driver; tasks also tell what has changed."""
        relations, own = self.relations, frozenset(stratum.relations)
        if stratum.clauses or stratum.aggregate is not None:
            explicit = self._explicit_of(stratum)
            found = self._evaluated_by_tasks(
                stratum, lambda name: relations.before(name) if name in own else relations.now(name), explicit
            )
            if found is not None:
                for name in stratum.relations:
                    written = found.written[name]
                    self._take(name, Pending(FiledRelation(written.states), written.changes, written.heard))
                self.kernel.updates.forget(stratum)
                return found.derivations
        self.kernel.fetch(stratum)
        return self.kernel.rebuild(stratum)

    # --- transaction -----------------------------------------------------------------------------------------------

    def begin(
        self, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], anew: frozenset[str] = frozenset()
    ) -> None:
        self.kernel.begin(deleted, inserted, anew, is_explicit=self.relations.is_explicit)


class SparkChanges:
    """See `backends.protocol.UpdateChanges`."""

    def __init__(self, kernel: KernelBackend, relations: SparkRelations) -> None:
        self._kernel = kernel
        self._relations = relations
        self.size = relations.size

    def explicit(self) -> tuple[Mapping[str, Matrix], Mapping[str, Matrix]]:
        return self._kernel.changes.explicit()

    def facts(self, with_hidden: bool = False) -> ChangedWords:
        found = dict(self._kernel.changes.facts(with_hidden))
        for name, changes in self._relations.changed_in_files().items():
            came, went = changes.was == GONE, changes.level == GONE
            is_visible = with_hidden or not self._kernel.program.relations[name].is_hidden
            if is_visible and (came.any() or went.any()):
                found[name] = changes.words[came], changes.words[went]
        return found

    def came(self, relation: str) -> Matrix:
        changes = self._relations.changed_in_files().get(relation)
        return self._kernel.changes.came(relation) if changes is None else changes.words[changes.was == GONE]

    def levels(self, relation: str) -> tuple[int, int]:
        return self._kernel.changes.levels(relation) if self._relations.filed(relation) is None else (0, 0)

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        kernel = self._kernel
        reach = kernel.changes.reached(stratum)
        pending, changed = self._relations.files.pending, kernel.updates.transaction.changed
        heard = sum(pending[n].number for n in stratum.reads if n in pending and n not in changed)
        if not heard:
            return reach
        if reach is None:
            return Reach(heard, self.must_rebuild(stratum))
        return replace(reach, changes=reach.changes + heard)

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        return self._kernel.changes.must_rebuild(stratum)

    def affected(self, small: Small | None = None) -> Iterator[tuple[LogicalStratum, Reach]]:
        for stratum in self._kernel.program.strata:
            reach = self.reached(stratum)
            if reach is not None:
                yield stratum, reach
