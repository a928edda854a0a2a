"""The strata of a program, a class for each kind: how one is brought from its explicit facts to its fixpoint, how an
update maintains it, how it is folded again. Which kind a stratum is depends on its rules and on what facts carry, and
is decided once, when the program is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import proxy

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate
from elastalog.backends.kernel.bootstrap.handover import Begun, Given, Handover, OtherPlace
from elastalog.backends.kernel.bootstrap.rounds import Workers
from elastalog.backends.kernel.execution import classes
from elastalog.backends.kernel.execution.aggregates import Folding
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.relations import KernelFacts
from elastalog.backends.kernel.store.annotations import DERIVED
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation, note_levels
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from types import ModuleType

    from elastalog.backends.kernel.levels.plan import MaintenancePlan
    from elastalog.backends.kernel.levels.scheduler import StratumUpdate, UpdateScheduler
    from elastalog.backends.kernel.merging import MergingPlan, MergingUpdate
    from elastalog.backends.kernel.ranks.graph import RankedStratum
    from elastalog.backends.kernel.sets.set_plan import SetPlan
    from elastalog.backends.kernel.sets.set_update import StratumSets
    from elastalog.backends.kernel.store.transaction import StratumDelta

    AnyMaintenance: TypeAlias = StratumUpdate | StratumSets | RankedStratum | MergingUpdate


class StrataContext:
    """What all strata of a program need: the facts that the kernel holds and who runs rounds over them. `is_complete`:
    no `.limitsize` has cut an evaluation short. `variants`: those of the last evaluation, by stratum. `begun`: what has
    been evaluated in part. `binder`: its statistics are for all plans, since many strata read the same relations.
    `known_ranks` is cleared when relations get another state."""

    def __init__(
        self, held: KernelFacts, dictionary: Dictionary, watch: Watch, workers: Workers, place: OtherPlace | None
    ) -> None:
        self.held = held
        self.dictionary = dictionary
        self.watch = watch
        self.workers = workers
        self.place = place
        self.variants: dict[int, StratumVariants] = {}
        self.begun: dict[int, Begun] = {}
        self.is_complete = True
        self.known_ranks: dict[int, RankedStratum] = {}

    def know(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.program = program
        self.binder = Binder(self.held.relations, self.dictionary, program.checked.source)
        self.known_ranks.clear()
        key = "kinds", self.held.annotation
        if key not in program.plans:
            program.plans[key] = [_kind_of(stratum, program, self.held) for stratum in program.strata]
        self.kinds_of: list[type[StratumKind]] = program.plans[key]
        vars(self).pop("kinds", None)

    @cached_property
    def kinds(self) -> dict[int, StratumKind]:
        """The strata by number: made when one is evaluated by itself, or first updated."""
        kinds = zip(self.program.strata, self.kinds_of, strict=True)
        return {stratum.number: kind(stratum, self) for stratum, kind in kinds}

    @cached_property
    def workspace(self) -> Workspace:
        """Where strata are maintained that the scheduler does not drive through."""
        return Workspace()

    def ranked(self, stratum: LogicalStratum) -> RankedStratum:
        """A stratum in the order of values; few programs have one."""
        if stratum.number not in self.known_ranks:
            from elastalog.backends.kernel.ranks.graph import RankedStratum

            self.known_ranks[stratum.number] = RankedStratum(stratum, self.held.relations, self.dictionary)
        return self.known_ranks[stratum.number]

    def evaluated_elsewhere(self, stratum: LogicalStratum) -> Begun | None:
        """What another place has made of a stratum, which its relations hold now. None: nothing."""
        if self.place is None:
            return None
        held = self.held
        facts = {name: held.facts_now(name) for name in (*stratum.reads, *stratum.relations)}
        levels = None
        if held.annotation.is_global:
            flat = self.program.flat
            below = [name for name in stratum.reads if name not in stratum.relations]
            if held.annotation.is_kept:
                levels = {name: held.levels_now(name) * (name not in flat) for name in below}
            else:  # no level matters: all facts are there from the start
                levels = {name: np.zeros(len(facts[name]), np.int32) for name in below}
        begun = self.place.evaluate(stratum, facts, self.program.limits, levels)
        if begun is not None:
            for name, found in begun.relations.items():
                width = self.program.relations[name].width
                held.relations[name] = KernelRelation(name, width, held.annotation.is_kept, held.crew)
                held.relations[name].adopt(found)
        return begun

    def handover(self, stratum: LogicalStratum) -> Handover | None:
        """By which another place may go on with a stratum that is begun here."""
        place, held = self.place, self.held
        if place is None or place.is_asked or not stratum.is_recursive:
            return None
        below = [name for name in stratum.reads if name not in stratum.relations]

        def take(start: Mapping[str, int], iteration: int) -> Begun | None:
            facts = {name: held.facts_now(name) for name in below}
            given = {}
            for name, before in start.items():
                relation = held.relations[name]
                rows = slice(0, relation.used)
                kept = (relation.level[rows], relation.count[rows]) if relation.is_annotated else (None, None)
                given[name] = Given(FactWords(relation.rows[rows], *kept), before, iteration)
            begun = place.take_over(stratum, facts, given)
            if begun is not None:
                for name, found in begun.relations.items():
                    held.relations[name].adopt(found)
            return begun

        return Handover(partial(place.wants, stratum), take, sum(map(held.size, below)))


class StratumKind:
    """A stratum. `is_limited`: a `.limitsize` may have to cut it short. `is_maintained`: updates follow what changes in
    it; otherwise every update that reaches it evaluates it anew. `is_driven`: the scheduler may enter it.
    `is_explicit`: an update means nothing to it but that explicit facts go and come. `has_explicit_only`: its explicit
    facts are all that it has. `is_one_round`: one round of its clauses is all that it needs."""

    is_driven = is_explicit = has_explicit_only = is_one_round = False

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        self.stratum = stratum
        # Which has this: in a circle all facts would stay until garbage is collected.
        self.context: StrataContext = proxy(context)
        self.held = context.held
        self.is_limited = context.program.is_limited(stratum)
        self.is_maintained = not self.is_limited

    def evaluate(self, variants: StratumVariants | None) -> None:
        """Brings its relations, which hold their explicit facts, to the fixpoint; with the variants of an earlier
        evaluation, if given."""

    def prepare(self) -> tuple[ModuleType, ...]:
        """Plans its updates and makes the indexes that they need. Returns the modules of operators that only these
        need."""
        return ()

    def begin(self, stratum_delta: StratumDelta, place: int, scheduler: UpdateScheduler) -> AnyMaintenance:
        """Its maintenance in the update under way: by sets, unless a kind has levels and knows better. What is not
        maintained at all may be looked at ahead (see `evaluation.strategies.look_ahead`)."""
        from elastalog.backends.kernel.sets.set_update import StratumSets

        kinds, names = self.context.kinds.values(), {*self.stratum.reads, *self.stratum.relations}
        without_rules = (kind.stratum for kind in kinds if not kind.stratum.clauses and not kind.stratum.is_folded)
        explicit = frozenset(names.intersection(name for stratum in without_rules for name in stratum.relations))
        return StratumSets(
            self._set_plan, stratum_delta, self.held.annotation.support, explicit, self.context.workspace
        )

    @cached_property
    def _set_plan(self) -> SetPlan:
        from elastalog.backends.kernel.sets.set_plan import SetPlan

        return SetPlan(self.stratum, self.plan, self.context.binder)

    @property
    def _has_levels(self) -> bool:
        return self.held.annotation.support in (Support.LEVELS, Support.VECTORS)

    def refold(self, changed: Mapping[str, Vector]) -> tuple[str, Vector]:
        """Maintains what is folded, after changes below; returns its relation and the entries that changed."""
        raise NotImplementedError

    @cached_property
    def plan(self) -> MaintenancePlan:
        """How it is maintained."""
        from elastalog.backends.kernel.levels.plan import MaintenancePlan

        context, annotation = self.context, self.held.annotation
        flat = context.program.flat if annotation.is_global else self.stratum.reads
        looks_back = annotation.support is not Support.VECTORS
        return MaintenancePlan(
            self.stratum, flat, context.binder, annotation.is_global, looks_back, context.program.plans
        )

    def forget(self) -> None:
        """Has its updates planned anew, since sizes have changed."""
        for plan in ("plan", "_merging_plan"):
            vars(self).pop(plan, None)


class Aggregate(StratumKind):
    """An aggregate over relations below."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        held, rule = self.held, stratum.aggregate
        assert rule is not None
        self._folding = Folding(rule, held.relations, context.dictionary, context.program, held.annotation.is_global)

    def evaluate(self, variants: StratumVariants | None) -> None:
        place = self.context.place
        self._folding.evaluate(None if place is None else partial(place.fold, self.stratum))

    def refold(self, changed: Mapping[str, Vector]) -> tuple[str, Vector]:
        below = {name: changed[name] for name in self.stratum.reads if name in changed}
        return self._folding.rule.relation, self._folding.refold(below)


