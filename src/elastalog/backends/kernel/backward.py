"""Backward evaluation outside updates: the derivations of given facts in the present epoch, with the facts they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.protocol import ClauseDerivations
from elastalog.backends.watch import Watch
from elastalog.diagnostics import quota
from elastalog.planning.logical import Clause, LogicalProgram
from elastalog.planning.variants import plan_backward
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

_HEADS = "@heads."
"""What the relation of the facts whose derivations are looked for is called, before the name of theirs."""

_SAMPLE = 1024
"""Facts of a relation that are looked at to plan: few are ever asked about, so that a plan must not cost much."""


class _Heads(dict[str, KernelRelation]):
    """The relations of facts whose derivations are looked for; all others are asked for whenever they are needed, since
    there may be others in another epoch."""

    def __init__(self, others: Mapping[str, KernelRelation]) -> None:
        super().__init__()
        self._others = others

    def __missing__(self, name: str) -> KernelRelation:
        return self._others[name]


class BackwardEvaluation:
    """Plans each clause once, when first asked for. The facts need not be present. Raises LimitReached when the time of
    the watch is over."""

    def __init__(
        self, program: LogicalProgram, relations: Mapping[str, KernelRelation], dictionary: Dictionary, watch: Watch
    ) -> None:
        self._relations = relations
        statistics = KernelStatistics(relations, _SAMPLE)
        self._binder = Binder(relations, dictionary, program.checked.source, statistics)
        self._clauses: dict[str, list[Clause]] = {}
        for stratum in program.strata:
            for clause in (clause for clause in stratum.clauses if not clause.is_handing_on):
                self._clauses.setdefault(clause.head, []).append(clause)
        self._enumerators: dict[int, Enumerator] = {}
        self._heads = _Heads(relations)
        self._setting = Setting(self._heads, frozenset(), Workspace(), watch)

    def derivations(
        self, relation: str, words: Matrix, is_sought: Callable[[Clause], bool] | None = None
    ) -> list[ClauseDerivations]:
        """All derivations of some facts, by clause; clauses that derive none are left out, and those not sought."""
        found = []
        heads = self._heads_of(relation, words)
        for clause in self._clauses.get(relation, ()):
            if is_sought is not None and not is_sought(clause):
                continue
            rows = self._of_clause(clause, heads.used)
            if rows is not None:
                bodies = tuple([self._facts(scan.relation, rows[:, i]) for i, scan in enumerate(clause.scans, 1)])
                found.append(ClauseDerivations(clause, rows[:, 0], bodies))
        return found

    def _heads_of(self, relation: str, words: Matrix) -> KernelRelation:
        """The facts as those of a relation, in which nothing is looked up."""
        name = _HEADS + relation
        if name not in self._heads:
            self._heads[name] = KernelRelation(name, words.shape[1], is_annotated=False)
        heads = self._heads[name]
        heads.used = 0
        heads.append(words)
        return heads

    def _of_clause(self, clause: Clause, facts: int) -> Matrix | None:
        """The derivations by a clause: of each the number of the fact, and the rows of the body facts. None: there are
        none."""
        enumerator = self._enumerators.get(clause.number)
        if enumerator is None:
            planned = plan_backward(clause, self._binder.statistics, with_rows=True)
            planned = replace(planned, gather=replace(planned.gather, relation=_HEADS + clause.head))
            enumerator = self._enumerators[clause.number] = Enumerator(self._binder.bind(planned), carried=0)
        width = len(clause.scans) + 1
        blocks: list[Matrix] = []

        def keep(block: Matrix, used: int) -> None:
            quota.ask(4 * used * width)
            blocks.append(block[:used, :width].copy())

        enumerator.of_rows(self._setting, (0, facts), keep)
        if len(blocks) > 1:
            return np.concatenate(blocks)
        return blocks[0] if blocks else None

    def _facts(self, name: str, rows: Vector) -> FactWords:
        relation = self._relations[name]
        if not relation.is_annotated:
            return FactWords(relation.rows[rows])
        return FactWords(relation.rows[rows], relation.level[rows], relation.count[rows])
