"""The vectors of counts of the dense state: for every row and level, how many derivations of the fact fire at that
level.

They are sparse: the non-zero counts of a row are a list of nodes in ascending order of level, in parallel arrays.
Counts only ever change by steps, so an update logs its steps, and rolling back is taking them back.
"""

from __future__ import annotations

from ctypes import Structure, addressof

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    INT,
    WORDS,
    address_of,
    dtype_of,
    inlined,
    int64,
    np_int32,
    operator,
    record,
    record_at,
    record_of_words,
    types,
    words_at,
)
from elastalog.backends.kernel.store.memory import Vector, longer, with_room
from elastalog.settings import SETTINGS


@record
class VectorsPlace(Structure):
    """Where the arrays of the vectors are, and how far they are used. `free`: the first node that is free again.
    `logged`: steps in the log. `faults`: steps below 0."""

    first: int
    rows_room: int
    nodes: int
    nodes_room: int
    nodes_used: int
    free: int
    log: int
    log_room: int
    logged: int
    faults: int


@record_of_words
class CountNode(Structure):
    """The count of a row at a level, and the node of its next level."""

    level: int
    count: int
    next: int


@record_of_words
class Step(Structure):
    """A change of a count."""

    row: int
    level: int
    step: int


_COUNT_NODE, _STEP = dtype_of(CountNode), dtype_of(Step)
vectors_at = record_at(VectorsPlace)
_node_at = record_at(CountNode)
_step_at = record_at(Step)

NO_NODE = -1
MOST_STEPS = 2
"""A derivation moves from one count to another."""


@inlined
def change(vectors, row, level, step):
    """Adds a step to a count and logs it; returns the new count. A node whose count reaches 0 is freed."""
    logged = _step_at(vectors.log, vectors.logged)
    logged.row = row
    logged.level = level
    logged.step = step
    vectors.logged += 1
    first = words_at(vectors.first, vectors.rows_room)
    previous = int64(NO_NODE)
    number = int64(first[row])
    while number != NO_NODE and _node_at(vectors.nodes, number).level < level:
        previous = number
        number = int64(_node_at(vectors.nodes, number).next)
    if number != NO_NODE and _node_at(vectors.nodes, number).level == level:
        node = _node_at(vectors.nodes, number)
        node.count += step
        if node.count == 0:
            if previous == NO_NODE:
                first[row] = node.next
            else:
                _node_at(vectors.nodes, previous).next = node.next
            node.next = vectors.free
            vectors.free = number
        return int64(node.count)
    if step < 0:
        vectors.faults += 1
        return int64(step)
    fresh = vectors.free
    if fresh == NO_NODE:
        fresh = vectors.nodes_used
        vectors.nodes_used += 1
    else:
        vectors.free = _node_at(vectors.nodes, fresh).next
    made = _node_at(vectors.nodes, fresh)
    made.level = level
    made.count = step
    made.next = number
    if previous == NO_NODE:
        first[row] = fresh
    else:
        _node_at(vectors.nodes, previous).next = fresh
    return int64(step)


@inlined
def first_level(vectors, row):
    """The first level of a row that has a count, NO_NODE if there is none."""
    number = int64(words_at(vectors.first, vectors.rows_room)[row])
    return int64(NO_NODE) if number == NO_NODE else int64(_node_at(vectors.nodes, number).level)


@operator(types.void, INT, WORDS, INT, WORDS)
def change_rows(address, rows, level, steps):
    """Adds steps to the counts of some rows at one level."""
    vectors = vectors_at(address, 0)
    for i in range(rows.shape[0]):
        change(vectors, int64(rows[i]), np_int32(level), steps[i])


@operator(types.void, INT)
def take_back(address):
    """Undoes the logged steps, the last one first."""
    vectors = vectors_at(address, 0)
    # The steps backwards are logged behind those forwards; the caller makes room and forgets both.
    for i in range(vectors.logged - 1, -1, -1):
        logged = _step_at(vectors.log, i)
        change(vectors, int64(logged.row), logged.level, np_int32(-logged.step))


@operator(types.void, INT, WORDS, WORDS, WORDS)
def read_first(address, rows, levels, counts):
    """The first level of rows with its count; -1 and 0 where there is none."""
    vectors = vectors_at(address, 0)
    first = words_at(vectors.first, vectors.rows_room)
    for i in range(rows.shape[0]):
        number = int64(first[rows[i]])
        if number == NO_NODE:
            levels[i] = NO_NODE
            counts[i] = 0
        else:
            node = _node_at(vectors.nodes, number)
            levels[i] = node.level
            counts[i] = node.count


class Vectors:
    """The vectors of one relation."""

    __slots__ = ("first", "log", "nodes", "place")

    def __init__(self) -> None:
        self.place = VectorsPlace(free=NO_NODE)
        self._take(
            np.full(SETTINGS.spare_counts, NO_NODE, np.int32),
            np.empty(SETTINGS.spare_counts, _COUNT_NODE),
            np.empty(SETTINGS.spare_counts, _STEP),
        )

    def _take(self, first: Vector, nodes: Vector, log: Vector) -> None:
        """From now on these are the arrays."""
        place = self.place
        addresses = address_of(first), address_of(nodes), address_of(log)
        sizes = len(first), len(nodes), len(log)
        # Without a call in between, at which Ctrl-C might come.
        self.first, self.nodes, self.log = first, nodes, log
        place.first, place.nodes, place.log = addresses
        place.rows_room, place.nodes_room, place.log_room = sizes

    def reserve(self, rows: int, steps: int) -> None:
        """Makes room for rows and for steps of counts."""
        place, first = self.place, self.first
        if (
            rows <= place.rows_room
            and place.nodes_used + steps <= place.nodes_room
            and place.logged + steps <= place.log_room
        ):
            return
        if rows > len(first):
            first = longer(first, max(rows, 2 * len(first)), NO_NODE)
        self._take(first, with_room(self.nodes, place.nodes_used + steps), with_room(self.log, place.logged + steps))

    def change(self, rows: Vector, level: int, steps: Vector | int) -> None:
        """Adds steps to the counts of rows at a level."""
        if len(rows):
            self.reserve(int(rows.max()) + 1, len(rows))
            every = np.empty(len(rows), np.int32)
            every[:] = steps
            change_rows(self.address, np.ascontiguousarray(rows, np.int32), level, every)

    def lowest(self, rows: Vector) -> tuple[Vector, Vector]:
        """The first level of rows, with its count."""
        levels, counts = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
        if len(rows):
            self.reserve(int(rows.max()) + 1, 0)
        read_first(self.address, np.ascontiguousarray(rows, np.int32), levels, counts)
        return levels, counts

    @property
    def address(self) -> int:
        """The address of the record that says where the arrays are."""
        return addressof(self.place)

    def commit(self) -> None:
        """The steps so far stand."""
        self.place.logged = 0

    def rollback(self) -> None:
        """The steps so far are taken back."""
        self.reserve(0, self.place.logged)
        take_back(self.address)
        self.place.logged = self.place.faults = 0