class Classes(StratumKind):
    """The classes of an equivalence whose pairs are below."""

    def evaluate(self, variants: StratumVariants | None) -> None:
        assert self.stratum.equivalence is not None
        classes.evaluate(self.stratum.equivalence, self.held.relations)

    def refold(self, changed: Mapping[str, Vector]) -> tuple[str, Vector]:
        equivalence = self.stratum.equivalence
        assert equivalence is not None
        return equivalence.relation, classes.refold(equivalence, changed[equivalence.pairs], self.held.relations)


class Explicit(StratumKind):
    """A stratum without rules, whose facts have levels."""

    has_explicit_only = True

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        self.is_explicit = self.is_maintained


class Chosen(StratumKind):
    """A stratum with choice domains, or with subsumption by which more than the best of every key matters."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        self.is_maintained = False

    def evaluate(self, variants: StratumVariants | None) -> None:
        relations, annotation = self.held.relations, self.held.annotation
        if annotation.is_global:
            raise ElastalogError.of("E0905", relation=self.stratum.relations[0])
        explicit = {name: relations[name].used for name in self.stratum.relations}
        self._choose()
        if annotation.is_kept and annotation.support is not Support.LEVELS:
            # Every update evaluates it anew: that facts are derived is all that is kept of them.
            for name, first_derived in explicit.items():
                relation = relations[name]
                _annotate_sets(relation, first_derived)
                if annotation.support is Support.VECTORS:
                    vectors = self.held.vectors[name] = Vectors()
                    rows = np.arange(relation.used, dtype=np.int32)
                    vectors.change(rows[:first_derived], 0, 1)
                    vectors.change(rows[first_derived:], DERIVED, 1)
                    vectors.commit()

    def _choose(self) -> None:
        from elastalog.backends.kernel.bootstrap.chosen import evaluate_chosen

        stratum, context = self.stratum, self.context
        variants = context.variants[stratum.number] = StratumVariants(stratum, context.binder)
        evaluate_chosen(stratum, variants, context.program.relations, context.watch)


class Ranked(Chosen):
    """A stratum with subsumption of which the best of every key is all that matters: evaluated in the order of values,
    and updated along its links."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        self.is_maintained = self.held.annotation.support is Support.LEVELS

    def has_ranks(self) -> bool:
        """Whether its facts have ranks, outside an update."""
        return self.is_maintained and self.context.ranked(self.stratum).has_ranks()

    def _choose(self) -> None:
        is_kept = self.held.annotation.has_levels_only
        if not self.context.ranked(self.stratum).evaluate(self.context.watch, is_kept=is_kept):
            super()._choose()

    def prepare(self) -> tuple[ModuleType, ...]:
        from elastalog.backends.kernel.ranks import operators

        return (operators,) if self.is_maintained else ()

    def begin(self, stratum_delta: StratumDelta, place: int, scheduler: UpdateScheduler) -> AnyMaintenance:
        if not self._has_levels:
            return super().begin(stratum_delta, place, scheduler)
        return self.context.ranked(self.stratum).begin(stratum_delta)


