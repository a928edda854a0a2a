"""A variant of a clause with what running it needs: the machine lays it out as code (see `machine.plan`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elastalog.backends.kernel.expressions.actions import Run, compile_actions
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.diagnostics.quota import look
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Absent
from elastalog.planning.steps import Gather, Probe, Variant
from elastalog.relations.words import Dictionary


class BoundVariant:
    """One variant of a clause. `members`: what it is run for, if they are several, which differ in their heads only,
    and `clauses` theirs; its results are then the terms of all heads. `derivations`, `rows` that were looked at or
    made, `start_rows` and `seconds` say what it has done in a bootstrap, and how long that took."""

    def __init__(
        self, planned: Variant, dictionary: Dictionary, source: Source, members: Sequence[BoundVariant] = ()
    ) -> None:
        self.planned = planned
        self.clause = planned.clause
        self.members = tuple(members)
        self.clauses = tuple([member.clause for member in members]) if members else ()
        self.gather = planned.gather
        self.probes = planned.probes
        self.derivations = 0
        self.rows = 0
        self.start_rows = 0
        self.seconds = 0.0
        self.dictionary = dictionary
        self._source = source
        goal = planned.gather.goal
        self.is_negated_start = goal is not None and isinstance(planned.clause.goals[goal], Absent)

    @property
    def each(self) -> Sequence[BoundVariant]:
        """The variants that it is run for: its members, or itself."""
        return self.members or (self,)

    def transform(self, step: Gather | Probe) -> Run:
        """The actions of a step as one function."""
        return compile_actions(step.actions, step.slots, self.dictionary, self._source)

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes this variant needs."""
        for probe in self.probes:
            if is_indexed(probe):
                relations[probe.relation].index(probe.key_columns)


class Binder:
    """What variants are planned by and bound to: relations and their `statistics`, the dictionary of their words, the
    program that errors point to."""

    def __init__(
        self,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
        statistics: KernelStatistics | None = None,
    ) -> None:
        self.relations = relations
        self.dictionary = dictionary
        self.statistics = statistics or KernelStatistics(relations)
        self._source = source

    def bind(self, planned: Variant, members: Sequence[BoundVariant] = ()) -> BoundVariant:
        """A planned variant, which may be run for several others."""
        look()
        return BoundVariant(planned, self.dictionary, self._source, members)


def is_indexed(probe: Probe) -> bool:
    """Whether a probe goes through an index."""
    return not probe.is_member and bool(probe.key_columns)
