"""Operators on the rows of a relation and its set table.

The set table finds the row of a fact: open addressing, one 32-bit word a slot, 0 when empty. The home slot is the high
bits of the fact's hash. A table of 2^k slots has fewer than 2^k rows, so the row number + 1 takes the k low bits of a
slot; the others are a *tag*, bits of the hash that tell most other facts apart without a look at their rows. Rows are
never moved, so row numbers identify facts.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    FLAG,
    GROUP,
    INT,
    LOW,
    MATRIX,
    NONE,
    ONE,
    TABLE,
    WORDS,
    flattened,
    group_of_keys,
    hash_columns,
    hash_row,
    inlined,
    int64,
    operator,
    piece,
    prefetch,
    types,
    uint32,
    uint64,
)
from elastalog.backends.kernel.store.annotations import ABSENT, REFERENCE, entry_of

# Fields of the state vector.
USED = 0  # rows in the relation
NEXT = 1  # the next input row
WITHIN = 2  # position inside a posting, for joins
FILLED = 4  # rows in the output block
SKIPPED = 5  # rows that a join of levels has looked at in vain

_LEAST_IN_GROUPS = 4
"""Facts of a block that are worth being looked for in groups: chains have blocks of one."""


@inlined
def is_present(level, touched, row):
    """Whether a row of an annotated relation holds a fact now, in the update under way."""
    value = level[row]
    if value >= REFERENCE:
        value = entry_of(touched, value - REFERENCE).new
    return value < ABSENT


@inlined
def has_tag(entry, tag, mask):
    """Whether a slot that is taken has the tag of a hash, given by its lower half."""
    return (entry ^ tag) <= mask


@inlined
def row_in(entry, mask):
    """The row of a slot; -1 if it is empty."""
    return int64(entry & mask) - 1


@inlined
def entry_for(tag, row, mask):
    """What a slot holds for a row."""
    return uint32((tag & ~mask) | uint64(row + 1))


@inlined
def has_row(rows, row, block, i):
    """Whether a row of a relation is the fact in a row of a block."""
    if rows.shape[1] == 2:  # as most are: this takes half as many instructions
        return rows[row, 0] == block[i, 0] and rows[row, 1] == block[i, 1]
    is_same = True
    for c in range(rows.shape[1]):
        if rows[row, c] != block[i, c]:
            is_same = False
    return is_same


@inlined
def find_row(block, i, rows, table, shift):
    """The row of a fact, or -1 - its empty slot."""
    value = hash_row(block, i, rows.shape[1])
    return find_from(block, i, rows, table, value >> uint64(shift), value & LOW)


@inlined
def find_from(block, i, rows, table, slot, tag):
    """The same, from a slot on that is not behind it; the tag is the lower half of the fact's hash."""
    mask = uint64(table.shape[0] - 1)
    while True:
        entry = uint64(table[slot])
        if entry == NONE:
            return -1 - int64(slot)
        if has_tag(entry, tag, mask):
            row = row_in(entry, mask)
            if has_row(rows, row, block, i):
                return row
        slot = (slot + ONE) & mask


@inlined
def find_key_from(left, i, key, rows, table, slot, tag):
    """As `find_from`, for a fact whose words are in some columns of a row of bindings."""
    mask = uint64(table.shape[0] - 1)
    while True:
        entry = uint64(table[slot])
        if entry == NONE:
            return -1 - int64(slot)
        if has_tag(entry, tag, mask):
            row = row_in(entry, mask)
            is_same = True
            for c in range(key.shape[0]):
                if rows[row, c] != left[i, key[c]]:
                    is_same = False
            if is_same:
                return row
        slot = (slot + ONE) & mask


@inlined
def fetch_slots(block, start, size, table, shift, width, slots, tags):
    """The home slots and the tags of a group of facts; asks for the memory of the slots."""
    for g in range(size):
        value = hash_row(block, start + g, width)
        slots[g] = value >> uint64(shift)
        tags[g] = value & LOW
        prefetch(table, int64(slots[g]))


@inlined
def fetch_row(table, slot, tag, flat_rows, width):
    """The first slot, from one on, that is empty or has the tag of a fact; asks for the memory of the row there."""
    mask = uint64(table.shape[0] - 1)
    while True:
        entry = uint64(table[slot])
        if entry == NONE:
            return slot
        if has_tag(entry, tag, mask):
            prefetch(flat_rows, row_in(entry, mask) * width)
            return slot
        slot = (slot + ONE) & mask


@piece
def find_group(block, start, size, rows, table, shift, level, found):
    """The rows of a group of facts of a block, -1 where there is none. All that this needs, and the levels of the
    rows, are asked for before."""
    mask = uint64(table.shape[0] - 1)
    width = rows.shape[1]
    flat_rows = flattened(rows)
    homes = group_of_keys()
    tags = group_of_keys()
    fetch_slots(block, start, size, table, shift, width, homes, tags)
    for g in range(size):
        homes[g] = fetch_row(table, homes[g], tags[g], flat_rows, width)
        row = row_in(uint64(table[homes[g]]), mask)
        if row >= 0:
            prefetch(level, row)
    for g in range(size):
        found[g] = max(find_from(block, start + g, rows, table, homes[g], tags[g]), -1)


