"""A relation that all threads of a round insert into (see `inserting`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.backends.kernel.machine.shares import turn_for
from elastalog.backends.kernel.store import inserting as operators
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.growth import Growth

LEAST_ROOM = 1 << 16
"""Rows for which there is room after a meeting, at least."""

LEAST_GROWTH = 1 << 14
"""Relations with fewer rows are made larger by one thread."""


class SharedHead:
    """A relation while so many threads insert into it; facts from row `counted_from` on are counted. `is_full`: some
    thread has found no room. What is given out is noted in vectors of the caller's, if there are any."""

    __slots__ = ("_counted_from", "_given", "_states", "is_full", "relation")

    def __init__(
        self,
        relation: KernelRelation,
        counted_from: int,
        threads: int,
        expected: int,
        given: Vector | None = None,
        states: Sequence[Vector] = (),
    ) -> None:
        self.relation = relation
        self._given: Vector = np.zeros(1, np.int64) if given is None else given
        self._states = states or [np.zeros(operators.TURN_STATE_SIZE, np.int64) for _ in range(threads)]
        self.open(counted_from, expected)

    def open(self, counted_from: int, expected: int) -> None:
        """A round begins, which is expected to add so many rows."""
        relation = self.relation
        self.is_full = False
        self._counted_from = counted_from
        turn = turn_for(expected)
        # In the end every thread may have a turn that it has only begun.
        size = relation.used + expected + 2 * len(self._states) * turn
        if size <= relation.full or relation.used < LEAST_GROWTH:
            relation.reserve(size)
        self._give_out(turn)

    @property
    def _turn(self) -> int:
        """How many rows threads are given at a time."""
        return int(self._states[0][operators.TURN])

    def insert(self, thread: int, block: Matrix, start: int, stop: int) -> int:
        """Inserts rows of a block; returns where it stopped, early when there is no room."""
        relation = self.relation
        done: int = operators.insert_together(
            block, start, stop, relation.rows, relation.table, relation.shift, relation.count, self._counted_from,
            relation.room, self._given, self._states[thread],
        )  # fmt: skip
        return done

    def make_room(self) -> Growth | None:
        """Makes room for more rows, while no thread inserts; in the table too, unless that is better done by all."""
        self.take_back()
        self.is_full = False
        relation, threads = self.relation, len(self._states)
        size = relation.used + max(relation.used // 4, LEAST_ROOM, 2 * threads * self._turn)
        if size <= relation.full or relation.used < LEAST_GROWTH:
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
        self._given[0] = self.relation.used
        for state in self._states:
            state[:] = self.relation.used, self.relation.used, turn

    def take_back(self) -> None:
        """Rows that threads were given and have not used are used no longer."""
        relation = self.relation
        first, given = relation.used, int(self._given[0])
        if first == given:
            return
        # Threads also ask when there are no more.
        turn = self._turn
        turns = min(given - first, relation.room - first) // turn
        gaps = sorted((int(own), int(end)) for own, end, _ in self._states if own < end)
        relation.used = operators.close_gaps(
            relation.rows, relation.table, relation.shift, relation.count, first + turns * turn,
            np.array(gaps, np.int64).reshape(-1),
        )  # fmt: skip
