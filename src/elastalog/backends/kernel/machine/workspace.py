"""What the machines work in, shared by all strata."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.store.memory import Matrix, Vector


class Workspace:
    """What the machine works in, shared by all strata: a block for each step, and the queue of facts that wait for a
    level."""

    def __init__(self, node_width: int = layout.NODE_WIDTH) -> None:
        self.state: Vector = np.zeros(layout.STATE_SIZE, np.int64)
        self.frames: Vector = np.zeros((1, layout.FRAME_WIDTH), np.int64)
        self.nodes: Matrix = np.empty((1024, node_width), np.int32)
        self.waiting: Vector = np.full(256, -1, np.int32)
        self.heap: Vector = np.empty(256, np.int32)
        self._blocks: list[Vector] = []
        self._prepared: set[tuple[int, ...]] = set()

    def reserve_blocks(self, widths: tuple[int, ...]) -> None:
        """Makes room for blocks of at least so many columns, step by step."""
        if widths in self._prepared:
            return
        blocks = list(self._blocks)
        blocks.extend(np.empty(0, np.int32) for _ in range(len(widths) - len(blocks)))
        for depth, width in enumerate(widths):
            if len(blocks[depth]) < width * layout.BLOCK:
                blocks[depth] = np.empty(width * layout.BLOCK, np.int32)
        frames = np.zeros((len(blocks), layout.FRAME_WIDTH), np.int64)
        frames[:, layout.USUAL] = [address_of(block) for block in blocks]
        # Together, and last: Ctrl-C may have come before.
        self._blocks, self.frames = blocks, frames
        self._prepared.add(widths)

    def block(self, depth: int, width: int) -> Matrix:
        """The block of a step."""
        return self._blocks[depth][: width * layout.BLOCK].reshape(layout.BLOCK, width)

    def reserve_nodes(self, more: int) -> None:
        """Makes room for more facts in the queue."""
        used = int(self.state[layout.NODES])
        wider = np.empty((max(used + more, 2 * len(self.nodes)), self.nodes.shape[1]), np.int32)
        wider[:used] = self.nodes[:used]
        self.nodes = wider

    def reserve_levels(self, highest: int) -> None:
        """Makes room for higher levels in the queue."""
        size = max(highest + 1, 2 * len(self.waiting))
        waiting, heap = np.full(size, -1, np.int32), np.empty(size, np.int32)
        waiting[: len(self.waiting)] = self.waiting
        heap[: len(self.heap)] = self.heap
        # The machine looks at the length of `waiting` alone.
        self.heap, self.waiting = heap, waiting

    @property
    def is_waiting(self) -> bool:
        """Whether some fact waits for a level."""
        return bool(self.state[layout.LEVELS_WAITING])

    def clear(self) -> None:
        """Empties the queue."""
        if self.state[layout.LEVELS_WAITING]:
            self.waiting.fill(-1)
        self.state[:] = 0
