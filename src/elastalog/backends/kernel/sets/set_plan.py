"""The variants of a stratum's clauses that maintain sets, and how their rounds are handed to the machine (see
`propagate` and `plain_rounds` there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.plan import MachinePlan, MachineVariants
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.machine.set_rounds import PlainRoundsTask, PropagationTask
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, MARKS
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Facts, Rules
from elastalog.backends.watch import Watch
from elastalog.planning.logical import Clause, LogicalStratum
from elastalog.planning.variants import plan_backward, plan_from_goal, plan_full


class SetPlan:
    """The plans of `MaintenancePlan`, and backwards with body facts. `flat`: all relations; their facts count as level
    0. `rows_of_everything`: how many rows the last enumeration of a clause went through."""

    def __init__(self, stratum: LogicalStratum, plan: MaintenancePlan, binder: Binder) -> None:
        self.flat = frozenset(binder.relations)
        self._setting: Setting | None = None
        self._stratum = stratum
        self._binder = binder
        self.forward = self._by_rules(plan.forward)
        self.backward = self._by_rules(plan.backward)
        self._everything: dict[int, list[Enumerator]] = {}
        self.rows_of_everything: dict[int, int] = {}

    def setting(
        self, relations: Mapping[str, KernelRelation], workspace: Workspace, watch: Watch, flat: frozenset[str]
    ) -> Setting:
        """What variants run in; the same as the last time if it can be: to begin in another one takes time."""
        last = self._setting
        if last is None or last.flat is not flat or last.relations is not relations:
            last = self._setting = Setting(relations, flat, workspace, watch)
        return last

    def _enumerator(self, variant: BoundVariant) -> Enumerator:
        return Enumerator(variant, frozenset(self._stratum.relations))

    def _by_rules(
        self, variants: Mapping[str, Sequence[BoundVariant]]
    ) -> dict[Rules, dict[str, tuple[Enumerator, ...]]]:
        """Variants by relation, those of all rules, of the recursive ones and of the others."""
        every = {name: tuple(map(self._enumerator, some)) for name, some in variants.items()}
        recursive, others = (
            {name: tuple(one for one in some if one.variant.clause.is_recursive == are) for name, some in every.items()}
            for are in (True, False)
        )
        return {Rules.ALL: every, Rules.RECURSIVE: recursive, Rules.NONRECURSIVE: others}

    def everything(self, clause: Clause) -> list[Enumerator]:
        """Variants of a clause each of which enumerates all its derivations, with the row of every body fact if it is
        recursive; planned when first used. Recursive clauses start at a goal of the stratum, as they did when the
        stratum was evaluated first."""
        variants = self._everything.get(clause.number)
        if variants is None:
            statistics = self._binder.statistics
            planned = [plan_from_goal(clause, goal, statistics, with_rows=True) for goal in clause.recursive_goals] or [
                plan_full(clause, statistics)
            ]
            variants = [self._enumerator(self._binder.bind(one)) for one in planned]
            self._everything[clause.number] = variants
        return variants

    @cached_property
    def propagation(self) -> SetRounds:
        """Rounds of the recursive variants that start at facts of the stratum; laid out when first used."""
        return SetRounds(self._stratum.relations, MachineVariants(self._propagation_variants()))

    @cached_property
    def plain_rounds(self) -> tuple[SetRounds, int, Matrix]:
        """Rounds of the same, and of `with_bodies`; how many variants the former are, and for each of the latter the
        numbers of the relations of its scans, -1 for those below the stratum. Laid out when first used."""
        own, forward = self._stratum.relations, self._propagation_variants()
        backward = [found.variant for some in self.with_bodies.values() for found in some]
        rounds = SetRounds(own, MachineVariants(forward, backward, backward))
        bodies = [[scan.relation for scan in variant.clause.scans] for variant in backward]
        scans: Matrix = np.full((len(bodies), max(map(len, bodies), default=0)), -1, np.int32)
        for numbers, names in zip(scans, bodies, strict=True):
            numbers[: len(names)] = [rounds.plan.number[name] if name in own else -1 for name in names]
        return rounds, len(forward), scans

    def _propagation_variants(self) -> list[BoundVariant]:
        recursive = self.forward[Rules.RECURSIVE]
        return [found.variant for name in self._stratum.relations for found in recursive.get(name, ())]

    @cached_property
    def with_bodies(self) -> dict[str, list[Enumerator]]:
        """Backward variants of the recursive clauses that give the row of every body fact, by head; planned when
        first used."""
        found: dict[str, list[Enumerator]] = {}
        for clause in self._stratum.clauses:
            if clause.is_recursive:
                planned = plan_backward(clause, self._binder.statistics, with_rows=True)
                found.setdefault(clause.head, []).append(self._enumerator(self._binder.bind(planned)))
        return found


class SetRounds:
    """Variants of a stratum that start at its own facts, as the machine runs rounds of them."""

    def __init__(self, own: Sequence[str], variants: MachineVariants) -> None:
        self._own = own
        # No level matters of what variants read, nor of the stratum.
        read = (
            probe.relation for some in (variants.forward, variants.backward) for one in some for probe in one.probes
        )
        self.plan = MachinePlan(own, frozenset((*own, *read)), variants)
        self._workspace = Workspace()

    def run(
        self,
        operator: Callable[[int], int],
        task: PropagationTask | PlainRoundsTask,
        phase: int,
        delta: Facts,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
        *,
        is_left: bool = False,
    ) -> Facts:
        """Runs rounds from a first delta on. Returns all deltas or, of the last, what is left (`is_left`)."""
        plan, workspace = self.plan, self._workspace
        workspace.machine.phase = phase
        plan.refresh(relations)
        workspace.clear()
        workspace.attach(plan, task)
        for name, row in zip(plan.names, plan.relations, strict=True):
            row.listed_in, row.delta, row.delta_end = DELTA_LIST, 0, len(delta.get(name, ()))
        for name, entries in delta.items():
            touched = relations[name].touched
            touched[: len(entries), DELTA_LIST] = entries
            touched[entries, MARKS] |= DELTA
        MachineRun(plan, workspace, relations, watch).run(operator)
        ends = {name: plan.relations[plan.number[name]] for name in self._own}
        spans = {name: (row.delta if is_left else 0, row.delta_end) for name, row in ends.items()}
        return {
            name: relations[name].touched[first:end, DELTA_LIST].copy()
            for name, (first, end) in spans.items()
            if first < end
        }
