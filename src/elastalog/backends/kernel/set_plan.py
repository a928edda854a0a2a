"""The versions of a stratum's clauses that maintain sets."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.delta_pipeline import DeltaPipeline, Phase
from elastalog.backends.kernel.maintenance import MaintenancePlan
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.statistics import KernelStatistics
from elastalog.backends.sets import Evaluation, Rules
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Absent, Clause, LogicalStratum
from elastalog.planning.variants import plan_backward, plan_full
from elastalog.relations.words import Dictionary


class SetPlan:
    """Those of `MaintenancePlan`, and backwards with body facts. `phases`: the views of evaluations, as they are
    needed. `flat`: all relations; their facts count as level 0."""

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
        self._everything: dict[int, DeltaPipeline] = {}

    def everything(self, clause: Clause) -> DeltaPipeline:
        """The version of a clause that enumerates all its derivations; planned when first used."""
        pipeline = self._everything.get(clause.number)
        if pipeline is None:
            variant = plan_full(clause, KernelStatistics(self._relations))
            pipeline = self._everything[clause.number] = DeltaPipeline(variant, self._dictionary, self._source)
        return pipeline

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
