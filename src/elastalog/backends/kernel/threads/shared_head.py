"""A relation that all threads of a round insert into (see `inserting`)."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.turns import TURN, close_gaps, give_out, size_of_turns, turn_for
from elastalog.backends.kernel.threads.growth import Growth
from elastalog.settings import SETTINGS


class SharedHead:
    """A relation while so many threads insert into it. `is_full`: some thread has found no room. What is given out is
    noted in `turns` of the caller's, if there are any."""

    __slots__ = ("_threads", "_turns", "is_full", "relation")

    def __init__(self, relation: KernelRelation, threads: int, expected: int, turns: Vector | None = None) -> None:
        self.relation = relation
        self._threads = threads
        self._turns: Vector = np.zeros(size_of_turns(threads), np.int64) if turns is None else turns
        self.open(expected)

    def open(self, expected: int) -> None:
        """A round begins, which is expected to add so many rows."""
        relation = self.relation
        self.is_full = False
        turn = turn_for(expected)
        # In the end every thread may have a turn that it has only begun.
        size = relation.used + expected + 2 * self._threads * turn
        if size <= relation.full or relation.used < SETTINGS.least_shared_growth:
            relation.reserve(size)
        self._give_out(turn)

    @property
    def _turn(self) -> int:
        """How many rows threads are given at a time."""
        return int(self._turns[TURN])

    def make_room(self) -> Growth | None:
        """Makes room for more rows, while no thread inserts; in the table too, unless that is better done by all."""
        self.take_back()
        self.is_full = False
        relation, threads = self.relation, self._threads
        size = relation.used + max(relation.used // 4, SETTINGS.least_shared_room, 2 * threads * self._turn)
        if size <= relation.full or relation.used < SETTINGS.least_shared_growth:
            relation.reserve(size)
            self._give_out(self._turn)
            return None
        relation.reserve_rows(size)
        return Growth(relation, size, threads)

    def take_table(self, growth: Growth) -> None:
        """All threads have filled the table."""
        growth.finish()
        self._give_out(self._turn)

    def _give_out(self, turn: int) -> None:
        """From now on threads are given rows behind those that there are."""
        give_out(self._turns, self.relation.used, turn)

    def take_back(self) -> None:
        """Rows that threads were given and have not used are used no longer."""
        relation = self.relation
        relation.used = close_gaps(
            relation.rows, relation.table, relation.shift, relation.count, relation.used, relation.room, self._turns
        )
