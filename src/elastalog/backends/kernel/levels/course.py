"""The update of a stratum that hears of changes below it and of nothing else, in one call of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan
from elastalog.backends.kernel.machine import inputs as machine_inputs
from elastalog.backends.kernel.machine import layout, update
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.annotations import DELTA_LIST
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch


class StratumCourse:
    """Made once for a stratum, and used for all its updates in which no explicit fact of its own changes: losses,
    recovery and gains as in `StratumMaintenance`, which is for the others. `inputs` are the changed entries of the
    lower relations that it reads in the update under way."""

    def __init__(
        self,
        own: tuple[str, ...],
        plan: MaintenancePlan,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
        workspace: Workspace,
        is_global: bool,
    ) -> None:
        self.own = own
        self.plan = plan.machine
        self.inputs: Mapping[str, Vector] = {}
        self._relations = relations
        self._workspace = workspace
        self._is_global = is_global
        self._run = MachineRun(self.plan, workspace, relations, own, watch)
        self._rows = [(name, self.plan.relations[self.plan.number[name]]) for name in own]

    def begin(self, inputs: Mapping[str, Vector]) -> None:
        """Lays out what the first round may look at."""
        self.inputs = inputs
        workspace, plan = self._workspace, self.plan
        machine = workspace.machine
        workspace.clear()
        workspace.attach(plan)
        machine.is_global = self._is_global
        self._run.begin_narrow(inputs)
        machine_inputs.begin(workspace.address)
        for name, entries in inputs.items():
            row = plan.relations[plan.number[name]]
            row.inputs, row.inputs_number = address_of(entries), len(entries)
        machine.part = layout.TO_LOSE

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        self._run.run(update.advance)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        changed = {}
        for name, row in self._rows:
            if row.touched_used:
                relation = self._relations[name]
                relation.extend_indexes()
                if row.delta_end:
                    changed[name] = relation.touched[: row.delta_end, DELTA_LIST].copy()
        return changed

    def abandon(self) -> None:
        """Forgets what is under way; the marks of this stratum are taken off the relations below it."""
        self.plan.keep(self._relations, self.own)
        self._workspace.clear()
        machine_inputs.unmark(self._workspace.address)
