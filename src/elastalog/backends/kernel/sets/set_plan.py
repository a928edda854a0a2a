"""The variants of a stratum's clauses that maintain sets, and how their rounds are handed to the machine (see
`propagate` and `plain_rounds` there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import Structure

import numpy as np

from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.machine import layout, set_rounds
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.plan import MachinePlan, MachineVariants
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, MARKS
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Facts, Propagation, Rules
from elastalog.backends.watch import Watch
from elastalog.planning.logical import Absent, Clause, LogicalStratum
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
        self._with_bodies: dict[str, list[Enumerator]] | None = None
        self._everything: dict[int, list[Enumerator]] = {}
        self.rows_of_everything: dict[int, int] = {}
        self._propagation: PropagationPlan | None = None
        self._plain_rounds: PlainRoundsPlan | None = None

    def setting(
        self, relations: Mapping[str, KernelRelation], flat: frozenset[str], workspace: Workspace, watch: Watch
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
        every = {name: [self._enumerator(variant) for variant in some] for name, some in variants.items()}
        return {rules: {name: _among(some, rules) for name, some in every.items()} for rules in Rules}

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

    @property
    def propagation(self) -> PropagationPlan:
        """The recursive variants that start at facts of the stratum; laid out when first used."""
        if self._propagation is None:
            self._propagation = PropagationPlan(self._stratum.relations, self._propagation_variants())
        return self._propagation

    @property
    def plain_rounds(self) -> PlainRoundsPlan:
        """The plain rounds, and `with_bodies`; laid out when first used."""
        if self._plain_rounds is None:
            backward = [found.variant for some in self.with_bodies.values() for found in some]
            self._plain_rounds = PlainRoundsPlan(self._stratum.relations, self._propagation_variants(), backward)
        return self._plain_rounds

    def _propagation_variants(self) -> list[BoundVariant]:
        recursive = self.forward[Rules.RECURSIVE]
        return [found.variant for name in self._stratum.relations for found in recursive.get(name, ())]

    @property
    def with_bodies(self) -> dict[str, list[Enumerator]]:
        """Backward variants of the recursive clauses that give the row of every body fact, by head; planned when
        first used."""
        if self._with_bodies is None:
            self._with_bodies = {}
            statistics = self._binder.statistics
            for clause in self._stratum.clauses:
                if clause.is_recursive:
                    planned = plan_backward(clause, statistics, with_rows=True)
                    variant = self._binder.bind(planned)
                    self._with_bodies.setdefault(clause.head, []).append(self._enumerator(variant))
        return self._with_bodies


def has_negation(clause: Clause) -> bool:
    """Whether a clause has a negated goal."""
    return any(isinstance(goal, Absent) for goal in clause.goals)


def _among(variants: Sequence[Enumerator], rules: Rules) -> tuple[Enumerator, ...]:
    if rules is Rules.ALL:
        return tuple(variants)
    is_recursive = rules is Rules.RECURSIVE
    return tuple(found for found in variants if found.variant.clause.is_recursive == is_recursive)


class _RoundsPlan:
    """Variants of a stratum that start at its own facts, as the machine runs rounds of them."""

    def __init__(self, own: Sequence[str], variants: MachineVariants) -> None:
        self._own = own
        # No level matters of what variants read, nor of the stratum.
        read = (
            probe.relation for some in (variants.forward, variants.backward) for one in some for probe in one.probes
        )
        self._plan = MachinePlan(own, frozenset((*own, *read)), variants)
        self._workspace = Workspace()

    def _run(
        self,
        operator: Callable[[int], int],
        task: Structure,
        phase: int,
        delta: Facts,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
    ) -> None:
        """Runs rounds, from a first delta on."""
        plan, workspace = self._plan, self._workspace
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
        MachineRun(plan, workspace, relations, self._own, watch).run(operator)

    def _listed(self, relations: Mapping[str, KernelRelation]) -> Facts:
        """The facts in the lists of deltas."""
        found = {}
        for name in self._own:
            row = self._plan.relations[self._plan.number[name]]
            if row.delta < row.delta_end:
                found[name] = relations[name].touched[row.delta : row.delta_end, DELTA_LIST].copy()
        return found


class PropagationPlan(_RoundsPlan):
    """The recursive variants."""

    def __init__(self, own: Sequence[str], variants: Sequence[BoundVariant]) -> None:
        super().__init__(own, MachineVariants(variants))

    def run(
        self,
        delta: Facts,
        how: Propagation,
        *,
        is_new: bool,
        column: int,
        step: int,
        stamp: int,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
    ) -> tuple[Facts, int]:
        """Propagates a delta that has the marks of one, to the end: all deltas, and the next stamp. `column`, `step`,
        `is_new` and `stamp` are those of `set_operators.apply_heads`."""
        task = set_rounds.PropagationTask(
            column, step, is_new, stamp, int(how.required) | int(how.excluded), int(how.required), how.is_unsupported,
            int(how.added), int(how.removed),
        )  # fmt: skip
        phase = layout.GAINING if is_new else layout.SURVIVING
        self._run(set_rounds.propagate, task, phase, delta, relations, watch)
        for row in self._plan.relations:
            row.delta = 0
        return self._listed(relations), task.stamp


class PlainRoundsPlan(_RoundsPlan):
    """The variants of a `PropagationPlan`, and those that look for the derivations of given heads with their body
    facts."""

    def __init__(self, own: Sequence[str], forward: Sequence[BoundVariant], backward: Sequence[BoundVariant]) -> None:
        super().__init__(own, MachineVariants(forward, backward, backward))
        self._forward = len(forward)
        bodies = [[scan.relation for scan in variant.clause.scans] for variant in backward]
        self._most_scans = max(map(len, bodies), default=0)
        numbers = [[self._plan.number[name] if name in own else -1 for name in names] for names in bodies]
        self._scans: Vector = np.array(
            [number for some in numbers for number in (*some, *[-1] * (self._most_scans - len(some)))], np.int32
        )

    def run(
        self, candidates: Facts, stamp: int, relations: Mapping[str, KernelRelation], watch: Watch
    ) -> tuple[Facts, int, int]:
        """Deletes as long as nothing can be proved. Returns the facts that are still to be checked, how many heads were
        found that had not been checked, and the next stamp."""
        task = set_rounds.PlainRoundsTask(
            stamp=stamp, is_backward_half=True, forward=self._forward, scans=address_of(self._scans),
            scans_size=len(self._scans), most_scans=self._most_scans,
        )  # fmt: skip
        self._run(set_rounds.delete_plainly, task, layout.SURVIVING, candidates, relations, watch)
        return self._listed(relations), task.deletions, task.stamp
