"""Turns: rows of a relation that threads are given while they insert into it together, and what is left of them.

Each thread that needs rows asks for a turn, and `close_gaps` moves the last rows to where threads have not used up
theirs. What is given is noted in one vector for each relation (`turns`): in the first place what all threads have in
common, then of every thread its own turn.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    INT,
    MATRIX,
    ONE,
    TABLE,
    WORDS,
    hash_row,
    inlined,
    operator,
    types,
    uint64,
)
from elastalog.backends.kernel.store.set_table import entry_for, row_in

APART = 16
"""Numbers from one that a thread writes to one that another does, so that they are not neighbours in memory."""

# In common.
GIVEN = 0  # the next row that nobody has been given
TURN = 1  # how many rows a thread is given at a time

# Of a thread.
OWN = 0  # the next row of its turn
OWN_END = 1  # where its turn ends

_EXPECTED = 16
"""So many are expected of each thread in a round. Facts of one turn follow each other: those that are found one after
the other are looked at one after the other in the next round, and lie near to each other. Of the last turn of each
thread half is left over, and so many rows must be moved."""

_LEAST, _MOST = 1 << 6, 1 << 14
"""Rows that a thread is given at a time."""


def size_of_turns(threads: int) -> int:
    """How many numbers it takes to note the turns of so many threads."""
    return APART * (1 + threads)


def turn_for(expected: int, threads: int) -> int:
    """How many rows a thread of so many is given at a time in a round that is expected to add so many."""
    return min(max(expected // (_EXPECTED * threads), _LEAST), _MOST)


@operator(types.void, COLUMNS, INT, INT)
def give_out(turns, used, turn):  # type: ignore[no-untyped-def]
    """From now on threads are given rows from `used` on, so many at a time."""
    turns[GIVEN] = used
    turns[TURN] = turn
    for own in range(APART, turns.shape[0], APART):
        turns[own + OWN] = turns[own + OWN_END] = used


@inlined
def _without_gaps_at_end(turns, end):  # type: ignore[no-untyped-def]
    """Where rows end if what threads have not used of their turns is cut off there."""
    own = APART
    while own < turns.shape[0]:
        if turns[own + OWN] < turns[own + OWN_END] and turns[own + OWN_END] == end:
            end = turns[own + OWN_END] = turns[own + OWN]
            own = APART
        else:
            own += APART
    return end


@operator(INT, MATRIX, TABLE, INT, WORDS, WORDS, INT, INT, COLUMNS)
def close_gaps(rows, table, shift, count, level, used, room, turns):  # type: ignore[no-untyped-def]
    """Makes rows dense, of which threads were given turns from `used` on: the last are moved to where turns are not
    used up. Returns where the rows end now."""
    if turns[GIVEN] == used:
        return used
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    # Threads also ask when there are no more.
    end = used + (min(turns[GIVEN], room) - used) // turns[TURN] * turns[TURN]
    end = _without_gaps_at_end(turns, end)
    for own in range(APART, turns.shape[0], APART):
        while turns[own + OWN] < turns[own + OWN_END]:
            end -= 1
            target = turns[own + OWN]
            for c in range(width):
                rows[target, c] = rows[end, c]
            if count.shape[0] > 0:
                count[target] = count[end]
            if level.shape[0] > 0:
                level[target] = level[end]
            slot = hash_row(rows, end, width) >> uint64(shift)
            while row_in(uint64(table[slot]), mask) != end:
                slot = (slot + ONE) & mask
            table[slot] = entry_for(uint64(table[slot]), target, mask)
            turns[own + OWN] = target + 1
            end = _without_gaps_at_end(turns, end)
    return end
