"""A wider set table for a relation, filled by several threads."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store import inserting as operators
from elastalog.backends.kernel.store.memory import Vector, slots_for
from elastalog.backends.kernel.store.relation import KernelRelation


class Growth:
    """Makes a set table for `size` rows: every thread calls `work`, then one `finish`."""

    def __init__(self, relation: KernelRelation, size: int, threads: int) -> None:
        self._relation = relation
        self._threads = threads
        relation.forget_table()
        # Not cleared: the threads, which touch it first, get zeros from the system.
        self._table: Vector = np.zeros(slots_for(size), np.uint32)

    def work(self, thread: int) -> None:
        """The share of one thread."""
        relation = self._relation
        first, last = (relation.used * number // self._threads for number in (thread, thread + 1))
        operators.rebuild_together(relation.rows, first, last, self._table, 65 - len(self._table).bit_length())

    def finish(self) -> None:
        """Puts the new table in the place of the old."""
        self._relation.take_table(self._table)
