"""The variants of a stratum's clauses that maintain sets, and how their rounds are handed to the machine (see
`machine.set_rounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.plan import MachinePlan, MachineVariants, start_of
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.machine.set_rounds import IS_RECURSIVE, READS_ABSENCE, SetRoundsTask, run_rounds
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, MARKS
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Facts
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
        self._plan = plan
        self.backward = {name: [*map(self._enumerator, some)] for name, some in plan.backward.items()}
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
    def rounds(self) -> SetRounds:
        """Rounds of all variants that start at goals; laid out when first used."""
        return SetRounds(self._stratum.relations, [one for some in self._plan.forward.values() for one in some])

    @cached_property
    def plain_rounds(self) -> tuple[SetRounds, int, Matrix]:
        """Rounds of those that start at facts of the stratum, and of `with_bodies`; how many variants the former are,
        and for each of the latter the numbers of the relations of its scans, -1 for those below the stratum. Laid out
        when first used."""
        own = self._stratum.relations
        forward = [one for name in own for one in self._plan.forward.get(name, ())]
        backward = [found.variant for some in self.with_bodies.values() for found in some]
        rounds = SetRounds(own, forward, backward)
        bodies = [[scan.relation for scan in variant.clause.scans] for variant in backward]
        scans: Matrix = np.full((len(bodies), max(map(len, bodies), default=0)), -1, np.int32)
        for numbers, names in zip(scans, bodies, strict=True):
            numbers[: len(names)] = [rounds.plan.number[name] if name in own else -1 for name in names]
        return rounds, len(forward), scans

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
    """Variants of a stratum, as the machine runs rounds of them: those that start at goals, and those that look for
    derivations of given heads."""

    def __init__(
        self, own: Sequence[str], forward: Sequence[BoundVariant], backward: Sequence[BoundVariant] = ()
    ) -> None:
        self._own = own
        forward = sorted(forward, key=lambda variant: start_of(variant) not in own)  # as they are laid out
        self._kinds: Vector = np.array([_kind_of(variant.clause) for variant in forward], np.int32)
        self.plan = MachinePlan(own, frozenset(), MachineVariants(forward, backward, backward))
        self._workspace = Workspace()
        self._flat: frozenset[str] | None = None
        self._stamp = -1

    def run(
        self,
        task: SetRoundsTask,
        phase: int,
        delta: Facts,
        flat: frozenset[str],
        relations: Mapping[str, KernelRelation],
        watch: Watch,
    ) -> None:
        """Runs rounds from a first delta on; facts of relations that are `flat` count as level 0."""
        plan, workspace = self.plan, self._workspace
        for name, entries in delta.items():
            if name in plan.number:  # otherwise nothing starts there
                touched = relations[name].touched
                touched[: len(entries), DELTA_LIST] = entries
                touched[entries, MARKS] |= DELTA
        if self._stamp != STAMPS.last:  # something has moved, or a relation was replaced
            plan.refresh(relations)
            self._stamp = STAMPS.last
        for name, row in zip(plan.names, plan.relations, strict=True):
            row.delta, row.delta_end = 0, len(delta.get(name, ()))
            if flat is not self._flat:
                row.listed_in, row.is_flat = DELTA_LIST, name in flat
        self._flat = flat
        task.kinds = address_of(self._kinds)
        workspace.clear()
        workspace.attach(plan, task)
        workspace.machine.phase = phase
        MachineRun(plan, workspace, relations, watch).run(run_rounds)

    def heads(self) -> Facts:
        """The heads that the one round has found."""
        nodes = self._workspace.listed
        found = {name: nodes["entry"][nodes["relation"] == self.plan.number[name]] for name in self._own}
        return {name: entries for name, entries in found.items() if len(entries)}

    def deltas(self, relations: Mapping[str, KernelRelation], *, is_left: bool = False) -> Facts:
        """All deltas or, of the last, what is left (`is_left`)."""
        found = {}
        for name in self._own:
            row = self.plan.relations[self.plan.number[name]]
            first = row.delta if is_left else 0
            if first < row.delta_end:
                found[name] = relations[name].touched[first : row.delta_end, DELTA_LIST].copy()
        return found


def _kind_of(clause: Clause) -> int:
    is_reading = any(isinstance(goal, Absent) for goal in clause.goals)
    return (IS_RECURSIVE if clause.is_recursive else 0) | (READS_ABSENCE if is_reading else 0)
