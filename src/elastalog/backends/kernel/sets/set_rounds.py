"""Handing the rounds of strategies that maintain sets to the machine (see `propagate` and `plain_rounds` there)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from elastalog.backends.kernel.execution.delta_variant import DeltaVariant
from elastalog.backends.kernel.machine import layout, plain_rounds, propagate
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.annotations import DELTA, DELTAS, MARKS
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Facts, Propagation
from elastalog.backends.watch import Watch
from elastalog.relations.words import Dictionary

PATIENCE = 16
"""Rounds after which it pays to lay the rest out for the machine."""


class PropagationPlan:
    """The recursive variants of a stratum that start at its own facts, as the machine runs them."""

    def __init__(self, own: Sequence[str], variants: Sequence[DeltaVariant], dictionary: Dictionary) -> None:
        self._own = own
        self._plan = MachinePlan(own, _read(own, variants), variants, [], [], dictionary)
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
        """Spreads from a delta that has the marks of one, to the end: all deltas, and the next stamp. `column`, `step`,
        `is_new` and `stamp` are those of `set_operators.apply_heads`."""
        plan, workspace = self._plan, self._workspace
        table = _lay_out(plan, workspace, relations, delta)
        marks: Vector = np.zeros(propagate.HOW_SIZE, np.int32)
        marks[propagate.COLUMN] = column
        marks[propagate.STEP_BY] = step
        marks[propagate.IS_NEW] = is_new
        marks[propagate.STAMP] = stamp
        marks[propagate.LOOKED_AT] = int(how.required) | int(how.excluded)
        marks[propagate.WANTED] = int(how.required)
        marks[propagate.IS_UNSUPPORTED] = how.is_unsupported
        marks[propagate.ADDED_MARKS] = int(how.added)
        marks[propagate.REMOVED_MARKS] = int(how.removed)
        state = workspace.state
        state[layout.PHASE] = layout.GAINING if is_new else layout.SURVIVING
        MachineRun(plan, workspace, relations, self._own, watch).run(
            lambda: propagate.propagate(
                state,
                table,
                plan.indexes,
                plan.variants,
                plan.code,
                workspace.frames,
                workspace.nodes,
                workspace.waiting,
                marks,
            )
        )
        table[:, layout.FROM] = 0
        return _listed(plan, relations, self._own), int(marks[propagate.STAMP])


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
        self._plan = plan = MachinePlan(own, _read(own, (*forward, *backward)), forward, backward, backward, dictionary)
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
        table = _lay_out(plan, workspace, relations, candidates)
        workspace.state[layout.PHASE] = layout.SURVIVING
        how: Vector = np.zeros(plain_rounds.HOW_SIZE, np.int32)
        how[plain_rounds.STAMP] = stamp
        how[plain_rounds.IS_BACKWARD_HALF] = True
        how[plain_rounds.FORWARD] = self._forward
        how[plain_rounds.SCANS] = self._most_scans
        MachineRun(plan, workspace, relations, self._own, watch).run(
            lambda: plain_rounds.delete_plainly(
                workspace.state,
                table,
                plan.indexes,
                plan.variants,
                plan.code,
                workspace.frames,
                workspace.nodes,
                self._scans,
                how,
            )
        )
        return (
            _listed(plan, relations, self._own),
            int(how[plain_rounds.DELETIONS]),
            int(how[plain_rounds.STAMP]),
        )


def _read(own: Sequence[str], variants: Iterable[DeltaVariant]) -> frozenset[str]:
    """The relations that variants read and those of the stratum: no level matters."""
    return frozenset((*own, *(probe.relation for variant in variants for probe in variant.probes)))


def _lay_out(plan: MachinePlan, workspace: Workspace, relations: Mapping[str, KernelRelation], delta: Facts) -> Vector:
    """Brings the tables of a machine up to date, with a first delta; returns that of the relations."""
    plan.refresh(relations, None)
    workspace.reserve_blocks(plan.widths)
    workspace.state[layout.NODES] = 0
    table = plan.relations
    table[:, layout.FROM : layout.TO + 1] = 0
    for name, entries in delta.items():
        touched = relations[name].touched
        touched[: len(entries), DELTAS] = entries
        touched[entries, MARKS] |= DELTA
        table[plan.number[name], layout.TO] = len(entries)
    return table


def _listed(plan: MachinePlan, relations: Mapping[str, KernelRelation], own: Sequence[str]) -> Facts:
    """The facts in the lists of deltas, from FROM to TO."""
    found = {}
    for name in own:
        first, end = plan.relations[plan.number[name], layout.FROM : layout.TO + 1].tolist()
        if first < end:
            found[name] = relations[name].touched[first:end, DELTAS].copy()
    return found
