"""Running a machine to its end: it returns whenever something is to be done in Python, which is done here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch

_MOST_WORK = 1 << 17
"""Rows that a machine looks at or makes before it looks at limits: a few milliseconds."""


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

    def run(self, advance: Callable[[], int]) -> int:
        """Calls the machine until it is done; returns DONE, or another reason that is not a wish."""
        state = self.workspace.state
        state[layout.STAGE] = 0
        state[layout.DERIVED] = 0
        state[layout.WORK] = 0
        state[layout.WORK_ALLOWED] = _MOST_WORK
        state[layout.DERIVED_ALLOWED] = self._allowance()
        while True:
            try:
                reason = int(advance())
            finally:
                # Whatever interrupts the work now, a rollback must know how far it went.
                self.plan.keep(self.relations, self.own)
            if reason in (layout.DONE, layout.LARGE):
                self.watch.derivations += int(state[layout.DERIVED])
                return reason
            self._serve(reason)

    def _allowance(self) -> int:
        """How many derivations may be made before the budget is to be looked at."""
        return max(self.watch.allowance(_MOST_WORK), 1)

    def _serve(self, reason: int) -> None:
        plan, workspace, state = self.plan, self.workspace, self.workspace.state
        depth = int(state[layout.DEPTH])
        rows = int(workspace.frames[depth, layout.END])
        match reason:
            case layout.NO_ROOM:
                number = int(state[layout.FULL])
                head = self.relations[plan.names[number]]
                head.reserve(head.used + max(rows, 1))
                head.touched = bookkeeping.room(head.touched, head.touched_used + rows)
                plan.refresh_relation(number, head)
            case layout.NO_NODES:
                workspace.reserve_nodes(rows)
            case layout.NO_LEVELS:
                workspace.reserve_levels(int(state[layout.HIGHEST]))
            case layout.NO_INDEX:
                plan.extend_index(int(state[layout.INDEX]), self.relations)
            case layout.ACTIONS:
                self._act(depth, rows)
            case layout.CHECK:
                derived = int(state[layout.DERIVED])
                state[layout.DERIVED] = 0
                state[layout.WORK] = 0
                self.watch.derived(derived)
                self.watch.check()
                self._on_check()
                state[layout.DERIVED_ALLOWED] = self._allowance()

    def _act(self, depth: int, rows: int) -> None:
        """Runs actions in Python on the block that the machine has just filled."""
        workspace, frame = self.workspace, self.workspace.frames[depth]
        transform, width = self.plan.transforms[int(workspace.state[layout.ACTION])]
        block, rows = transform(workspace.block(depth, width), rows)
        # A range may have given more rows than the usual block has room for; steps further on may do so before it is
        # used up.
        self._given[depth] = block
        frame[layout.BLOCK_AT] = address_of(block)
        frame[layout.BLOCK_ROWS] = len(block)
        frame[layout.END] = rows
