"""An iteration that several machines share, each in a thread: start rows are shared out, what is derived is inserted
together, and indexes are extended, each by one of them.

No thread waits for another here. Whoever calls them sees to it that all indexes are extended before the first share is
taken, and that all have left off before a relation gets more room.
"""

from __future__ import annotations

from ctypes import Structure

from elastalog.backends.kernel.compile.addresses import numbers_at, piece
from elastalog.backends.kernel.compile.records import record, record_at
from elastalog.backends.kernel.compile.signatures import int64
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.arrays import rows_of, table_of
from elastalog.backends.kernel.machine.layout import index_at, relation_at
from elastalog.backends.kernel.machine.steps import extend_index
from elastalog.backends.kernel.store import inserting
from elastalog.backends.kernel.store.inserting import TURN_STATE_SIZE
from elastalog.jit.intrinsics import take_number

_insert_together = piece(inserting.insert_together)

APART = 16
"""Numbers from one that a thread writes to one that another does, so that they are not neighbours in memory."""


@record
class Sharing(Structure):
    """What machines share: `shares`, and `indexes` to be extended, by their places. `next`: the numbers of the share
    and of the index that nobody has taken. `given`: of every relation, the next row that nobody has been given;
    `turns`: of every thread and relation, the state of insertion (see `store.inserting`). Each is `APART` from the
    next."""

    relations: int
    shares: int
    shares_number: int
    indexes: int
    indexes_number: int
    next: int
    given: int
    turns: int


@record
class Share(Structure):
    """A variant, and the rows that it is to start at."""

    variant: int
    start: int
    stop: int


_SHARE_BYTES = 24
sharing_at = record_at(Sharing)
share_at = record_at(Share)


@piece
def take_share(address):  # type: ignore[no-untyped-def]
    """Where the next share is, 0 if all have been taken."""
    sharing = sharing_at(address, 0)
    number = take_number(numbers_at(sharing.next, 1), 0, 1)
    return sharing.shares + number * _SHARE_BYTES if number < sharing.shares_number else int64(0)


@piece
def insert_shared(address, thread, number, head, count, block, start, stop):  # type: ignore[no-untyped-def]
    """Inserts rows of a block into a relation, as others do; returns where it stopped, early if no row is left."""
    sharing = sharing_at(address, 0)
    given = numbers_at(sharing.given + 8 * APART * number, 1)
    turn = numbers_at(sharing.turns + 8 * APART * (thread * sharing.relations + number), TURN_STATE_SIZE)
    return _insert_together(
        block, start, stop, rows_of(head), table_of(head), head.shift, count, head.delta_end, head.room, given, turn
    )


@piece
def extend_shared(machine, address):  # type: ignore[no-untyped-def]
    """Extends indexes that no other thread extends; says so if one is full."""
    sharing = sharing_at(address, 0)
    counter = numbers_at(sharing.next + 8 * APART, 1)
    places = numbers_at(sharing.indexes, sharing.indexes_number)
    while True:
        number = take_number(counter, 0, 1)
        if number >= sharing.indexes_number:
            return layout.DONE
        place = places[number]
        index = index_at(machine.indexes, place)
        relation = relation_at(machine.relations, index.relation)
        if index.added < relation.used and not extend_index(index, relation):
            machine.full_index = place
            return layout.NO_INDEX