class Plain(StratumKind):
    """A stratum with rules whose facts have local levels, or none at all."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        takes_more = stratum.is_recursive or self.is_limited or self.held.annotation.is_kept
        self.is_driven = bool(stratum.clauses) and self.is_maintained
        self.is_one_round = bool(stratum.clauses) and not takes_more
        self.has_explicit_only = not stratum.clauses

    def evaluate(self, variants: StratumVariants | None) -> None:
        if variants is None:
            variants = StratumVariants(self.stratum, self.context.binder, self.context.program.plans)
            self.context.variants[self.stratum.number] = variants
        variants.restart()
        if not self._reach_fixpoint(variants):
            self.context.is_complete = False

    def _reach_fixpoint(self, variants: StratumVariants) -> bool:
        """False if a `.limitsize` has cut it short."""
        context = self.context
        begun_here = context.begun.pop(self.stratum.number, None)
        begun = begun_here or context.evaluated_elsewhere(self.stratum)
        if begun is not None and begun.is_done:
            return begun.is_complete
        limits = context.program.limits
        handover = context.handover(self.stratum) if begun is begun_here and not self.is_limited else None
        return evaluate(self.stratum, variants, context.workers, limits, begun, handover)

    def prepare(self) -> tuple[ModuleType, ...]:
        self.plan.prepare(self.held.relations)
        return ()

    def begin(self, stratum_delta: StratumDelta, place: int, scheduler: UpdateScheduler) -> AnyMaintenance:
        if not self._has_levels:
            return super().begin(stratum_delta, place, scheduler)
        from elastalog.backends.kernel.levels.scheduler import StratumUpdate

        return StratumUpdate(stratum_delta, place, scheduler)


class GlobalLevels(Plain):
    """A stratum with rules whose facts have global levels."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        self.is_one_round = False

    def evaluate(self, variants: StratumVariants | None) -> None:
        from elastalog.backends.kernel.bootstrap.global_levels import evaluate_globally

        if self.is_limited:
            raise ElastalogError.of("E0902.limited", relation=self.stratum.relations[0])
        stratum, context = self.stratum, self.context
        if context.evaluated_elsewhere(stratum) is None:
            variants = context.variants[stratum.number] = StratumVariants(stratum, context.binder)
            evaluate_globally(stratum, variants, context.program.flat, context.workers)


