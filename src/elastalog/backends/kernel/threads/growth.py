"""Growing a relation in several threads: each copies a share of the rows and fills a part of the new set table."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store import set_table as row_operators
from elastalog.backends.kernel.store.memory import Vector, rows_for, slots_for
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads import inserting as operators

_NOTED = 1 << 12
"""Rows put off by a thread that are entered one by one; more, and the table is filled by one thread."""

_FACTOR = 1.6


class Growth:
    """Makes room for `size` rows, as `KernelRelation.reserve` does: every thread calls `work`, then one `finish`."""

    def __init__(self, relation: KernelRelation, size: int, threads: int) -> None:
        self._relation = relation
        self._threads = threads
        self._copies: list[tuple[Vector, Vector]] = []
        rows = relation.rows
        if size > len(rows):
            capacity = max(size, int(len(rows) * _FACTOR))
            annotations = [relation.level, relation.count] if relation.is_annotated else []
            self._copies = [(old, np.empty((capacity, *old.shape[1:]), old.dtype)) for old in (rows, *annotations)]
        self._table: Vector | None = None
        self._shift = relation.shift
        if is_too_full(size, len(relation.table)):
            self._table = np.empty(slots_for(size), np.uint32)
            self._shift = 65 - len(self._table).bit_length()
        self._put_off: Vector = np.empty((threads, _NOTED), np.int64)
        self._waiting = [0] * threads

    def work(self, thread: int) -> None:
        """The share of one thread."""
        relation = self._relation
        rows = slice(relation.used * thread // self._threads, relation.used * (thread + 1) // self._threads)
        for old, new in self._copies:
            new[rows] = old[rows]
        if self._table is not None:
            size = len(self._table)
            first, last = (size * number // self._threads for number in (thread, thread + 1))
            self._waiting[thread] = operators.rebuild_part(
                relation.rows, relation.used, self._table, self._shift, first, last, self._put_off[thread]
            )

    def finish(self) -> None:
        """Puts the new arrays in the place of the old."""
        relation = self._relation
        if self._table is not None:
            if max(self._waiting) <= _NOTED:
                for noted, waiting in zip(self._put_off, self._waiting, strict=True):
                    operators.enter(relation.rows, self._table, self._shift, noted[:waiting])
            else:
                self._table.fill(0)
                row_operators.rebuild(relation.rows, relation.used, self._table, self._shift)
            relation.take_table(self._table)
        if self._copies:
            relation.rows = self._copies[0][1]
        if self._copies and relation.is_annotated:
            relation.level, relation.count = (new for _, new in self._copies[1:])


def is_too_full(size: int, slots: int) -> bool:
    """Whether a set table has too few slots for a number of rows."""
    return size > rows_for(slots)
