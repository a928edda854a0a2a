"""Running a machine to its end: it returns whenever something is to be done in Python, which is done here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

_MANY_ROWS = 64
"""A block from which on interning its values takes far longer than looking at the memory limit."""


class MachineRun:
    """A machine over the plan of a stratum, whose relations are `own`. `on_check` is called whenever it looks at
    limits."""

    def __init__(
        self,
        plan: MachinePlan,
        workspace: Workspace,
        relations: Mapping[str, KernelRelation],
        own: Sequence[str],
        watch: Watch,
        on_check: Callable[[], None] = lambda: None,
    ) -> None:
        self.plan = plan
        self.workspace = workspace
        self.relations = relations
        self.own = own
        self.watch = watch
        self._on_check = on_check
        self._given: dict[int, Matrix] = {}

    def run(self, advance: Callable[[int], int]) -> int:
        """Calls an operator of a machine until it is done; returns DONE, or another reason that is not a wish."""
        machine, address = self.workspace.machine, self.workspace.address
        machine.stage = layout.OPENING
        machine.derived = 0
        machine.work = 0
        machine.work_allowed = SETTINGS.work_between_checks
        machine.derived_allowed = self._allowance()
        while True:
            self.plan.verify(self.relations)
            self.plan.is_ahead = True
            try:
                reason = int(advance(address))
            finally:
                # Whatever interrupts the work now, a rollback must know how far it went.
                self.plan.keep(self.relations, self.own)
            if reason in (layout.DONE, layout.LARGE):
                self.watch.count(machine.derived, machine.work)
                return reason
            self.serve(reason)

    def _allowance(self) -> int:
        """How many derivations may be made before the budget is to be looked at."""
        return max(self.watch.allowance(SETTINGS.work_between_checks), 1)

    def serve(self, reason: int) -> None:
        """Does what the machine wishes."""
        machine = self.workspace.machine
        match reason:
            case layout.NO_ROOM:
                head = self.relations[self.plan.names[machine.full]]
                rows = self._rows_of_block()
                head.reserve(head.used + max(rows, 1))
                head.reserve_touched(rows)
                self.plan.refresh_relation(machine.full, head)
            case layout.NO_NODES:
                self.workspace.reserve_nodes(self._rows_of_block())
            case layout.NO_LEVELS:
                self.workspace.reserve_levels(machine.highest)
            case layout.NO_INDEX:
                self.plan.extend_index(machine.full_index, self.relations)
            case layout.ACTIONS:
                self._act(machine.depth, self._rows_of_block())
            case layout.CHECK:
                derived, rows = machine.derived, machine.work
                if machine.phase == layout.LOSING:
                    self.watch.lose(derived)
                else:
                    # What comes back now was lost before, but for what is new.
                    self.watch.extend(derived, rows)
                machine.derived = 0
                machine.work_before += rows
                machine.work = 0
                self.watch.derived(derived, rows)
                self.watch.check()
                self._on_check()
                machine.derived_allowed = self._allowance()

    def _rows_of_block(self) -> int:
        """How many rows there are in the block at which the machine has left off. Between variants there is none."""
        return self.workspace.frames[self.workspace.machine.depth].end

    def _act(self, depth: int, rows: int) -> None:
        """Runs actions in Python on the block that the machine has just filled."""
        if rows < _MANY_ROWS:
            self.watch.step()
        else:
            self.watch.check()
        workspace = self.workspace
        transform, width = self.plan.code.transforms[workspace.machine.action]
        block, rows = transform(workspace.block(depth, width), rows)
        # A range may have given more rows than the usual block has room for; steps further on may do so before it is
        # used up.
        self._given[depth] = block
        frame = workspace.frames[depth]
        frame.block = address_of(block)
        frame.rows = len(block)
        frame.end = rows
