"""Handing the rounds of strategies that maintain sets to the machine (see `propagate` and `plain_rounds` there)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ctypes import Structure

import numpy as np

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant
from elastalog.backends.kernel.machine import layout, set_rounds
from elastalog.backends.kernel.machine.plan import MachinePlan, MachineVariants
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.annotations import DELTA, DELTA_LIST, MARKS
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Facts, Propagation
from elastalog.backends.watch import Watch
from elastalog.relations.words import Dictionary


class PropagationPlan:
    """The recursive variants of a stratum that start at its own facts, as the machine runs them."""

    def __init__(self, own: Sequence[str], variants: Sequence[DeltaVariant], dictionary: Dictionary) -> None:
        self._own = own
        self._plan = MachinePlan(own, _read(own, variants), MachineVariants(variants), dictionary)
        self._workspace = Workspace()

    def keep(self, relations: Mapping[str, KernelRelation]) -> None:
        """Tells relations how far they go, if something has interrupted that."""
        self._plan.keep(relations, self._own)

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
        plan, workspace = self._plan, self._workspace
        task = set_rounds.PropagationTask(
            column, step, is_new, stamp, int(how.required) | int(how.excluded), int(how.required), how.is_unsupported,
            int(how.added), int(how.removed),
        )  # fmt: skip
        workspace.machine.phase = layout.GAINING if is_new else layout.SURVIVING
        _lay_out(plan, workspace, task, relations, delta)
        MachineRun(plan, workspace, relations, self._own, watch).run(set_rounds.propagate)
        for row in plan.relations:
            row.delta = 0
        return _listed(plan, relations, self._own), task.stamp


class PlainRoundsPlan:
    """The same variants, and those that look for the derivations of given heads with their body facts."""

    def __init__(
        self,
        own: Sequence[str],
        forward: Sequence[DeltaVariant],
        backward: Sequence[DeltaVariant],
        dictionary: Dictionary,
    ) -> None:
        self._own = own
        self._forward = len(forward)
        variants = MachineVariants(forward, backward, backward)
        self._plan = plan = MachinePlan(own, _read(own, (*forward, *backward)), variants, dictionary)
        self._workspace = Workspace()
        bodies = [[scan.relation for scan in variant.clause.scans] for variant in backward]
        self._most_scans = max(map(len, bodies), default=0)
        numbers = [[plan.number[name] if name in own else -1 for name in names] for names in bodies]
        self._scans: Vector = np.array(
            [number for some in numbers for number in (*some, *[-1] * (self._most_scans - len(some)))], np.int32
        )

    def keep(self, relations: Mapping[str, KernelRelation]) -> None:
        """As that of `PropagationPlan`."""
        self._plan.keep(relations, self._own)

    def run(
        self, candidates: Facts, stamp: int, relations: Mapping[str, KernelRelation], watch: Watch
    ) -> tuple[Facts, int, int]:
        """Deletes as long as nothing can be proved. Returns the facts that are still to be checked, how many heads were
        found that had not been checked, and the next stamp."""
        plan, workspace = self._plan, self._workspace
        task = set_rounds.PlainRoundsTask(
            stamp=stamp, is_backward_half=True, forward=self._forward, scans=address_of(self._scans),
            scans_size=len(self._scans), most_scans=self._most_scans,
        )  # fmt: skip
        workspace.machine.phase = layout.SURVIVING
        _lay_out(plan, workspace, task, relations, candidates)
        MachineRun(plan, workspace, relations, self._own, watch).run(set_rounds.delete_plainly)
        return _listed(plan, relations, self._own), task.deletions, task.stamp


def _read(own: Sequence[str], variants: Iterable[DeltaVariant]) -> frozenset[str]:
    """The relations that variants read and those of the stratum: no level matters."""
    return frozenset((*own, *(probe.relation for variant in variants for probe in variant.probes)))


def _lay_out(
    plan: MachinePlan, workspace: Workspace, task: Structure, relations: Mapping[str, KernelRelation], delta: Facts
) -> None:
    """Brings the tables of a machine up to date, with a first delta."""
    plan.refresh(relations)
    workspace.clear()
    workspace.attach(plan, task)
    for name, row in zip(plan.names, plan.relations, strict=True):
        row.listed_in, row.delta, row.delta_end = DELTA_LIST, 0, len(delta.get(name, ()))
    for name, entries in delta.items():
        touched = relations[name].touched
        touched[: len(entries), DELTA_LIST] = entries
        touched[entries, MARKS] |= DELTA


def _listed(plan: MachinePlan, relations: Mapping[str, KernelRelation], own: Sequence[str]) -> Facts:
    """The facts in the lists of deltas."""
    found = {}
    for name in own:
        row = plan.relations[plan.number[name]]
        if row.delta < row.delta_end:
            found[name] = relations[name].touched[row.delta : row.delta_end, DELTA_LIST].copy()
    return found
