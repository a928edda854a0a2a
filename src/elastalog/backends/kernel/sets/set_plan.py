"""The versions of a stratum's clauses that maintain sets."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.execution.bound_variant import Scratch, Sink
from elastalog.backends.kernel.execution.delta_variant import DeltaPipeline, Phase
from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan
from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.set_rounds import PlainRoundsPlan, SpreadingPlan
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.kernel.store.set_table import FILLED, NEXT
from elastalog.backends.sets import Evaluation, Rules
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Absent, Clause, LogicalStratum
from elastalog.planning.variants import plan_backward, plan_from_goal, plan_full
from elastalog.relations.words import Dictionary


class WholePipeline(DeltaPipeline):
    """A version of a clause that starts at all facts of its start's relation."""

    __slots__ = ()

    def run_seen(
        self,
        relations: Mapping[str, KernelRelation],
        flat: frozenset[str],
        phase: Phase,
        scratch: Scratch,
        sink: Sink,
    ) -> None:
        """Enumerates the derivations from facts that are seen in a phase."""
        name = self.gather.relation
        if name is None:
            self.run_range(relations, flat, 0, 1, None, scratch, sink)
            return
        relation = relations[name]
        take, place = self.gather_take
        block, state = self._space(scratch)[0]
        seen = phase.view_of(name, is_negated=False, is_before=False)
        start = 0
        while start < relation.used:
            set_operators.gather_seen(
                relation.rows, start, relation.used, relation.level, relation.touched, seen, take, place, block, state
            )
            start = int(state[NEXT])
            self._pass_on(relations, flat, block, int(state[FILLED]), phase, scratch, sink)


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
            rules: {name: _among(pipelines, rules) for name, pipelines in plan.forward.items()} for rules in Rules
        }
        self.backward = {
            rules: {name: _among(pipelines, rules) for name, pipelines in plan.backward.items()} for rules in Rules
        }
        self.flat = frozenset(relations)
        self.phases: dict[Evaluation, Phase] = {}
        self._stratum = stratum
        self._relations = relations
        self._dictionary = dictionary
        self._source = source
        self._with_bodies: dict[str, list[DeltaPipeline]] | None = None
        self._everything: dict[int, list[WholePipeline]] = {}
        self.rows_of_everything: dict[int, int] = {}
        self._spreading: SpreadingPlan | None = None
        self._plain_rounds: PlainRoundsPlan | None = None

    def everything(self, clause: Clause) -> list[WholePipeline]:
        """Versions of a clause each of which enumerates all its derivations, with the row of every body fact if it is
        recursive; planned when first used. Recursive clauses start at a goal of the stratum, as they did when the
        stratum was evaluated first."""
        versions = self._everything.get(clause.number)
        if versions is None:
            statistics = KernelStatistics(self._relations)
            variants = [
                plan_from_goal(clause, goal, statistics, with_rows=True) for goal in clause.recursive_goals
            ] or [plan_full(clause, statistics)]
            versions = [WholePipeline(variant, self._dictionary, self._source) for variant in variants]
            self._everything[clause.number] = versions
        return versions

    @property
    def spreading(self) -> SpreadingPlan:
        """The recursive versions that start at facts of the stratum; laid out when first used."""
        if self._spreading is None:
            self._spreading = SpreadingPlan(self._stratum.relations, self._spreading_versions(), self._dictionary)
        return self._spreading

    @property
    def plain_rounds(self) -> PlainRoundsPlan:
        """Those, and `with_bodies`; laid out when first used."""
        if self._plain_rounds is None:
            backward = [version for versions in self.with_bodies.values() for version in versions]
            self._plain_rounds = PlainRoundsPlan(
                self._stratum.relations, self._spreading_versions(), backward, self._dictionary
            )
        return self._plain_rounds

    def keep(self, relations: Mapping[str, KernelRelation]) -> None:
        """Tells relations how far machines have brought them, if something has interrupted that."""
        for machine in (self._spreading, self._plain_rounds):
            if machine is not None:
                machine.keep(relations)

    def _spreading_versions(self) -> list[DeltaPipeline]:
        recursive = self.forward[Rules.RECURSIVE]
        return [version for name in self._stratum.relations for version in recursive.get(name, ())]

    @property
    def with_bodies(self) -> dict[str, list[DeltaPipeline]]:
        """Backward versions of the recursive clauses that give the row of every body fact, by head; planned when
        first used."""
        if self._with_bodies is None:
            self._with_bodies = {}
            statistics = KernelStatistics(self._relations)
            for clause in self._stratum.clauses:
                if clause.is_recursive:
                    variant = plan_backward(clause, statistics, with_rows=True)
                    pipeline = DeltaPipeline(variant, self._dictionary, self._source)
                    self._with_bodies.setdefault(clause.head, []).append(pipeline)
        return self._with_bodies


def has_negation(clause: Clause) -> bool:
    """Whether a clause has a negated goal."""
    return any(isinstance(goal, Absent) for goal in clause.goals)


def _among(pipelines: list[DeltaPipeline], rules: Rules) -> tuple[DeltaPipeline, ...]:
    if rules is Rules.ALL:
        return tuple(pipelines)
    is_recursive = rules is Rules.RECURSIVE
    return tuple(pipeline for pipeline in pipelines if pipeline.variant.clause.is_recursive == is_recursive)
