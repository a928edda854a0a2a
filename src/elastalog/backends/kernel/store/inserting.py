"""Operators that enter facts into a relation and its set table, in one thread or in several at once, without locks.

A thread that finds no slot with its fact writes the fact to a row of its own and then, in one atomic step, the row to
the slot that was empty. If another thread was faster, its fact is looked at, and the row is used for the next fact. So
a slot never refers to a row that is not written, and no fact is there twice.

Rows are allocated in *turns*, each to the thread that asks for it; a thread that is alone has all rows in one turn. One
vector for each relation (`turns`) notes what is allocated: first what all threads have in common, then of every thread
its own turn. `close_rows` moves the last rows to where threads have not used up theirs.
"""

from __future__ import annotations

from collections import namedtuple

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    GROUP,
    INT,
    MATRIX,
    NONE,
    ONE,
    TABLE,
    WORDS,
    flattened,
    group_of_keys,
    hash_row,
    inlined,
    int64,
    np_int32,
    numbers_at,
    operator,
    piece,
    prefetch,
    types,
    uint32,
    uint64,
    words_at,
)
from elastalog.backends.kernel.store.annotations import facts_of
from elastalog.backends.kernel.store.memory import relation_descriptor_at
from elastalog.backends.kernel.store.set_table import entry_for, fetch_row, fetch_slots, has_row, has_tag, row_in
from elastalog.jit.atomics import add_unordered, compare_and_swap

_ROWS_AHEAD = 16
"""Memory is prefetched this many rows ahead of the one that is written: an atomic step waits until all earlier writes
have reached their place, and would wait for fresh memory at every eighth fact or so."""

_MOVED_AHEAD = 12
"""When a row is moved, the slot of the row that lies this far before it is prefetched."""


@inlined
def _put(table, slot, entry, is_together):
    """Puts an entry into a slot that was empty; returns what it holds instead, if another thread was faster."""
    if is_together:
        return uint64(compare_and_swap(table, int64(slot), uint32(0), entry))
    table[slot] = entry
    return NONE


Noted = namedtuple("Noted", "count counted_from level at")
"""What is noted of facts that are inserted: in `count`, unless it is empty, how often each row from `counted_from`
on was met; `level`, unless it is empty, is `at` for each row that is added."""

_Turn = namedtuple("_Turn", "own end given turn")
"""The rows [own, end) are a thread's, and then, if it inserts together with others, further ones that it is
`given`, `turn` rows at a time."""


@inlined
def _insert(block, start, stop, facts, noted, turn, is_together):
    """Inserts block[start:stop] (its first columns), each fact once. Returns where it stopped, early when there is no
    row, and what is left of its turn."""
    rows = facts.rows
    table = facts.table
    count = noted.count
    level = noted.level
    own = turn.own
    end = turn.end
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
        fetch_slots(block, i, size, facts, slots, tags)
        for g in range(size):
            slots[g] = fetch_row(facts, slots[g], tags[g])
        for g in range(size):
            slot = slots[g]
            while True:
                entry = uint64(table[slot])
                if entry == NONE:
                    if own == end:
                        if not is_together:
                            return i + g, own, end
                        first = add_unordered(turn.given, GIVEN, turn.turn)
                        if first + turn.turn > rows.shape[0]:
                            return i + g, own, end
                        own = first
                        end = first + turn.turn
                    prefetch(flat, (own + _ROWS_AHEAD) * width)
                    for c in range(width):
                        rows[own, c] = block[i + g, c]
                    if is_counting:
                        prefetch(count, own + _ROWS_AHEAD)
                        count[own] = 1
                    if has_levels:
                        prefetch(level, own + _ROWS_AHEAD)
                        level[own] = np_int32(noted.at)
                    entry = _put(table, slot, entry_for(tags[g], own, mask), is_together)
                    if entry == NONE:
                        own += 1
                        break
                if has_tag(entry, tags[g], mask):
                    row = row_in(entry, mask)
                    if has_row(rows, row, block, i + g):
                        if is_counting and row >= noted.counted_from:
                            if is_together:
                                add_unordered(count, row, np_int32(1))
                            else:
                                count[row] += 1
                        break
                slot = (slot + ONE) & mask
        i += size
    return stop, own, end


@piece
def insert_alone(head, facts, noted, block, start, stop):
    """Inserts block[start:stop] in a thread that is alone. Returns where it stopped, early when there is no room."""
    turn = _Turn(head.used, head.room, numbers_at(head.rows, 0), 0)
    done, head.used, _ = _insert(block, start, stop, facts, noted, turn, False)
    return done


