"""The annotations of facts and how an update writes them without touching the previous epoch.

Every row of an annotated relation has a `level` (ABSENT when the fact is not there) and a `count`. The first time an
update touches a row, the row gets an entry in the relation's *touched table* and its level becomes a reference to that
entry (REFERENCE + position). The entry holds the level of the previous epoch, the current one, and what the update
needs meanwhile. Commit copies current values back; rollback copies old levels back. Both cost what was touched.

The state of a row during an update is a set of marks, so a *view* (which rows an atom sees) is a set of states: a
64-bit mask indexed by the marks.
"""

from __future__ import annotations

from collections import namedtuple
from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import matrix_at, record_at, record_of_words, table_at, words_at
from elastalog.backends.sets import Mark
from elastalog.jit import operators as jit

ABSENT = 1 << 29
REFERENCE = 1 << 30


@record_of_words
class Entry(Structure):
    """A row of the touched table.

    `other`: the level before the fact settled, while it is in the delta; the best level found so far, while it is
    pending. `losses` and `deltas` are not of the entry: read downwards, they are two lists of entries (facts that lost
    their last derivation; the delta), which so have room for every entry."""

    row: int
    old: int
    new: int
    other: int
    count: int
    marks: int
    losses: int
    deltas: int


entry_of = record_at(Entry)
"""An entry of a touched table by its number, in compiled code."""

ROW, OLD, NEW, OTHER, COUNT, MARKS, LOSS_LIST, DELTA_LIST = range(8)
TOUCHED_WIDTH = 8
"""The columns of a touched table, for work on many entries at once."""

# In compiled code, what the descriptor of a relation leads to (see `memory.RelationDescriptor`).


@jit.view
def rows_of(relation):
    return matrix_at(relation.rows, relation.room, relation.width)


@jit.view
def levels_of(relation):
    return words_at(relation.level, relation.room)


@jit.view
def counts_of(relation):
    return words_at(relation.count, relation.room)


@jit.view
def touched_of(relation):
    return matrix_at(relation.touched, relation.touched_room, TOUCHED_WIDTH)


Facts = namedtuple("Facts", "rows table shift level count touched")
"""The arrays of a relation, as compiled code holds them: found once by `facts_of`, and handed on as one."""


@jit.view
def facts_of(relation):
    return Facts(
        rows_of(relation),
        table_at(relation.table, relation.table_size),
        relation.shift,
        levels_of(relation),
        counts_of(relation),
        touched_of(relation),
    )


# Marks. The first three mean the same to the strategies that maintain sets, the others something else.
WAS = int(Mark.WAS)  # present in the previous epoch
IS = int(Mark.PRESENT)  # present now
DELTA = int(Mark.DELTA)  # in the delta being propagated
LOST = 8  # its loss has been propagated
PENDING = 16  # a new level has been found and is not yet settled
FIXED = 32  # explicit in the new epoch, whatever rules say

UNTOUCHED = WAS | IS
"""The state of a present row that no update has touched."""


def view(required: int, excluded: int) -> int:
    """The mask of the states that have all `required` marks and none of the `excluded` ones (as a signed 64-bit
    integer)."""
    mask = 0
    for state in range(64):
        if state & required == required and not state & excluded:
            mask |= 1 << state
    return mask - (1 << 64) if mask >> 63 else mask


DERIVED = 1
"""The lowest bit of `level` where sets are maintained (see `sets.set_operators`): the fact is not explicit."""
