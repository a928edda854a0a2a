"""The update of the dense strategy in the kernel: a vector of counts for every fact (algorithm 5, delta-driven).

It goes as `levels.stratum_update` does, in the same machine, with two differences. Every derivation through a lost or
lowered fact moves in the vector of its head, not only those at the head's first level. And a lost fact is not looked
for backwards: what is left in its vector are its derivations from facts that were not lost, so its first non-zero level
is where it may come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan, StratumMaintenance
from elastalog.backends.kernel.machine import counts, layout
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.annotations import COUNT, IS, LOSS_LIST, MARKS, NEW, ROW
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError


class DenseMaintenance(StratumMaintenance):
    """An update of one stratum under way; `vectors` are those of all relations."""

    def __init__(
        self, plan: MaintenancePlan, impulse: Impulse, workspace: Workspace, vectors: Mapping[str, Vectors]
    ) -> None:
        self.vectors = vectors
        super().__init__(plan, impulse, workspace)

    def _make_run(self, watch: Watch) -> MachineRun:
        return _DenseRun(self.plan, self.workspace, self.relations, self.own, watch, self.vectors)

    def lose(self) -> None:
        """Takes away the old derivations through deleted facts and what changed below, and so on to the end."""
        self._change_explicit(self.deleted, -1)
        super().lose()

    def recover(self) -> None:
        """Lost facts wait for the next level of their vectors."""
        self._change_explicit(self.inserted, 1)
        super().recover()

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        for name in self.own:
            relation, vectors = self.relations[name], self.vectors[name]
            touched = relation.touched[: relation.touched_used]
            present = np.flatnonzero(touched[:, MARKS] & IS)
            levels, first_counts = vectors.lowest(touched[present, ROW])
            if vectors.place.faults or (levels != touched[present, NEW]).any():
                raise InternalError("dense maintenance", f"the counts of `{name}` contradict its levels")
            touched[present, COUNT] = first_counts
        return super().end()

    # --- within ----------------------------------------------------------------------------------------------------

    def _change_explicit(self, changed: Mapping[str, Vector], step: int) -> None:
        for name, entries in changed.items():
            self.vectors[name].change(self.relations[name].touched[entries, ROW], 0, step)

    def _recover_lost(self, lost: Mapping[str, int]) -> None:
        for name, entries in self.deleted.items():
            self._wait_for_next_level(name, entries)
        for name, length in lost.items():
            self._wait_for_next_level(name, self.relations[name].touched[:length, LOSS_LIST].copy())

    def _wait_for_next_level(self, name: str, entries: Vector) -> None:
        touched, workspace = self.relations[name].touched, self.workspace
        levels, _ = self.vectors[name].lowest(touched[entries, ROW])
        highest = int(levels.max(initial=0))
        machine = workspace.machine
        if highest >= machine.levels_room:
            workspace.reserve_levels(highest)
        if machine.nodes_used + len(entries) > machine.nodes_room:
            workspace.reserve_nodes(len(entries))
        counts.wait_for_levels(workspace.address, self.plan.number[name], touched, entries, levels)

    def _run(self, phase: int) -> None:
        for name in self.own:
            self.plan.relations[self.plan.number[name]].vectors = self.vectors[name].address
        super()._run(phase)


class _DenseRun(MachineRun):
    """The machine of an update, with vectors that grow."""

    def __init__(
        self,
        plan: MachinePlan,
        workspace: Workspace,
        relations: Mapping[str, KernelRelation],
        own: Sequence[str],
        watch: Watch,
        vectors: Mapping[str, Vectors],
    ) -> None:
        super().__init__(plan, workspace, relations, own, watch)
        self._vectors = vectors

    def serve(self, reason: int) -> None:
        if reason != layout.NO_COUNTS:
            super().serve(reason)
            return
        machine = self.workspace.machine
        name = self.plan.names[machine.full]
        head, vectors = self.relations[name], self._vectors[name]
        rows = self.workspace.frames[machine.depth].end
        vectors.reserve(head.used + rows, counts.MOST_STEPS * rows)
