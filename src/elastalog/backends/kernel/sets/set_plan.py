"""The variants of a stratum's clauses that maintain sets."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.execution.bound_variant import Sink
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant, Phase, Setting
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.set_rounds import PlainRoundsPlan, PropagationPlan
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.kernel.store.set_table import FILLED, NEXT
from elastalog.backends.sets import Evaluation, Rules
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Absent, Clause, LogicalStratum
from elastalog.planning.variants import plan_backward, plan_from_goal, plan_full
from elastalog.relations.words import Dictionary


class WholeVariant(DeltaVariant):
    """A variant of a clause that starts at all facts of its start's relation."""

    __slots__ = ()

    def run_seen(self, setting: Setting, phase: Phase, sink: Sink) -> None:
        """Enumerates the derivations from facts that are seen in a phase."""
        name = self.gather.relation
        if name is None:
            self.run_range(setting, 0, 1, None, sink)
            return
        relation = setting.relations[name]
        take, place = self.gather_take
        block, state = self._begin(setting)
        seen = phase.view_of(name, is_negated=False, is_before=False)
        start = 0
        while start < relation.used:
            set_operators.gather_seen(
                relation.rows, start, relation.used, relation.level, relation.touched, seen, take, place, block, state
            )
            start = int(state[NEXT])
            self._pass_on(setting, block, int(state[FILLED]), phase, sink)


class SetPlan:
    """Those of `MaintenancePlan`, and backwards with body facts. `phases`: the views of evaluations, as they are
    needed. `flat`: all relations; their facts count as level 0. `rows_of_everything`: through how many rows the last
    enumeration of a clause went."""

    def __init__(
        self,
        stratum: LogicalStratum,
        plan: MaintenancePlan,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
    ) -> None:
        self.forward = {
            rules: {name: _among(variants, rules) for name, variants in plan.forward.items()} for rules in Rules
        }
        self.backward = {
            rules: {name: _among(variants, rules) for name, variants in plan.backward.items()} for rules in Rules
        }
        self.flat = frozenset(relations)
        self.phases: dict[Evaluation, Phase] = {}
        self._stratum = stratum
        self._relations = relations
        self._dictionary = dictionary
        self._source = source
        self._with_bodies: dict[str, list[DeltaVariant]] | None = None
        self._everything: dict[int, list[WholeVariant]] = {}
        self.rows_of_everything: dict[int, int] = {}
        self._propagation: PropagationPlan | None = None
        self._plain_rounds: PlainRoundsPlan | None = None

    def everything(self, clause: Clause) -> list[WholeVariant]:
        """Variants of a clause each of which enumerates all its derivations, with the row of every body fact if it is
        recursive; planned when first used. Recursive clauses start at a goal of the stratum, as they did when the
        stratum was evaluated first."""
        variants = self._everything.get(clause.number)
        if variants is None:
            statistics = KernelStatistics(self._relations)
            planned = [plan_from_goal(clause, goal, statistics, with_rows=True) for goal in clause.recursive_goals] or [
                plan_full(clause, statistics)
            ]
            variants = [WholeVariant(one, self._dictionary, self._source) for one in planned]
            self._everything[clause.number] = variants
        return variants

    @property
    def propagation(self) -> PropagationPlan:
        """The recursive variants that start at facts of the stratum; laid out when first used."""
        if self._propagation is None:
            self._propagation = PropagationPlan(self._stratum.relations, self._propagation_variants(), self._dictionary)
        return self._propagation

    @property
    def plain_rounds(self) -> PlainRoundsPlan:
        """Those, and `with_bodies`; laid out when first used."""
        if self._plain_rounds is None:
            backward = [variant for variants in self.with_bodies.values() for variant in variants]
            self._plain_rounds = PlainRoundsPlan(
                self._stratum.relations, self._propagation_variants(), backward, self._dictionary
            )
        return self._plain_rounds

    def keep(self, relations: Mapping[str, KernelRelation]) -> None:
        """Tells relations how far machines have brought them, if something has interrupted that."""
        for machine in (self._propagation, self._plain_rounds):
            if machine is not None:
                machine.keep(relations)

    def _propagation_variants(self) -> list[DeltaVariant]:
        recursive = self.forward[Rules.RECURSIVE]
        return [variant for name in self._stratum.relations for variant in recursive.get(name, ())]

    @property
    def with_bodies(self) -> dict[str, list[DeltaVariant]]:
        """Backward variants of the recursive clauses that give the row of every body fact, by head; planned when
        first used."""
        if self._with_bodies is None:
            self._with_bodies = {}
            statistics = KernelStatistics(self._relations)
            for clause in self._stratum.clauses:
                if clause.is_recursive:
                    planned = plan_backward(clause, statistics, with_rows=True)
                    variant = DeltaVariant(planned, self._dictionary, self._source)
                    self._with_bodies.setdefault(clause.head, []).append(variant)
        return self._with_bodies


def has_negation(clause: Clause) -> bool:
    """Whether a clause has a negated goal."""
    return any(isinstance(goal, Absent) for goal in clause.goals)


def _among(variants: list[DeltaVariant], rules: Rules) -> tuple[DeltaVariant, ...]:
    if rules is Rules.ALL:
        return tuple(variants)
    is_recursive = rules is Rules.RECURSIVE
    return tuple(variant for variant in variants if variant.clause.is_recursive == is_recursive)
