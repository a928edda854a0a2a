"""The join of batch evaluation: rows of bindings with the facts of a relation that agree on a key."""

from __future__ import annotations

from collections import namedtuple
from ctypes import Structure

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    LOW,
    NONE,
    ONE,
    flattened,
    group_of_keys,
    group_of_numbers,
    hash_columns,
    inlined,
    int64,
    matrix_at,
    np_int32,
    piece,
    prefetch,
    record,
    record_at,
    uint64,
)
from elastalog.backends.kernel.store.postings import EVERY, LENGTH, PLACE, find_slots
from elastalog.backends.kernel.store.set_table import fetch_row, has_tag, is_present, row_in
from elastalog.jit.operators import view

BLOCK = 1 << 14
"""Rows of a block of bindings: large enough to hide the cost of a call, small enough for the cache."""

MEMBER = 3
"""How rows are found, besides DIRECT, HASHED and EVERY of `postings`: by the set table, every column being bound."""


@record
class Frame(Structure):
    """The block a step made: where it lies, and where if nothing else is said; how much of it has been passed on."""

    usual: int
    block: int
    rows: int
    width: int
    begun: int
    end: int
    within: int


frame_at = record_at(Frame)


@view
def block_of(frame):
    """The block that a step made."""
    return matrix_at(frame.block, frame.rows, frame.width)


Copied = namedtuple("Copied", "columns places out")
"""Columns of facts, or of bindings, and the places in the rows of a block that they are copied to."""

Goal = namedtuple("Goal", "key index facts limit is_checked is_negated is_flat kept taken out")
"""What bindings are joined with: by columns `key`, through an index or, if its kind is MEMBER, the set table, the
facts in rows below `limit`. `is_checked`: some of these are absent; `is_negated`: bindings stay whose fact is not
found; `is_flat`: facts count as level 0. `kept` of the bindings and `taken` of the facts are copied to `out`."""


@inlined
def copy_columns(rows, row, number, copied, i):
    """Copies columns of a row, of a relation or of bindings, to a row of bindings; column -1 is a number."""
    for c in range(copied.columns.shape[0]):
        column = copied.columns[c]
        copied.out[i, copied.places[c]] = rows[row, column] if column >= 0 else number


@inlined
def leave_off(frame, at, within):
    """A join goes on at a row of the left, and at one of those that it leads to."""
    frame.begun = at
    frame.within = within


@piece
def join(frame, goal):
    """For each row of a block that is left and each row of the relation below the limit with the same key, one row of
    the result: kept words of the left, taken words of the right (column -1 is the row number). Returns how many; early
    when the block is full."""
    left = block_of(frame)
    stop = frame.end
    limit = goal.limit
    out = goal.out
    facts = goal.facts
    index = goal.index
    pool = index.pool
    is_every = index.kind == EVERY
    is_checked = goal.is_checked
    keep = goal.kept.columns
    take = goal.taken.columns
    filled = int64(0)
    room = out.shape[0]
    within = frame.within
    kept = keep.shape[0]
    taken = take.shape[0]
    found = group_of_numbers()
    flat_rows = flattened(facts.rows)
    width = facts.rows.shape[1]
    flat_out = flattened(out)
    out_width = out.shape[1]
    # The common shapes, written out below: one taken word and up to two kept ones, or two and one.
    takes_one = taken == 1 and kept <= 2 and take[0] >= 0
    takes_two = taken == 2 and kept == 1 and take[0] >= 0 and take[1] >= 0
    i = frame.begun
    while i < stop:
        size = min(GROUP, stop - i)
        if not is_every:
            find_slots(left, i, size, goal.key, index, facts.rows, found)
        for g in range(size):
            length = limit
            place = int64(0)
            if not is_every:
                if found[g] < 0:
                    continue
                length = int64(index.slots[found[g], LENGTH])
                place = int64(index.slots[found[g], PLACE])
            j = within
            within = 0
            is_done = False
            if not is_every and length > 1 and (takes_one or takes_two):
                end = min(length, j + room - filled)
                at = filled * out_width
                from_z = take[taken - 1]
                to_z = goal.taken.places[taken - 1]
                # Where nothing is kept, or only one word, another one is written over, or written twice.
                x = left[i + g, keep[0]] if kept else np_int32(0)
                y = left[i + g, keep[1]] if kept > 1 else x
                to_x = goal.kept.places[0] if kept else to_z
                to_y = goal.kept.places[1] if kept > 1 else to_x
                if takes_two:
                    to_y = goal.taken.places[0]
                from_y = take[0]
                while j < end:
                    row = int64(pool[place + j])
                    if row >= limit:
                        is_done = True
                        break
                    j += 1
                    if not is_checked or is_present(facts, row):
                        flat_out[at + to_x] = x
                        flat_out[at + to_y] = flat_rows[row * width + from_y] if takes_two else y
                        flat_out[at + to_z] = flat_rows[row * width + from_z]
                        at += out_width
                filled = at // out_width
            else:
                while j < length:
                    row = j if is_every else place if length == 1 else int64(pool[place + j])
                    if row >= limit:
                        is_done = True
                        break
                    if not is_checked or is_present(facts, row):
                        if filled >= room:
                            break
                        copy_columns(left, i + g, np_int32(0), goal.kept, filled)
                        copy_columns(facts.rows, row, row, goal.taken, filled)
                        filled += 1
                    j += 1
            if not is_done and j < length:
                leave_off(frame, i + g, j)
                return filled
        i += size
    leave_off(frame, i, 0)
    return filled


@piece
def join_members(frame, goal):
    """Joins a block by the set table: keeps the rows whose key columns are a fact (or, if negated, are not one). What
    is taken, if anything, is the row number of that fact."""
    left = block_of(frame)
    stop = frame.end
    key = goal.key
    facts = goal.facts
    out = goal.out
    filled = int64(0)
    room = out.shape[0]
    width = key.shape[0]
    table = facts.table
    mask = uint64(table.shape[0] - 1)
    row_place = goal.taken.places[0] if goal.taken.places.shape[0] > 0 else int64(-1)
    tags = group_of_keys()
    slots = group_of_keys()
    i = frame.begun
    while i < stop:
        size = min(GROUP, stop - i, room - filled)
        if size <= 0:
            break
        fetch_keys(left, i, size, goal, slots, tags)
        for g in range(size):
            slots[g] = fetch_row(facts, slots[g], tags[g])
        for g in range(size):
            # Not `find_key_from`: a search that goes on here takes a twentieth less time.
            slot = slots[g]
            is_found = False
            row = int64(-1)
            while True:
                entry = uint64(table[slot])
                if entry == NONE:
                    break
                if has_tag(entry, tags[g], mask):
                    row = row_in(entry, mask)
                    is_same = True
                    for c in range(width):
                        if facts.rows[row, c] != left[i + g, key[c]]:
                            is_same = False
                    if is_same:
                        is_found = row < goal.limit and (not goal.is_checked or is_present(facts, row))
                        break
                slot = (slot + ONE) & mask
            if is_found != goal.is_negated:
                copy_columns(left, i + g, np_int32(0), goal.kept, filled)
                if row_place >= 0:
                    out[filled, row_place] = row
                filled += 1
        i += size
    leave_off(frame, i, 0)
    return filled


@inlined
def fetch_keys(left, start, size, goal, slots, tags):
    """The home slots and the tags of the facts that a group of bindings are looked for as; asks for the memory of the
    slots."""
    for g in range(size):
        value = hash_columns(left, start + g, goal.key)
        slots[g] = value >> uint64(goal.facts.shift)
        tags[g] = value & LOW
        prefetch(goal.facts.table, int64(slots[g]))
