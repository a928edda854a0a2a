"""How a stratum is maintained in which equivalences form classes: which variants of its clauses an update runs.

A row of classes has no level: that of a pair is a matter of two members. So every variant tells, behind the head, the
two members of each pair that it reads of an equivalence of its own stratum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum, Scan, Test
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_from_goal, plan_wanted
from elastalog.relations.words import Dictionary

_WANTED = "@wanted."
"""What the relation of heads that are looked for is called, before the name of theirs."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A variant. `width`: that of its head, behind which stand two members for each of the equivalences `read`.
    `is_repeated`: it starts at the second member of a pair; where whole classes are looked at, the one that starts at
    the first finds the same."""

    variant: DeltaVariant
    width: int
    read: tuple[str, ...]
    is_repeated: bool

    @property
    def head(self) -> str:
        return self.variant.clause.head


class MergingPlan:
    """`classes`: by equivalence the relation of its classes. `forward`: variants by the relation that they start at;
    `again`: those that find what is derived, by the relation of their heads: of an equivalence with a first member that
    is wanted, of others the facts that are."""

    def __init__(
        self,
        stratum: LogicalStratum,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
    ) -> None:
        self.stratum = stratum
        self.own = stratum.relations
        self.classes = {rule.pairs: rule.relation for rule in stratum.merges}
        self._equivalence_of = {rule.relation: rule.pairs for rule in stratum.merges}
        self.plain = tuple(n for n in self.own if n not in self.classes and n not in self._equivalence_of)
        """The relations that are no equivalences."""
        heads = (*self.classes, *self.plain)
        self._key_width = {name: 1 if name in self.classes else relations[name].width for name in heads}
        wanted = {self.wanted_name(name): self.wanted(name, relations[name].rows[:0]) for name in heads}
        self.flat = frozenset((*stratum.reads, *self._equivalence_of, *wanted))
        self._statistics = KernelStatistics({**relations, **wanted})
        self._dictionary, self._source = dictionary, source
        self.forward: dict[str, list[Telling]] = {}
        self.again: dict[str, list[Telling]] = {name: [] for name in heads}
        for clause in stratum.clauses:
            self._add(clause, relations[clause.head].width)

    def _add(self, clause: Clause, width: int) -> None:
        pairs = self._pairs_read(clause)
        read = tuple(self._equivalence_of[relation] for relation, _ in pairs)
        told = [_member(clause, goal) for goals in pairs.values() for goal in (goals[0], goals[-1])]
        telling = replace(clause, head_terms=(*clause.head_terms, *told))
        second = {goal for goals in pairs.values() for goal in goals[1:]}
        for position, goal in enumerate(clause.goals):
            if not isinstance(goal, Test):
                started = self._bound(plan_from_goal(telling, position, self._statistics))
                found = Telling(started, width, read, position in second)
                self.forward.setdefault(goal.relation, []).append(found)
        name = clause.head
        wanted = Scan(self.wanted_name(name), clause.head_terms[: self._key_width[name]])
        again = self._bound(plan_wanted(telling, wanted, self._statistics))
        self.again[name].append(Telling(again, width, read, is_repeated=False))

    def _pairs_read(self, clause: Clause) -> dict[tuple[str, object], list[int]]:
        """The goals that read classes of the stratum, those of one pair together."""
        found: dict[tuple[str, object], list[int]] = {}
        for position, goal in enumerate(clause.goals):
            if isinstance(goal, Scan) and goal.relation in self._equivalence_of:
                found.setdefault((goal.relation, goal.terms[1]), []).append(position)
        return found

    def _bound(self, planned: Variant) -> DeltaVariant:
        return DeltaVariant(planned, self._dictionary, self._source)

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs."""
        for variants in (*self.forward.values(), *self.again.values()):
            for telling in variants:
                telling.variant.prepare(relations)
        for pairs, classes in self.classes.items():
            relations[pairs].index((0,))
            for column in (0, 1):
                relations[classes].index((column,))

    def wanted_name(self, relation: str) -> str:
        """What the relation of what is wanted of another is called."""
        return _WANTED + relation

    def wanted(self, name: str, facts: Matrix) -> KernelRelation:
        """What is wanted of a relation: some facts, of an equivalence their first members."""
        width = self._key_width[name]
        relation = KernelRelation(self.wanted_name(name), width, is_annotated=True)
        relation.load(np.ascontiguousarray(facts[:, :width]))
        return relation


def _member(clause: Clause, goal: int) -> str | Constant:
    """The member that a goal reads the representative of."""
    literal = clause.goals[goal]
    assert isinstance(literal, Scan)
    member = literal.terms[0]
    assert member is not None
    return member
