"""Operators that enter facts into a relation and its set table, in one thread or in several at once, without locks.

A thread that finds no slot with its fact writes the fact to a row of its own and then, in one atomic step, the row to
the slot that was empty. If another thread was faster, its fact is looked at, and the row is used for the next fact. So
a slot never refers to a row that is not written, and no fact is there twice.

Rows are allocated in *turns*, each to the thread that asks for it; a thread that is alone has all rows in one turn. One
vector for each relation (`turns`) notes what is allocated: first what all threads have in common, then of every thread
its own turn. `close_gaps` moves the last rows to where threads have not used up theirs.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    GROUP,
    INT,
    MATRIX,
    NONE,
    ONE,
    STATE,
    TABLE,
    WORDS,
    flattened,
    group_of_keys,
    hash_row,
    inlined,
    int64,
    np_int32,
    operator,
    prefetch,
    types,
    uint32,
    uint64,
)
from elastalog.backends.kernel.store.memory import LARGE_TABLE, MOST_TAKEN, MOST_TAKEN_AT_ONCE
from elastalog.backends.kernel.store.set_table import (
    NEXT,
    USED,
    entry_for,
    fetch_row,
    fetch_slots,
    has_row,
    has_tag,
    row_in,
)
from elastalog.jit.atomics import add_unordered, compare_and_swap

_ROWS_AHEAD = 16
"""Memory of so many rows behind the one that is written is asked for: an atomic step waits until all that was written
before has come to its place, and would wait for fresh memory at every eighth fact or so."""


@inlined
def _put(table, slot, entry, is_together):
    """Puts an entry into a slot that was empty; returns what it holds instead, if another thread was faster."""
    if is_together:
        return uint64(compare_and_swap(table, int64(slot), uint32(0), entry))
    table[slot] = entry
    return NONE


@inlined
def _insert(
    block, start, stop, rows, table, shift, count, counted_from, level, at, own, end, room, given, turn, is_together
):
    """Inserts block[start:stop] (its first columns), each fact once, into rows [own, end), then, together with others,
    into further turns below `room`, of which `given` says the next. `count`, unless empty, counts how often each row
    from `counted_from` on was met; `level`, unless empty, is `at` for each row that is added. Returns where it stopped,
    early when there is no row, and what is left of its own."""
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    tags = group_of_keys()
    slots = group_of_keys()
    flat = flattened(rows)
    is_counting = count.shape[0] > 0
    has_levels = level.shape[0] > 0
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        fetch_slots(block, i, size, table, shift, width, slots, tags)
        for g in range(size):
            slots[g] = fetch_row(table, slots[g], tags[g], flat, width)
        for g in range(size):
            slot = slots[g]
            while True:
                entry = uint64(table[slot])
                if entry == NONE:
                    if own == end:
                        first = add_unordered(given, GIVEN, turn) if is_together else room
                        if first + turn > room:
                            return i + g, own, end
                        own = first
                        end = first + turn
                    prefetch(flat, (own + _ROWS_AHEAD) * width)
                    for c in range(width):
                        rows[own, c] = block[i + g, c]
                    if is_counting:
                        prefetch(count, own + _ROWS_AHEAD)
                        count[own] = 1
                    if has_levels:
                        prefetch(level, own + _ROWS_AHEAD)
                        level[own] = np_int32(at)
                    entry = _put(table, slot, entry_for(tags[g], own, mask), is_together)
                    if entry == NONE:
                        own += 1
                        break
                if has_tag(entry, tags[g], mask):
                    row = row_in(entry, mask)
                    if has_row(rows, row, block, i + g):
                        if is_counting and row >= counted_from:
                            if is_together:
                                add_unordered(count, row, np_int32(1))
                            else:
                                count[row] += 1
                        break
                slot = (slot + ONE) & mask
        i += size
    return stop, own, end


@operator(types.void, MATRIX, INT, INT, MATRIX, TABLE, INT, WORDS, INT, WORDS, INT, STATE)
def insert(block, start, stop, rows, table, shift, count, counted_from, level, at, state):
    """Inserts block[start:stop] in a thread that is alone. Returns early, with NEXT, when rows or table are full."""
    full = MOST_TAKEN_AT_ONCE if table.shape[0] >= LARGE_TABLE else MOST_TAKEN
    room = min(rows.shape[0], table.shape[0] * full // 16)
    state[NEXT], state[USED], _ = _insert(
        block, start, stop, rows, table, shift, count, counted_from, level, at, state[USED], room, room, state, 1, False
    )


@operator(INT, MATRIX, INT, INT, MATRIX, TABLE, INT, WORDS, INT, WORDS, INT, INT, COLUMNS, INT)
def insert_together(block, start, stop, rows, table, shift, count, counted_from, level, at, room, turns, thread):
    """Inserts block[start:stop] while other threads insert other facts. There are turns below `room`. Returns where it
    stopped, early when all are given."""
    own = APART * (1 + thread)
    done, turns[own + OWN], turns[own + OWN_END] = _insert(
        block, start, stop, rows, table, shift, count, counted_from, level, at, turns[own + OWN], turns[own + OWN_END],
        room, turns, turns[TURN], True,
    )  # fmt: skip
    return done


@inlined
def _enter_rows(rows, start, stop, table, shift, is_together):
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    slots = group_of_keys()
    tags = group_of_keys()
    row = start
    while row < stop:
        size = min(GROUP, stop - row)
        fetch_slots(rows, row, size, table, shift, width, slots, tags)
        for g in range(size):
            slot = slots[g]
            entry = entry_for(tags[g], row + g, mask)
            while table[slot] != 0 or _put(table, slot, entry, is_together) != NONE:
                slot = (slot + ONE) & mask
        row += size


@operator(types.void, MATRIX, INT, TABLE, INT)
def rebuild(rows, used, table, shift):
    """Fills an empty set table with the first rows."""
    _enter_rows(rows, 0, used, table, shift, False)


@operator(types.void, MATRIX, INT, INT, TABLE, INT)
def rebuild_together(rows, start, stop, table, shift):
    """Enters rows [start, stop) into a set table that has none of them, while other threads enter others."""
    _enter_rows(rows, start, stop, table, shift, True)


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
def give_out(turns, used, turn):
    """From now on threads are given rows from `used` on, so many at a time."""
    turns[GIVEN] = used
    turns[TURN] = turn
    for own in range(APART, turns.shape[0], APART):
        turns[own + OWN] = turns[own + OWN_END] = used


@inlined
def without_gaps_at_end(turns, end):
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
def close_gaps(rows, table, shift, count, level, used, room, turns):
    """Makes rows dense, of which threads were given turns from `used` on: the last are moved to where turns are not
    used up. Returns where the rows end now."""
    if turns[GIVEN] == used:
        return used
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    # Threads also ask when there are no more.
    end = used + (min(turns[GIVEN], room) - used) // turns[TURN] * turns[TURN]
    end = without_gaps_at_end(turns, end)
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
            end = without_gaps_at_end(turns, end)
    return end
