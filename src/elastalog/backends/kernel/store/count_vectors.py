"""The vectors of counts of the dense state: for every row and level, how many derivations of the fact fire at that
level.

They are sparse: the non-zero counts of a row are a list of nodes in ascending order of level, in parallel arrays.
Counts only ever change by steps, so an update logs its steps, and rolling back is taking them back.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.compile.signatures import (
    INT,
    MATRIX,
    STATE,
    WORDS,
    inlined,
    int64,
    np_int32,
    operator,
    types,
)
from elastalog.backends.kernel.store.memory import Matrix, Vector

# Columns of a node, and of a step in the log.
LEVEL, COUNT, NEXT = range(3)
NODE_WIDTH = STEP_WIDTH = 3

# Fields of the vectors' own state vector.
NODES = 0  # nodes ever used
FREE = 1  # the first free node, -1 if there is none
LOGGED = 2  # steps in the log
FAULTS = 3  # steps below 0
FIRST_AT, FIRST_SIZE, NODES_AT, NODES_ROOM, LOG_AT, LOG_ROOM = range(4, 10)  # where the arrays are, for the machine
STATE_SIZE = 10

NOTHING = -1
_SPARE = 64
"""Rows, nodes and steps that there is room for beyond those that are known."""


@inlined
def change(row, level, step, first, nodes, log, state):  # type: ignore[no-untyped-def]
    """Adds a step to a count and logs it; returns the new count. A node whose count reaches 0 is freed."""
    log[state[LOGGED], 0] = row
    log[state[LOGGED], 1] = level
    log[state[LOGGED], 2] = step
    state[LOGGED] += 1
    previous = int64(NOTHING)
    node = int64(first[row])
    while node != NOTHING and nodes[node, LEVEL] < level:
        previous = node
        node = int64(nodes[node, NEXT])
    if node != NOTHING and nodes[node, LEVEL] == level:
        result = nodes[node, COUNT] + step
        nodes[node, COUNT] = result
        if result == 0:
            if previous == NOTHING:
                first[row] = nodes[node, NEXT]
            else:
                nodes[previous, NEXT] = nodes[node, NEXT]
            nodes[node, NEXT] = state[FREE]
            state[FREE] = node
        return int64(result)
    if step < 0:
        state[FAULTS] += 1
        return int64(step)
    fresh = state[FREE]
    if fresh == NOTHING:
        fresh = state[NODES]
        state[NODES] += 1
    else:
        state[FREE] = nodes[fresh, NEXT]
    nodes[fresh, LEVEL] = level
    nodes[fresh, COUNT] = step
    nodes[fresh, NEXT] = node
    if previous == NOTHING:
        first[row] = fresh
    else:
        nodes[previous, NEXT] = fresh
    return int64(step)


@operator(types.void, WORDS, INT, INT, WORDS, MATRIX, MATRIX, STATE)
def change_rows(rows, level, step, first, nodes, log, state):  # type: ignore[no-untyped-def]
    """Adds a step to the counts of some rows at one level."""
    for i in range(rows.shape[0]):
        change(int64(rows[i]), np_int32(level), np_int32(step), first, nodes, log, state)


@operator(types.void, WORDS, MATRIX, MATRIX, STATE)
def take_back(first, nodes, log, state):  # type: ignore[no-untyped-def]
    """Undoes the logged steps, the last one first."""
    logged = state[LOGGED]
    # The steps backwards are logged behind those forwards; the caller makes room and forgets both.
    for i in range(logged - 1, -1, -1):
        change(int64(log[i, 0]), log[i, 1], np_int32(-log[i, 2]), first, nodes, log, state)


@operator(types.void, WORDS, WORDS, MATRIX, WORDS, WORDS)
def read_first(rows, first, nodes, levels, counts):  # type: ignore[no-untyped-def]
    """The first level of rows with its count; -1 and 0 where there is none."""
    for i in range(rows.shape[0]):
        node = first[rows[i]]
        levels[i] = nodes[node, LEVEL] if node != NOTHING else np_int32(NOTHING)
        counts[i] = nodes[node, COUNT] if node != NOTHING else np_int32(0)


class Vectors:
    """The vectors of one relation."""

    __slots__ = ("first", "log", "nodes", "state")

    def __init__(self) -> None:
        self.first: Vector = np.full(_SPARE, NOTHING, np.int32)
        self.nodes: Matrix = np.empty((_SPARE, NODE_WIDTH), np.int32)
        self.log: Matrix = np.empty((_SPARE, STEP_WIDTH), np.int32)
        self.state: Vector = np.zeros(STATE_SIZE, np.int64)
        self.state[FREE] = NOTHING

    @staticmethod
    def of(rows: Vector, levels: Vector, counts: Vector, size: int) -> Vectors:
        """The vectors of given counts, each (row, level) once."""
        vectors = Vectors()
        order = np.lexsort((levels, rows))
        rows, levels, counts = rows[order], levels[order], counts[order]
        number = len(rows)
        vectors.nodes = np.empty((number + _SPARE, NODE_WIDTH), np.int32)
        vectors.nodes[:number, LEVEL] = levels
        vectors.nodes[:number, COUNT] = counts
        is_last = np.ones(number, np.bool_)
        is_last[:-1] = rows[1:] != rows[:-1]
        vectors.nodes[:number, NEXT] = np.where(is_last, NOTHING, np.arange(1, number + 1))
        is_first = np.ones(number, np.bool_)
        is_first[1:] = is_last[:-1]
        vectors.first = np.full(size + _SPARE, NOTHING, np.int32)
        vectors.first[rows[is_first]] = np.flatnonzero(is_first)
        vectors.state[NODES] = number
        return vectors

    def reserve(self, rows: int, steps: int) -> None:
        """Makes room for rows and for steps of counts."""
        if rows > len(self.first):
            wider = np.full(max(rows, 2 * len(self.first)), NOTHING, np.int32)
            wider[: len(self.first)] = self.first
            self.first = wider
        self.nodes = _room(self.nodes, int(self.state[NODES]) + steps)
        self.log = _room(self.log, int(self.state[LOGGED]) + steps)

    def change(self, rows: Vector, level: int, step: int) -> None:
        """Adds a step to the counts of rows at a level."""
        if len(rows):
            self.reserve(int(rows.max()) + 1, len(rows))
            change_rows(np.ascontiguousarray(rows, np.int32), level, step, self.first, self.nodes, self.log, self.state)

    def lowest(self, rows: Vector) -> tuple[Vector, Vector]:
        """The first level of rows, with its count."""
        levels, counts = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        if len(rows):
            self.reserve(int(rows.max()) + 1, 0)
        read_first(np.ascontiguousarray(rows, np.int32), self.first, self.nodes, levels, counts)
        return levels, counts

    def of_row(self, row: int) -> dict[int, int]:
        """The counts of one row, by level."""
        counts = {}
        node = int(self.first[row]) if row < len(self.first) else NOTHING
        while node != NOTHING:
            level, count, node = (int(value) for value in self.nodes[node])
            counts[level] = count
        return counts

    def address(self) -> int:
        """Where the state is, in which the places of the arrays are written: good until something is reserved."""
        first, nodes, log = self.first, self.nodes, self.log
        self.state[FIRST_AT:] = address_of(first), len(first), address_of(nodes), len(nodes), address_of(log), len(log)
        return address_of(self.state)

    def commit(self) -> None:
        """The steps so far stand."""
        self.state[LOGGED] = 0

    def rollback(self) -> None:
        """The steps so far are taken back."""
        self.reserve(0, int(self.state[LOGGED]))
        take_back(self.first, self.nodes, self.log, self.state)
        self.state[LOGGED] = 0
        self.state[FAULTS] = 0

    @property
    def nbytes(self) -> int:
        return int(self.first.nbytes + self.nodes.nbytes + self.log.nbytes)


def _room(array: Matrix, used: int) -> Matrix:
    if used <= len(array):
        return array
    wider = np.empty((max(used, 2 * len(array)), array.shape[1]), array.dtype)
    wider[: len(array)] = array
    return wider