class Dense(Plain):
    """A stratum whose facts have a count for every level."""

    def _reach_fixpoint(self, variants: StratumVariants) -> bool:
        from elastalog.backends.kernel.dense import DenseWorkers

        workers = DenseWorkers(self.stratum, self.held.relations, self.context.watch)
        is_complete = evaluate(self.stratum, variants, workers, self.context.program.limits)
        self.held.vectors.update(workers.vectors())
        return is_complete

    def begin(self, stratum_delta: StratumDelta, place: int, scheduler: UpdateScheduler) -> AnyMaintenance:
        from elastalog.backends.kernel.dense import DenseUpdate

        return DenseUpdate(stratum_delta, place, scheduler, self.held.vectors)


class Counted(Plain):
    """A stratum of a strategy that maintains sets."""

    def evaluate(self, variants: StratumVariants | None) -> None:
        if self.stratum.clauses:
            super().evaluate(variants)

    def _reach_fixpoint(self, variants: StratumVariants) -> bool:
        from elastalog.backends.kernel.sets.set_fixpoint import CountingWorkers

        held = self.held
        workers = CountingWorkers(self.stratum, held.relations, self.context.watch, held.annotation.support)
        return evaluate(self.stratum, variants, workers, self.context.program.limits)


class Merging(Plain):
    """A stratum in which equivalences depend on themselves, evaluated as classes. Levels are rounds; derivations are
    not counted, since some are found under several representatives, and it is not maintained by counts."""

    def __init__(self, stratum: LogicalStratum, context: StrataContext) -> None:
        super().__init__(stratum, context)
        self.is_maintained = self.is_maintained and self.held.annotation.support is Support.LEVELS
        self.is_driven = self.is_one_round = self.has_explicit_only = False

    def _reach_fixpoint(self, variants: StratumVariants) -> bool:
        from elastalog.backends.kernel.bootstrap.merging import MergingWorkers

        relations, annotation, context = self.held.relations, self.held.annotation, self.context
        explicit = {name: relations[name].used for name in self.stratum.relations}
        workers = MergingWorkers(self.stratum.merges, relations, context.watch)
        is_complete = evaluate(self.stratum, variants, workers, context.program.limits)
        for name, rows in workers.finished().items():
            relations[name] = KernelRelation(name, rows.shape[1], annotation.is_kept, self.held.crew)
            relations[name].load(rows, 1)
        if annotation.is_kept:
            for name, first_derived in explicit.items():
                relation = relations[name]
                if annotation.has_levels:
                    relation.count[: relation.used] = 1
                else:
                    _annotate_sets(relation, first_derived)
                note_levels(relation)
        return is_complete

    @cached_property
    def _merging_plan(self) -> MergingPlan:
        from elastalog.backends.kernel.merging import MergingPlan

        return MergingPlan(self.stratum, self.context.binder)

    def prepare(self) -> tuple[ModuleType, ...]:
        from elastalog.backends.kernel.machine import enumeration

        if not self.is_maintained:
            return ()
        self._merging_plan.prepare(self.held.relations)
        return classes, enumeration

    def begin(self, stratum_delta: StratumDelta, place: int, scheduler: UpdateScheduler) -> AnyMaintenance:
        if not self._has_levels:
            return super().begin(stratum_delta, place, scheduler)
        from elastalog.backends.kernel.merging import MergingUpdate

        return MergingUpdate(self._merging_plan, stratum_delta, self.context.workspace)


def _annotate_sets(relation: KernelRelation, first_derived: int) -> None:
    """Facts have one derivation each, and are known to be explicit or not: all that sets need of them."""
    relation.count[: relation.used] = 1
    relation.level[:first_derived] = 0
    relation.level[first_derived : relation.used] = DERIVED


def _kind_of(stratum: LogicalStratum, program: LogicalProgram, held: KernelFacts) -> type[StratumKind]:
    annotation = held.annotation
    if stratum.aggregate is not None:
        return Aggregate
    if stratum.equivalence is not None:
        return Classes
    if stratum.dominance or any(program.relations[name].choices for name in stratum.relations):
        return Chosen if stratum.ranked is None or program.is_limited(stratum) else Ranked
    if stratum.clauses and annotation.is_global:
        return GlobalLevels
    if stratum.merges:
        return Merging
    if annotation.support is Support.VECTORS:
        return Dense
    if annotation.support is not Support.LEVELS:
        return Counted
    return Plain if stratum.clauses else Explicit