@inlined
def find_in_turn(block, i, used, rows, table, shift, level, found):
    """As `find_row`, for one fact of a block after the other, from the first on: where there are many, a group of them
    is found when it is the turn of the first, and others are looked for again, since one before may have brought
    them."""
    at = i % GROUP
    if at == 0 and used >= _LEAST_IN_GROUPS:
        find_group(block, i, min(GROUP, used - i), rows, table, shift, level, found)
    return found[at] if used >= _LEAST_IN_GROUPS and found[at] >= 0 else find_row(block, i, rows, table, shift)


@inlined
def add_row(block, i, slot, rows, table, row):
    """Copies a row of a block to row `row` of a relation and enters it in an empty slot of the set table. Nothing is
    said of its annotations."""
    width = rows.shape[1]
    tag = hash_row(block, i, width) & LOW
    table[slot] = entry_for(tag, row, uint64(table.shape[0] - 1))
    for c in range(width):
        rows[row, c] = block[i, c]


@operator(types.void, MATRIX, MATRIX, TABLE, INT, WORDS)
def find(block, rows, table, shift, found):
    """The row of each fact of a block (its first columns), -1 where there is none."""
    for i in range(block.shape[0]):
        found[i] = max(find_row(block, i, rows, table, shift), -1)


@operator(types.void, MATRIX, INT, INT, FLAG, WORDS, MATRIX, INT, TABLE, INT, WORDS)
def match(rows, start, stop, is_annotated, level, others, others_used, table, shift, found):
    """The row in another relation of each fact in rows[start:stop], -1 where it holds none, -2 where the row is absent.
    Two evaluations find most facts in the same order, so the row after the last match is tried first."""
    width = rows.shape[1]
    high = uint64(shift)
    mask = uint64(table.shape[0] - 1)
    slots = group_of_keys()
    tags = group_of_keys()
    flat = flattened(others)
    expected = int64(start)
    is_in_order = True
    i = int64(start)
    while i < stop:
        size = min(GROUP, stop - i)
        if not is_in_order:
            fetch_slots(rows, i, size, table, shift, width, slots, tags)
            for g in range(size):
                entry = uint64(table[slots[g]])
                if has_tag(entry, tags[g], mask):
                    prefetch(flat, row_in(entry, mask) * width)
        misses = 0
        for g in range(size):
            if is_annotated and level[i + g] >= ABSENT:
                found[i + g] = -2
                continue
            if expected < others_used and has_row(others, expected, rows, i + g):
                found[i + g] = expected
                expected += 1
                continue
            misses += 1
            if is_in_order:
                value = hash_row(rows, i + g, width)
                slots[g] = value >> high
                tags[g] = value & LOW
            row = find_from(rows, i + g, others, table, slots[g], tags[g])
            found[i + g] = max(row, -1)
            if row >= 0:
                expected = row + 1
        is_in_order = misses < GROUP // 4
        i += size


@piece
def member(
    left, start, stop, key, table, shift, rows, limit, is_checked, level, touched, is_negated, keep, place,
    row_place, out, state,
):  # fmt: skip
    """Keeps the rows of left[start:stop] whose key columns are a fact in rows[:limit] (not, if negated). `row_place`,
    unless negative, is where the row number of that fact goes."""
    filled = state[FILLED]
    room = out.shape[0]
    kept = keep.shape[0]
    width = key.shape[0]
    high = uint64(shift)
    mask = uint64(table.shape[0] - 1)
    tags = group_of_keys()
    slots = group_of_keys()
    flat = flattened(rows)
    i = start
    while i < stop:
        size = min(GROUP, stop - i, room - filled)
        if size <= 0:
            break
        for g in range(size):
            value = hash_columns(left, i + g, key)
            slot = value >> high
            tags[g] = value & LOW
            slots[g] = slot
            prefetch(table, int64(slot))
        for g in range(size):
            slots[g] = fetch_row(table, slots[g], tags[g], flat, width)
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
                        if rows[row, c] != left[i + g, key[c]]:
                            is_same = False
                    if is_same:
                        is_found = row < limit and (not is_checked or is_present(level, touched, row))
                        break
                slot = (slot + ONE) & mask
            if is_found != is_negated:
                for c in range(kept):
                    out[filled, place[c]] = left[i + g, keep[c]]
                if row_place >= 0:
                    out[filled, row_place] = row
                filled += 1
        i += size
    state[NEXT] = i
    state[WITHIN] = 0
    state[FILLED] = filled


@operator(INT, MATRIX, INT, types.Array(types.boolean, 1, "C"))
def compress(block, used, mask):
    """Moves the rows of a block whose mask is true to its front; returns their number."""
    kept = 0
    for i in range(used):
        if mask[i]:
            if kept < i:
                for c in range(block.shape[1]):
                    block[kept, c] = block[i, c]
            kept += 1
    return kept
