"""How the kernel maintains strata: one by what its facts carry, and those that small changes reach in compiled code,
all that lie between two others in one call; the others are left to the caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.affected import KernelReach
from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.execution import classes, join_levels, level_views
from elastalog.backends.kernel.execution.bound_variant import Scratch
from elastalog.backends.kernel.levels.plan import MaintenancePlan, load_operators
from elastalog.backends.kernel.levels.scheduler import StratumUpdate, UpdateScheduler
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.protocol import Driven, Procedure, Reach, Small
from elastalog.backends.watch import BudgetExceeded
from elastalog.planning.logical import LogicalProgram, LogicalStratum

if TYPE_CHECKING:
    from types import ModuleType

    from elastalog.backends.kernel.merging.merging_plan import MergingPlan
    from elastalog.backends.kernel.merging.merging_update import MergingUpdate
    from elastalog.backends.kernel.ranks.maintaining import RankedUpdate
    from elastalog.backends.kernel.sets.set_plan import SetPlan
    from elastalog.backends.kernel.sets.set_update import StratumSets

    AnyMaintenance: TypeAlias = StratumUpdate | StratumSets | RankedUpdate | MergingUpdate

T = TypeVar("T")


class KernelMaintenance:
    """`plans`: how strata are maintained, by their numbers. `explicit_only`: those to which an update means nothing but
    that explicit facts go and come. `scheduler` drives through those that have rules."""

    def __init__(self, evaluation: KernelEvaluation, reach: KernelReach) -> None:
        self._evaluation = evaluation
        self._held = evaluation.held
        self._reach = reach
        self._scratch = Scratch(evaluation.watch)
        self._under_way: AnyMaintenance | None = None
        self.follow(evaluation.program)

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.plans: dict[int, MaintenancePlan] = {}
        self._set_plans: dict[int, SetPlan] = {}
        self._merging_plans: dict[int, MergingPlan] = {}
        self._flat = program.flat
        without_rules = [stratum for stratum in program.strata if not stratum.clauses and not stratum.is_folded]
        self._without_rules = frozenset(name for stratum in without_rules for name in stratum.relations)
        is_other = self._held.annotation.support is not Support.LEVELS
        barred = frozenset(stratum.number for stratum in without_rules if is_other or stratum.dominance)
        barred |= self._evaluation.not_maintained
        self.explicit_only = frozenset(stratum.number for stratum in without_rules) - barred
        self.scheduler = UpdateScheduler(
            program.strata, self._held.relations, self._held.homes, self._plan, self.is_driven,
            self._evaluation.watch, self._held.annotation.is_global, self._held.vectors,
        )  # fmt: skip

    def is_driven(self, stratum: LogicalStratum) -> bool:
        """Whether a stratum has rules, and is not maintained in other ways."""
        number, evaluation = stratum.number, self._evaluation
        is_other = stratum.is_folded or stratum.merges or number in evaluation.not_maintained
        return bool(stratum.clauses) and not is_other and number not in evaluation.chosen

    def prepare(self, stratum: LogicalStratum) -> None:
        """Plans updates of a stratum, makes the indexes they need and loads the operators."""
        others: tuple[ModuleType, ...] = ()
        if stratum.number in self._evaluation.ranked:
            from elastalog.backends.kernel.ranks import operators, settling

            others = (operators, settling)
        elif stratum.merges and stratum.number not in self._evaluation.not_maintained:
            from elastalog.backends.kernel.merging import merging_update

            self._merging_plan(stratum).prepare(self._held.relations)
            others = (join_levels, level_views, classes, merging_update)
        else:
            self._plan(stratum).prepare(self._held.relations)
        if self._held.annotation.support in (Support.LEVELS, Support.VECTORS):
            load_operators(*others)

    def _plan(self, stratum: LogicalStratum) -> MaintenancePlan:
        plan = self.plans.get(stratum.number)
        if plan is None:
            evaluation, annotation = self._evaluation, self._held.annotation
            plan = self.plans[stratum.number] = MaintenancePlan(
                stratum,
                self._flat if annotation.is_global else stratum.reads,
                evaluation.dictionary,
                evaluation.program.checked.source,
                annotation.is_global,
                evaluation.statistics,
                annotation.support is not Support.VECTORS,
            )
        return plan

    def forget(self, stratum: LogicalStratum) -> None:
        """Updates of a stratum are to be planned anew: sizes are others."""
        self.plans.pop(stratum.number, None)
        self._merging_plans.pop(stratum.number, None)

    def affected(self, small: Small | None = None) -> Iterable[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `UpdateChanges.affected`. Drives to the first of them."""
        if small is None or self._held.annotation.support is not Support.LEVELS:
            return self._reach.one_by_one()
        began = time.perf_counter()
        reach, strata = self._reach, self._evaluation.program.strata
        scheduler, done, places = self.scheduler, reach.done, reach.place
        scheduler.set_out(done.changed, small.derivations)
        for place in sorted(reach.given):
            stratum = strata[place]
            if not done.anew.isdisjoint(stratum.relations):
                scheduler.bar(place, is_reached=True)
            elif stratum.number in self.explicit_only:
                self.change_explicit(stratum)
            elif (
                self.is_driven(stratum)
                and stratum.number not in small.asked
                and reach.size_of(stratum) <= small.derivations
            ):
                scheduler.give(place, done.deleted, done.inserted)
            else:
                scheduler.bar(place, is_reached=True)
        for number in small.asked:
            if number in places:
                scheduler.bar(places[number], is_reached=False)
        at = scheduler.go_on()
        self._note(small, began)
        if at is not None:
            return self._from_stop_to_stop(at, small)
        done.is_told = True
        scheduler.is_under_way = False
        return ()

    def _from_stop_to_stop(self, at: int, small: Small) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that a drive stops at, the first of them at a place; drives on when the caller has seen to one."""
        strata, scheduler, done = self._evaluation.program.strata, self.scheduler, self._reach.done
        changed = done.changed
        try:
            stop: int | None = at
            while stop is not None:
                followed = len(changed)
                reached = self._reach.reached(strata[stop])
                if reached is not None:
                    yield strata[stop], reached
                scheduler.pass_by()
                scheduler.tell(islice(changed, followed, None))
                began = time.perf_counter()
                stop = scheduler.go_on()
                self._note(small, began)
            done.is_told = True
        finally:
            scheduler.end()

    def _note(self, small: Small, began: float) -> None:
        """What strata have cost that were driven through since a time."""
        costs, watch = self.scheduler.driven(), self._evaluation.watch
        if not costs:
            return
        derivations = effort = 0
        for _, _, derived, rows, spent, touched in costs:
            derivations += derived
            effort += spent
            watch.rows += rows
            watch.touched += touched
        watch.derivations += derivations
        watch.effort += effort
        seconds = time.perf_counter() - began
        small.done.append(Driven(self._evaluation.program.strata, costs, derivations, effort, seconds))

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T]) -> T:
        """Has a procedure bring a stratum to its new fixpoint: see `Backend.maintain`."""
        if stratum.number in self.explicit_only:
            self.change_explicit(stratum)
            return cast(T, None)  # as every procedure of this kind
        maintenance = self._under_way = self._begun(stratum)
        try:
            outcome = cast(Any, procedure)(maintenance)
            self._reach.done.changed.update(maintenance.end())
            for name in maintenance.own:
                self._evaluation.watch.touched += self._held.relations[name].touched_used
        except BudgetExceeded:
            maintenance.abandon()
            for name in maintenance.own:
                transaction.rollback(self._held.relations[name])
            self._under_way = None
            raise
        self._under_way = None
        return cast(T, outcome)

    def _begun(self, stratum: LogicalStratum) -> AnyMaintenance:
        """The maintenance of a stratum."""
        support, number = self._held.annotation.support, stratum.number
        has_levels = support is Support.LEVELS or support is Support.VECTORS
        is_other = number in self._evaluation.ranked or stratum.merges
        impulse, place = self._impulse(stratum), self._reach.place[number]
        if support is Support.LEVELS and not is_other:
            return StratumUpdate(impulse, place, self.scheduler)
        if not has_levels:
            return self._by_sets(impulse)
        if number in self._evaluation.ranked:
            from elastalog.backends.kernel.ranks.maintaining import RankedUpdate

            return RankedUpdate(self._evaluation.ranks, impulse, self._evaluation.dictionary)
        if stratum.merges:
            from elastalog.backends.kernel.merging.merging_update import MergingUpdate

            return MergingUpdate(self._merging_plan(stratum), impulse, self._scratch)
        from elastalog.backends.kernel.dense import DenseUpdate

        return DenseUpdate(impulse, place, self.scheduler, self._held.vectors)

    def _impulse(self, stratum: LogicalStratum) -> Impulse:
        """What the update under way brings to a stratum."""
        done, own = self._reach.done, stratum.relations
        deleted, inserted = (
            {name: side[name] for name in own if name in side} for side in (done.deleted, done.inserted)
        )
        below, watch = self.below(stratum), self._evaluation.watch
        return Impulse(stratum, self._held.relations, below, deleted, inserted, watch)

    def abandon(self) -> None:
        """What interrupted the maintenance of a stratum may have kept it from telling its relations how far they go."""
        if self._under_way is not None:
            self._under_way.abandon()
            self._under_way = None
        self.scheduler.end()

    def change_explicit(self, stratum: LogicalStratum) -> None:
        """All that an update means to a stratum without rules: explicit facts go and come."""
        done, scheduler, place = self._reach.done, self.scheduler, self._reach.place[stratum.number]
        for name in stratum.relations:
            if (gone := done.deleted.get(name)) is not None:
                done.changed[name] = scheduler.change(place, name, gone, False)
            if (come := done.inserted.get(name)) is not None:
                done.changed[name] = scheduler.change(place, name, come, True)

    def _merging_plan(self, stratum: LogicalStratum) -> MergingPlan:
        from elastalog.backends.kernel.merging.merging_plan import MergingPlan

        evaluation = self._evaluation
        plan = self._merging_plans.get(stratum.number)
        if plan is None:
            source = evaluation.program.checked.source
            plan = self._merging_plans[stratum.number] = MergingPlan(
                stratum, self._held.relations, evaluation.dictionary, source
            )
        return plan

    def _by_sets(self, impulse: Impulse) -> StratumSets:
        from elastalog.backends.kernel.sets.set_plan import SetPlan
        from elastalog.backends.kernel.sets.set_update import StratumSets

        stratum, evaluation = impulse.stratum, self._evaluation
        plan = self._set_plans.get(stratum.number)
        if plan is None:
            plan = self._set_plans[stratum.number] = SetPlan(
                stratum,
                self._plan(stratum),
                impulse.relations,
                evaluation.dictionary,
                evaluation.program.checked.source,
            )
        explicit = self._without_rules & {*stratum.reads, *stratum.relations}
        return StratumSets(plan, impulse, self._held.annotation.support, explicit, self._scratch)

    def below(self, stratum: LogicalStratum) -> dict[str, Vector]:
        """The changes of relations that a stratum reads."""
        changed = self._reach.done.changed
        return {name: changed[name] for name in stratum.reads if name in changed}
