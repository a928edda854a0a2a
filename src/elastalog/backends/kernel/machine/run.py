"""Running a machine to its end: it returns whenever something is to be done in Python, which is done here. The
workspace has what machines work in, shared by all strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import Structure, addressof, memmove, sizeof
from types import MappingProxyType

import numpy as np

from elastalog.backends.kernel.compile.signatures import Table, address_of, dtype_of
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.layout import BLOCK, SOUGHT_BITS, Frame, Machine, Node
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.store.count_vectors import MOST_STEPS, Vectors
from elastalog.backends.kernel.store.memory import Matrix, Vector, longer, sparse_bits
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

_MANY_ROWS = 64
"""A block from which on interning its values takes far longer than looking at the memory limit."""


class MachineRun:
    """A machine over the plan of a stratum. `vectors` are those of the dense strategy. `has_entries`: what is derived
    gets touched entries."""

    def __init__(
        self,
        plan: MachinePlan,
        workspace: Workspace,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
        *,
        vectors: Mapping[str, Vectors] = MappingProxyType({}),
        has_entries: bool = True,
    ) -> None:
        self.plan = plan
        self.workspace = workspace
        self.relations = relations
        self.watch = watch
        self._vectors = vectors
        self._has_entries = has_entries
        self._given: dict[int, Matrix] = {}

    def run(self, advance: Callable[[int], int]) -> int:
        """Calls an operator of a machine until it is done; returns DONE, or another reason that is not a wish."""
        machine, address = self.workspace.machine, self.workspace.address
        machine.stage = layout.OPENING
        machine.derived = 0
        machine.work = 0
        machine.work_allowed = self._work_allowed()
        machine.derived_allowed = self._allowance()
        while True:
            self.plan.verify(self.relations)
            reason = int(advance(address))
            if reason in (layout.DONE, layout.LARGE):
                self._count()
                return reason
            self.serve(reason)

    def _work_allowed(self) -> int:
        """How many rows may be gone through before limits are to be looked at."""
        return SETTINGS.work_between_checks

    def _count(self) -> None:
        """The machine is done."""
        self.watch.count(self.workspace.machine.derived, self.workspace.machine.work)

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
                if self._has_entries:
                    head.reserve_touched(rows)
                head.lay_out()
            case layout.NO_NODES:
                self.workspace.reserve_nodes(self._rows_of_block())
            case layout.NO_LEVELS:
                self.workspace.reserve_levels(machine.highest)
            case layout.NO_INDEX:
                self.plan.extend_index(machine.full_index, self.relations)
            case layout.NO_COUNTS:
                name, rows = self.plan.names[machine.full], self._rows_of_block()
                self._vectors[name].reserve(self.relations[name].used + rows, MOST_STEPS * rows)
            case layout.ACTIONS:
                self._act(machine.depth, self._rows_of_block())
            case layout.HAND_ON:
                frame = self.workspace.frames[machine.depth]
                is_usual = frame.block == frame.usual
                block = self.workspace.block(machine.depth, frame.width) if is_usual else self._given[machine.depth]
                self._take(machine.variant, block, frame.end)
                frame.begun = frame.end
            case layout.CHECK:
                self._check()

    def _check(self) -> None:
        """Looks at limits."""
        machine = self.workspace.machine
        derived, rows = machine.derived, machine.work
        if machine.phase != layout.LOSING:
            # What comes back now was lost before, but for what is new.
            self.watch.extend(derived, rows)
        machine.derived = 0
        machine.work_before += rows
        machine.work = 0
        self.watch.derived(derived, rows)
        self.watch.check()
        machine.derived_allowed = self._allowance()

    def _take(self, number: int, block: Matrix, used: int) -> None:
        """Takes the last block of a variant, if machines hand them on."""
        raise NotImplementedError

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


_NODE = dtype_of(Node)


class Workspace:
    """The record of a machine, a block for each step, and the queue of facts that wait for a level, whose nodes hold
    `words` each. Variants start at up to `start_rows` facts at a time."""

    def __init__(self, words: int = 0, start_rows: int = BLOCK) -> None:
        self.start_rows = start_rows
        self.machine = Machine()
        self.address = addressof(self.machine)
        self.frames = Table(Frame, 1)
        self._sought = sparse_bits(SOUGHT_BITS)
        self.machine.sought = address_of(self._sought)
        self._blocks: list[Vector] = []
        self._prepared: set[tuple[int, ...]] = {()}  # a plan without variants needs none
        self._take_nodes(np.empty(1024, _NODE), np.empty((1024, words), np.int32))
        self._take_levels(np.full(256, -1, np.int32), np.empty(256, np.int32))

    def attach(self, plan: MachinePlan, task: Structure | None = None) -> None:
        """From now on the machine runs the variants of a plan; `task` is what its kind needs."""
        machine = self.machine
        self.make_ready(plan)
        memmove(self.address, addressof(plan.tables), sizeof(plan.tables))
        machine.task = 0 if task is None else addressof(task)
        machine.drive = 0

    def make_ready(self, plan: MachinePlan) -> None:
        """Makes room for the blocks of a plan."""
        if plan.code.widths not in self._prepared:
            self._reserve_blocks(plan.code.widths)

    def _reserve_blocks(self, widths: tuple[int, ...]) -> None:
        """Makes room for blocks of at least these widths, step by step."""
        blocks = list(self._blocks)
        blocks.extend(np.empty(0, np.int32) for _ in range(len(widths) - len(blocks)))
        for depth, width in enumerate(widths):
            rows = BLOCK if depth else self.start_rows
            if len(blocks[depth]) < width * rows:
                blocks[depth] = np.empty(width * rows, np.int32)
        frames = Table(Frame, len(blocks))
        for frame, block in zip(frames, blocks, strict=True):
            frame.usual = address_of(block)
        machine = self.machine
        # Together, and last: Ctrl-C may have come before.
        self._blocks, self.frames, machine.frames = blocks, frames, frames.address
        self._prepared.add(widths)

    def block(self, depth: int, width: int) -> Matrix:
        """The block of a step."""
        return self._blocks[depth][: width * BLOCK].reshape(BLOCK, width)

    def _take_nodes(self, nodes: Vector, words: Matrix) -> None:
        machine, (room, width) = self.machine, words.shape
        nodes_at, words_at = address_of(nodes), address_of(words)
        # Without a call in between, at which Ctrl-C might come; below too.
        self._nodes, machine.nodes = nodes, nodes_at
        self._words, machine.words = words, words_at
        machine.nodes_room, machine.words_width = room, width

    def reserve_nodes(self, more: int) -> None:
        """Makes room for more facts in the queue."""
        used = self.machine.nodes_used
        size = max(used + more, 2 * len(self._nodes))
        self._take_nodes(longer(self._nodes, size), longer(self._words, size))

    @property
    def listed(self) -> Vector:
        """The nodes in use, where they list what was found."""
        return self._nodes[: self.machine.nodes_used]

    def _take_levels(self, waiting: Vector, heap: Vector) -> None:
        machine, room = self.machine, len(waiting)
        waiting_at, heap_at = address_of(waiting), address_of(heap)
        self._waiting, machine.waiting = waiting, waiting_at
        self._heap, machine.heap = heap, heap_at
        machine.levels_room = room

    def reserve_levels(self, highest: int) -> None:
        """Makes room for higher levels in the queue."""
        size = max(highest + 1, 2 * len(self._waiting))
        self._take_levels(longer(self._waiting, size, -1), longer(self._heap, size))

    def clear(self) -> None:
        """Empties the queue."""
        machine = self.machine
        if machine.levels_waiting:
            self._waiting.fill(-1)
        machine.levels_waiting = machine.nodes_used = machine.free_nodes = 0
