"""Operators of evaluation in several threads: inserting into one relation at once, without locks.

A thread that finds no slot with its fact writes the fact to a row of its own and then, in one step, the row to the slot
that was empty. If another thread was faster, the fact of that one is looked at, and the row is used for the next fact.
So a slot never refers to a row that is not written, and no fact is there twice.

Rows are given out in turns, each to the thread that asks for it; `close_gaps` moves the last rows to where threads have
not used up their turns.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    GROUP,
    INT,
    LOW,
    MATRIX,
    NONE,
    ONE,
    STATE,
    TABLE,
    WORDS,
    flattened,
    group_of_keys,
    hash_row,
    increment_atomically,
    inlined,
    int64,
    operator,
    prefetch,
    types,
    uint64,
)
from elastalog.backends.kernel.store.set_table import entry_for, fetch_row, has_tag, row_in
from elastalog.jit.intrinsics import put_if_zero, take_number

# Fields of the state vector of a thread that inserts.
OWN = 0  # the next row of its turn
OWN_END = 1  # where its turn ends
TURN = 2  # how many rows it is given at a time
TURN_STATE_SIZE = 3


@inlined
def _is_row(block, i, rows, row):  # type: ignore[no-untyped-def]
    is_same = True
    for c in range(rows.shape[1]):
        if rows[row, c] != block[i, c]:
            is_same = False
    return is_same


@operator(INT, MATRIX, INT, INT, MATRIX, TABLE, INT, WORDS, INT, INT, COLUMNS, STATE)
def insert_together(  # type: ignore[no-untyped-def]
    block, start, stop, rows, table, shift, count, counted_from, room, given, state
):
    """Inserts block[start:stop] as `set_table.insert` does, while other threads do the same. given[0] is the next row
    that nobody has been given; there are turns below `room`. Returns where it stopped, early when all are given."""
    width = rows.shape[1]
    high = uint64(shift)
    mask = uint64(table.shape[0] - 1)
    tags = group_of_keys()
    slots = group_of_keys()
    flat = flattened(rows)
    is_counting = count.shape[0] > 0
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        for g in range(size):
            value = hash_row(block, i + g, width)
            tags[g] = value & LOW
            slots[g] = value >> high
            prefetch(table, int64(value >> high))
        for g in range(size):
            slots[g] = fetch_row(table, slots[g], tags[g], flat, width)
        for g in range(size):
            slot = slots[g]
            while True:
                entry = uint64(table[slot])
                if entry == NONE:
                    if state[OWN] == state[OWN_END]:
                        turn = take_number(given, 0, state[TURN])
                        if turn + state[TURN] > room:
                            return i + g
                        state[OWN] = turn
                        state[OWN_END] = turn + state[TURN]
                    row = state[OWN]
                    for c in range(width):
                        rows[row, c] = block[i + g, c]
                    if is_counting:
                        count[row] = 1
                    entry = uint64(put_if_zero(table, int64(slot), entry_for(tags[g], row, mask)))
                    if entry == NONE:
                        state[OWN] = row + 1
                        break
                if has_tag(entry, tags[g], mask):
                    row = row_in(entry, mask)
                    if _is_row(block, i + g, rows, row):
                        if is_counting and row >= counted_from:
                            increment_atomically(count, row)
                        break
                slot = (slot + ONE) & mask
        i += size
    return stop


@operator(types.void, MATRIX, INT, INT, TABLE, INT)
def rebuild_together(rows, start, stop, table, shift):  # type: ignore[no-untyped-def]
    """Enters rows [start, stop) into a set table that has none of them, while other threads enter others."""
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    high = uint64(shift)
    slots = group_of_keys()
    tags = group_of_keys()
    row = start
    while row < stop:
        size = min(GROUP, stop - row)
        for g in range(size):
            value = hash_row(rows, row + g, width)
            slots[g] = value >> high
            tags[g] = value & LOW
            prefetch(table, int64(slots[g]))
        for g in range(size):
            slot = slots[g]
            entry = entry_for(tags[g], row + g, mask)
            while table[slot] != 0 or put_if_zero(table, int64(slot), entry) != 0:
                slot = (slot + ONE) & mask
        row += size


@operator(INT, MATRIX, TABLE, INT, WORDS, INT, COLUMNS)
def close_gaps(rows, table, shift, count, end, gaps):  # type: ignore[no-untyped-def]
    """Makes rows dense that end before `end`, except for gaps: the i-th is from gaps[2 * i] to gaps[2 * i + 1], and
    they ascend. The last rows are moved there; returns where the rows end now."""
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    last = gaps.shape[0] - 2
    for i in range(0, gaps.shape[0], 2):
        target = gaps[i]
        while True:
            # Gaps at the end are not filled, but cut off.
            while last >= i and gaps[last + 1] == end:
                end = min(end, gaps[last])
                last -= 2
            if last < i or target >= gaps[i + 1]:
                break
            end -= 1
            for c in range(width):
                rows[target, c] = rows[end, c]
            if count.shape[0] > 0:
                count[target] = count[end]
            slot = hash_row(rows, end, width) >> uint64(shift)
            while row_in(uint64(table[slot]), mask) != end:
                slot = (slot + ONE) & mask
            table[slot] = entry_for(uint64(table[slot]), target, mask)
            target += 1
            gaps[i] = target
    return end
