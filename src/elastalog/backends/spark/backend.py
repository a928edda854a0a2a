"""The backend on Spark: strata are evaluated and maintained by tasks where that is possible and pays, and in the driver
otherwise.

What tasks derive stays in files, shared by hash, from epoch to epoch. An update of a stratum runs in tasks too: if it
decomposes, as the kernel's own maintenance, in those whose shares it concerns; otherwise with an exchange after every
step. Results are identical, levels and counts included. The files of an update belong to the relations when the driver
commits; until then, and after a rollback, they are those of the epoch before.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.kernel.execution.backward import BackwardEvaluation
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.parallel import make_workers
from elastalog.backends.protocol import GONE, ChangedWords, Matrix, StateChanges, Vector
from elastalog.backends.sets import Support
from elastalog.backends.spark.filed import Coming, FiledRelation, RelationFiles
from elastalog.backends.spark.placement import FALLEN_BACK, LIMITED, Placement, choose, memory_allowed, spared
from elastalog.backends.spark.resident import ResidentRelations
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.states import are_heard, old_levels, state_before
from elastalog.backends.spark.strata import StratumJobs
from elastalog.backends.spark.update_task import nothing_more
from elastalog.backends.spark.word_files import are_explicit, write_changes
from elastalog.backends.watch import Watch
from elastalog.planning.decompose import SharePlan
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elastalog.backends.kernel.dense.dense_update import DenseMaintenance
    from elastalog.backends.kernel.levels.stratum_update import StratumMaintenance
    from elastalog.backends.kernel.sets.set_update import StratumSets

T = TypeVar("T")


class SparkBackend(KernelBackend):
    """See `backends.protocol.Backend`. `is_elastic`: strata that fit the driver's memory stay there."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        spark: SparkSession,
        new_folder: Callable[[str], Path],
        is_elastic: bool,
        is_annotated: bool,
        is_global: bool = False,
        support: Support = Support.LEVELS,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(
            program, dictionary, is_annotated=is_annotated, is_global=is_global, support=support, jobs=jobs, watch=watch
        )
        self.spark = spark
        self.is_elastic = is_elastic
        self.placements: dict[int, Placement] = {}
        """Where each stratum was last evaluated."""
        self._folder = new_folder("relations")
        # Files go with the backend, however it goes.
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.files = RelationFiles()
        self._away = ResidentRelations(self.relations, self._fetch)
        self.relations = self._away
        self._jobs = StratumJobs(spark, program, dictionary, self._folder, self.watch, is_annotated, is_global, support)
        self._workers = make_workers(self.relations, self.watch, jobs)
        self._backward = BackwardEvaluation(program, self.relations, dictionary)

    def __getstate__(self) -> Any:
        raise TypeError("a backend stays in the driver")

    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None:
        away = self._away.away
        moved = {renamed.get(name, name) for name in away}
        # Their names change without anybody looking at them.
        away.clear()
        self.files.rename(renamed, program.relations)
        super().reprogram(program, renamed, guards)
        away.update(moved.intersection(program.relations))
        self.placements.clear()
        self._jobs.follow(program)

    # --- relations in files ----------------------------------------------------------------------------------------

    def filed(self, relation: str) -> FiledRelation | None:
        """The files of a relation that is in files only, None if it is here."""
        return self.files.latest(relation) if relation in self._away.away else None

    def size(self, relation: str) -> int:
        """The number of facts; of relations in files without fetching them."""
        if relation in self._away.away:
            filed = self.files.latest(relation)
            assert filed is not None
            return filed.size
        return super().size(relation)

    def bytes_of(self, relation: str) -> int:
        """Memory of a relation in this process."""
        return 0 if relation in self._away.away else super().bytes_of(relation)

    def state(self, relation: str) -> FactWords:
        if relation not in self._away.away:
            return super().state(relation)
        return snapshot.state(*self._read(relation, self.files.current[relation]))

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        if relation not in self._away.away:
            return super().is_explicit(relation, words)
        filed = self.files.current[relation]
        found: Vector = np.zeros(len(words), np.bool_)
        if not filed.has_explicit:
            return found
        # One share after the other: the driver need not have room for all.
        routing = filed.base[0].routing
        shares = [0] if routing is None else np.unique(routing.shares_of(words)).tolist()
        for share in shares:
            width = self.program.relations[relation].width
            held, _ = snapshot.restored(relation, width, True, *filed.read(width, routing, share))
            rows = held.find(words)
            is_held = rows >= 0
            found[is_held] |= are_explicit(old_levels(held), self.support)[rows[is_held]]
        return found

    def load(self, relation: str, words: Matrix) -> None:
        self.files.forget(relation)
        super().load(relation, words)

    def restore(self, relation: str, facts: FactWords, changes: Any) -> None:
        self.files.forget(relation)
        super().restore(relation, facts, changes)

    def prepare(self, stratum: LogicalStratum) -> None:
        if not self._away.away.intersection(stratum.relations):
            super().prepare(stratum)

    def _read(self, name: str, filed: FiledRelation) -> tuple[KernelRelation, int]:
        width = self.program.relations[name].width
        return snapshot.restored(name, width, self.is_annotated, *filed.read(width))

    def _fetch(self, name: str) -> KernelRelation:
        """The relation in memory, with what the update under way has changed in it so far."""
        coming = self.files.coming.get(name)
        if coming is None or self.is_annotated:
            relation, self._explicit[name] = self._read(name, self.files.current[name])
        else:
            relation, self._explicit[name] = self._read(name, coming.after)
        if coming is not None and self.is_annotated:
            self._tell(name, relation, coming)
        return relation

    def _tell(self, name: str, relation: KernelRelation, coming: Coming) -> None:
        changed = transaction.receive(relation, coming.read(relation.width), self.is_global)
        if len(changed):
            self._transaction.changed[name] = changed

    def _before(self, name: str, routing: Routing | None = None) -> FiledRelation:
        """A relation in files as it was before the update under way; they are shared as given, if there were none."""
        filed = self.files.current.get(name)
        if filed is None:
            relation = self._transaction.replaced.get(name, self.relations[name])
            facts = state_before(relation, self._explicit.get(name, 0))
            filed = FiledRelation(self._jobs.write_shared(name, facts, routing))
            self.files.set(name, filed)
        return filed

    def _news(self, name: str) -> Coming | None:
        """What the update under way has changed in a relation, in files. None: nothing."""
        coming = self.files.coming.get(name)
        done = self._transaction
        if coming is None and (name in done.changed or name in done.replaced):
            relation = self.relations[name]
            if name not in done.replaced:
                changes = snapshot.maintained_changes(relation)
            elif self.is_annotated:
                changes = snapshot.replaced_changes(relation, done.replaced[name])
            else:
                explicit = self._explicit_after(name), self._explicit.get(name, 0)
                changes = snapshot.recomputed_changes(relation, explicit[0], done.replaced[name], explicit[1])
            before = self._before(name)
            file = write_changes(self._folder, name, changes, self.support)
            heard = int(are_heard(changes, self.is_global).sum())
            coming = self.files.coming[name] = Coming(before.followed_by((file,)), (file,), heard)
        return coming

    def _now(self, name: str) -> FiledRelation:
        """A relation in files in the state under way."""
        news = self._news(name)
        return self._before(name) if news is None else news.after

    # --- bootstrap -------------------------------------------------------------------------------------------------

    def placement(self, stratum: LogicalStratum) -> Placement:
        """Where a stratum would be evaluated now."""
        if stratum.number in self._limited:
            return LIMITED
        sizes = {name: self.size(name) for name in (*stratum.reads, *stratum.relations)}
        return choose(
            self.program, stratum, sizes, support=self.support, is_global=self.is_global, is_elastic=self.is_elastic,
            least_rows=self._jobs.least_rows, memory=memory_allowed(self.watch.memory),
        )  # fmt: skip

    def _plan_for(
        self, stratum: LogicalStratum, placement: Placement, inputs: Mapping[str, FiledRelation]
    ) -> SharePlan:
        """The plan of tasks, now that the inputs are known."""
        plan = placement.plan
        assert plan is not None
        can_exchange = stratum.aggregate is None and self.support is Support.LEVELS and not self.is_global
        if plan.decomposes and can_exchange:
            part = self._jobs.heavy(plan, inputs).greatest
            placement = spared(placement, stratum, part, self._jobs.shares(plan))
        return self._place(stratum, placement).plan or plan

    def _place(self, stratum: LogicalStratum, placement: Placement) -> Placement:
        self.placements[stratum.number] = placement
        placement.tell(stratum)
        return placement

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Brings a stratum to its fixpoint, in tasks or in the driver. Returns the derivations enumerated."""
        if stratum.aggregate is None and not stratum.clauses:
            return super().bootstrap(stratum)
        placement = self.placement(stratum)
        if placement.plan is None:
            self._place(stratum, placement)
        else:
            inputs = {name: self._now(name) for name in placement.plan.relations}
            plan = self._plan_for(stratum, placement, inputs)
            found = self._jobs.evaluate(plan, inputs)
            if found is not None:
                for name in stratum.relations:
                    self.files.set(name, FiledRelation(found.states(name)))
                    self._away.send_away(name)
                self.pipelines.pop(stratum.number, None)
                return found.derivations
            self._place(stratum, FALLEN_BACK)
        for name in stratum.relations:
            self.files.forget(name)
        return super().bootstrap(stratum)

    # --- updates ---------------------------------------------------------------------------------------------------

    def is_affected(self, stratum: LogicalStratum) -> bool:
        return super().is_affected(stratum) or any(self._news_from_tasks(name) for name in stratum.reads)

    def input_size(self, stratum: LogicalStratum) -> int:
        told = self._transaction.changed
        return super().input_size(stratum) + sum(
            self._news_from_tasks(name) for name in stratum.reads if name not in told
        )

    def _news_from_tasks(self, name: str) -> int:
        coming = self.files.coming.get(name)
        return 0 if coming is None else coming.number

    def delegate(self, stratum: LogicalStratum, procedure: Callable[[Any], T]) -> list[T] | None:
        """See the protocol. A stratum that was last evaluated in tasks is maintained there."""
        return self._maintained_by_tasks(stratum, procedure) if stratum.clauses else None

    def _maintained_by_tasks(self, stratum: LogicalStratum, procedure: Callable[[Any], T]) -> list[T] | None:
        placement = self.placements.get(stratum.number)
        if placement is None:
            placement = self._place(stratum, self.placement(stratum))
        plan = placement.plan
        if plan is None:
            return None
        for name in stratum.relations:
            # The last evaluation may have been taken back, or was of another program.
            self._jobs.share_as(plan, name, self.files.current.get(name))
        own = {name: self._jobs.teller(plan, name) for name in stratum.relations}
        before = {name: self._before(name, own.get(name)) for name in plan.relations}
        news = {name: told for name in stratum.reads if (told := self._news(name)) is not None and told.number}
        found = self._jobs.maintain(plan, before, news, self._explicit_of(stratum), procedure)
        if found is None:
            self._place(stratum, FALLEN_BACK)
            return None
        for name in stratum.relations:
            if changes := found.changes(name):
                after = before[name].followed_by(changes)
                for state in found.states(name):
                    after = after.with_share_anew(state)
                self._await(name, Coming(after, changes, found.heard(name)))
            elif name not in self._away.away and not self._is_read_here(name):
                self._away.send_away(name)
        return found.outcomes

    def _explicit_of(self, stratum: LogicalStratum) -> tuple[Mapping[str, Matrix], Mapping[str, Matrix]]:
        """The explicit facts of a stratum that go, and those that come."""
        own = set(stratum.relations)
        done = self._transaction
        deleted, inserted = ({n: w for n, w in side.items() if n in own} for side in (done.deleted, done.inserted))
        return deleted, inserted

    def _await(self, name: str, coming: Coming) -> None:
        """What tasks have made of a relation becomes a part of the update under way. It stays in the driver's memory
        only if strata are evaluated there that read it."""
        self.files.coming[name] = coming
        if name not in self._away.away:
            if self.is_annotated and self._is_read_here(name):
                self._tell(name, self.relations[name], coming)
            else:
                self._away.send_away(name)

    def _is_read_here(self, name: str) -> bool:
        return any(
            name in stratum.reads
            for stratum in self.program.strata
            if (placement := self.placements.get(stratum.number)) is None or placement.plan is None
        )

    def _bring(self, stratum: LogicalStratum) -> None:
        """The relations that concern a stratum come into the driver's memory."""
        for name in (*stratum.relations, *stratum.reads):
            _ = self.relations[name]

    def maintain(self, stratum: LogicalStratum) -> StratumMaintenance | DenseMaintenance:
        self._bring(stratum)
        return super().maintain(stratum)

    def maintain_sets(self, stratum: LogicalStratum) -> StratumSets:
        self._bring(stratum)
        return super().maintain_sets(stratum)

    def refold(self, stratum: LogicalStratum) -> None:
        """Maintains an aggregate: in tasks, if its members are in files only."""
        assert stratum.aggregate is not None
        is_away = stratum.aggregate.members in self._away.away
        if not is_away or self._maintained_by_tasks(stratum, nothing_more) is None:
            self._bring(stratum)
            super().refold(stratum)

    @property
    def has_shifts(self) -> bool:
        return False

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum anew, in tasks or in the driver; tasks also tell what is different."""
        if stratum.aggregate is None and not stratum.clauses:
            self._bring(stratum)
            return super().rebuild(stratum)
        placement = self.placement(stratum)
        if placement.plan is None:
            self._place(stratum, placement)
        else:
            own = frozenset(stratum.relations)
            inputs = {n: self._before(n) if n in own else self._now(n) for n in placement.plan.relations}
            plan = self._plan_for(stratum, placement, inputs)
            found = self._jobs.evaluate(plan, inputs, self._explicit_of(stratum), is_rebuilt=True)
            if found is not None:
                for name in stratum.relations:
                    after = FiledRelation(found.states(name))
                    self._await(name, Coming(after, found.changes(name), found.heard(name)))
                self.pipelines.pop(stratum.number, None)
                self._plans.pop(stratum.number, None)
                return found.derivations
            self._place(stratum, FALLEN_BACK)
        self._bring(stratum)
        return super().rebuild(stratum)

    def changes(self, with_hidden: bool = False) -> ChangedWords:
        found = super().changes(with_hidden)
        for name, changes in self._changes_in_files().items():
            came, went = changes.was == GONE, changes.level == GONE
            is_visible = with_hidden or not self.program.relations[name].is_hidden
            if is_visible and (came.any() or went.any()):
                found[name] = changes.words[came], changes.words[went]
        return found

    def state_changes(self) -> dict[str, StateChanges]:
        return super().state_changes() | {n: c for n, c in self._changes_in_files().items() if len(c)}

    def _changes_in_files(self) -> dict[str, StateChanges]:
        """What tasks have changed in relations that the driver does not hold in the state under way."""
        widths = {name: stored.width for name, stored in self.program.relations.items()}
        done = self._transaction
        return {
            name: coming.read(widths[name])
            for name, coming in self.files.coming.items()
            if name in self._away.away or (not self.is_annotated and name not in done.replaced)
        }

    def commit(self) -> None:
        done, files = self._transaction, self.files
        moved = {name for name, relation in self.relations.items() if relation.touched_used} | set(done.replaced)
        worn = {n for n, c in files.coming.items() if n in moved and c.after.routing is None and c.after.is_worn}
        super().commit()
        # Of what the driver holds, files can be written again when somebody needs them.
        files.commit({*moved.difference(files.coming), *worn}.difference(self._away.away))

    def rollback(self) -> None:
        done, files = self._transaction, self.files
        fetched = [] if self.is_annotated else [name for name in files.coming if name not in done.replaced]
        super().rollback()
        files.rollback()
        for name in fetched:
            # In memory it may be as the update would have left it.
            if name in files.current:
                self._away.send_away(name)