@piece
def insert_together(facts, noted, block, start, stop, turns, thread):
    """Inserts block[start:stop] while other threads insert other facts. Returns where it stopped, early when all turns
    are given for which there is room."""
    own = APART * (1 + thread)
    turn = _Turn(turns[own + OWN], turns[own + OWN_END], turns, turns[TURN])
    done, turns[own + OWN], turns[own + OWN_END] = _insert(block, start, stop, facts, noted, turn, True)
    return done


@operator(INT, INT, MATRIX, INT, INT, WORDS, INT)
def insert(address, block, start, stop, count, counted_from):
    """Inserts block[start:stop] into a relation, whose levels are left as they are (see `Noted`). Returns where it
    stopped, early when there is no room."""
    home = relation_descriptor_at(address, 0)
    noted = Noted(count, counted_from, words_at(home.level, 0), 0)
    return insert_alone(home, facts_of(home), noted, block, start, stop)


_Table = namedtuple("_Table", "rows table shift")
"""A set table that is being filled, and the rows that it leads to; begins as `Facts` does."""


@inlined
def _enter_rows(facts, start, stop, is_together):
    table = facts.table
    mask = uint64(table.shape[0] - 1)
    slots = group_of_keys()
    tags = group_of_keys()
    row = start
    while row < stop:
        size = min(GROUP, stop - row)
        fetch_slots(facts.rows, row, size, facts, slots, tags)
        for g in range(size):
            slot = slots[g]
            entry = entry_for(tags[g], row + g, mask)
            while table[slot] != 0 or _put(table, slot, entry, is_together) != NONE:
                slot = (slot + ONE) & mask
        row += size


@operator(types.void, MATRIX, INT, INT, TABLE, INT, types.boolean)
def rebuild(rows, start, stop, table, shift, is_together):
    """Enters rows [start, stop) into a set table that has none of them; `is_together`: while other threads enter
    others."""
    if is_together:
        _enter_rows(_Table(rows, table, shift), start, stop, True)
    else:
        _enter_rows(_Table(rows, table, shift), start, stop, False)


APART = 16
"""Numbers from one that a thread writes to one that another does, so that they are not neighbours in memory."""

# In common.
GIVEN = 0  # the next row that no thread has been given
TURN = 1  # how many rows a thread is given at a time

# Of a thread.
OWN = 0  # the next row of its turn
OWN_END = 1  # where its turn ends

_EXPECTED = 64
"""Turns that each thread is expected to take in a round. Facts of one turn follow each other: those that are found one
after the other are looked at one after the other in the next round, and lie near to each other. Of each thread's last
turn about half is left over, and as many rows must be moved."""

_LEAST, _MOST = 1 << 6, 1 << 14
"""Rows that a thread is given at a time."""


def size_of_turns(threads: int) -> int:
    """How many numbers it takes to note the turns of `threads` threads."""
    return APART * (1 + threads)


def turn_for(expected: int, threads: int) -> int:
    """How many rows each of `threads` threads is given at a time in a round that is expected to add `expected`."""
    return min(max(expected // (_EXPECTED * threads), _LEAST), _MOST)


@operator(types.void, COLUMNS, INT, INT)
def give_out(turns, used, turn):
    """From now on threads are given rows from `used` on, `turn` at a time."""
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


@piece
def close_rows(head, turns):
    """Makes rows dense, of which threads were given turns from those in use on: the last are moved to where turns are
    not used up."""
    if turns[GIVEN] == head.used:
        return
    facts = facts_of(head)
    rows = facts.rows
    table = facts.table
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    # Threads also ask when there are no more.
    end = head.used + (min(turns[GIVEN], head.room) - head.used) // turns[TURN] * turns[TURN]
    end = without_gaps_at_end(turns, end)
    for own in range(APART, turns.shape[0], APART):
        while turns[own + OWN] < turns[own + OWN_END]:
            end -= 1
            target = turns[own + OWN]
            for c in range(width):
                rows[target, c] = rows[end, c]
            if head.is_annotated:
                facts.count[target] = facts.count[end]
                facts.level[target] = facts.level[end]
            prefetch(table, int64(hash_row(rows, max(end - _MOVED_AHEAD, 0), width) >> uint64(facts.shift)))
            slot = hash_row(rows, end, width) >> uint64(facts.shift)
            while row_in(uint64(table[slot]), mask) != end:
                slot = (slot + ONE) & mask
            table[slot] = entry_for(uint64(table[slot]), target, mask)
            turns[own + OWN] = target + 1
            end = without_gaps_at_end(turns, end)
    head.used = turns[GIVEN] = end


@operator(types.void, INT, COLUMNS)
def close_gaps(address, turns):
    """`close_rows` of the relation whose descriptor is at an address."""
    close_rows(relation_descriptor_at(address, 0), turns)
