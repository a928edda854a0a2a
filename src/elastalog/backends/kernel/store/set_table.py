"""Operators on the rows of a relation and its set table.

The set table finds the row of a fact: open addressing, one 32-bit word a slot, 0 when empty. The home slot is the high
bits of the fact's hash. A table of 2^k slots has fewer than 2^k rows, so the row number + 1 takes the k low bits of a
slot; the others are a *tag*, bits of the hash that tell most other facts apart without a look at their rows. Rows are
never moved, so row numbers identify facts.
"""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    INT,
    LOW,
    MATRIX,
    NONE,
    ONE,
    WORDS,
    flattened,
    group_of_keys,
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
from elastalog.backends.kernel.store.annotations import ABSENT, REFERENCE, entry_of, facts_of, levels_of, rows_of
from elastalog.backends.kernel.store.memory import relation_descriptor_at

_LEAST_IN_GROUPS = 4
"""Facts of a block that are worth being looked for in groups: chains have blocks of one."""


@inlined
def is_present(facts, row):
    """Whether a row of an annotated relation holds a fact now, in the update under way."""
    value = facts.level[row]
    if value >= REFERENCE:
        value = entry_of(facts.touched, value - REFERENCE).new
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
def find_row(block, i, facts):
    """The row of a fact, or -1 - its empty slot."""
    value = hash_row(block, i, facts.rows.shape[1])
    return find_from(block, i, facts, value >> uint64(facts.shift), value & LOW)


@inlined
def find_from(block, i, facts, slot, tag):
    """The row of a fact, or -1 - its empty slot, searched from a slot that is not behind it; the tag is the lower half
    of the fact's hash."""
    mask = uint64(facts.table.shape[0] - 1)
    while True:
        entry = uint64(facts.table[slot])
        if entry == NONE:
            return -1 - int64(slot)
        if has_tag(entry, tag, mask):
            row = row_in(entry, mask)
            if has_row(facts.rows, row, block, i):
                return row
        slot = (slot + ONE) & mask


@inlined
def find_key_from(left, i, key, facts, slot, tag):
    """The row of the fact whose words are in some columns of a row of bindings, searched as `find_from` does."""
    mask = uint64(facts.table.shape[0] - 1)
    while True:
        entry = uint64(facts.table[slot])
        if entry == NONE:
            return -1 - int64(slot)
        if has_tag(entry, tag, mask):
            row = row_in(entry, mask)
            is_same = True
            for c in range(key.shape[0]):
                if facts.rows[row, c] != left[i, key[c]]:
                    is_same = False
            if is_same:
                return row
        slot = (slot + ONE) & mask


@inlined
def fetch_slots(block, start, size, facts, slots, tags):
    """The home slots and the tags of a group of facts; asks for the memory of the slots."""
    for g in range(size):
        value = hash_row(block, start + g, facts.rows.shape[1])
        slots[g] = value >> uint64(facts.shift)
        tags[g] = value & LOW
        prefetch(facts.table, int64(slots[g]))


@inlined
def fetch_row(facts, slot, tag):
    """The first slot, from one on, that is empty or has the tag of a fact; asks for the memory of the row there."""
    mask = uint64(facts.table.shape[0] - 1)
    while True:
        entry = uint64(facts.table[slot])
        if entry == NONE:
            return slot
        if has_tag(entry, tag, mask):
            prefetch(flattened(facts.rows), row_in(entry, mask) * facts.rows.shape[1])
            return slot
        slot = (slot + ONE) & mask


@piece
def find_group(block, start, size, facts, found):
    """The rows of a group of facts of a block, -1 where there is none. All that this needs, and the levels of the
    rows, are asked for before."""
    mask = uint64(facts.table.shape[0] - 1)
    homes = group_of_keys()
    tags = group_of_keys()
    fetch_slots(block, start, size, facts, homes, tags)
    for g in range(size):
        homes[g] = fetch_row(facts, homes[g], tags[g])
        row = row_in(uint64(facts.table[homes[g]]), mask)
        if row >= 0:
            prefetch(facts.level, row)
    for g in range(size):
        found[g] = max(find_from(block, start + g, facts, homes[g], tags[g]), -1)


@inlined
def find_in_turn(block, i, used, facts, found):
    """Finds rows as `find_row` does, for one fact of a block after the other, from the first on: where there are many,
    a group of them is found when it is the turn of the first, and others are looked for again, since one before may
    have brought them."""
    at = i % GROUP
    if at == 0 and used >= _LEAST_IN_GROUPS:
        find_group(block, i, min(GROUP, used - i), facts, found)
    return found[at] if used >= _LEAST_IN_GROUPS and found[at] >= 0 else find_row(block, i, facts)


@inlined
def add_row(block, i, slot, facts, row):
    """Copies a row of a block to row `row` of a relation and enters it in an empty slot of the set table. Nothing is
    said of its annotations."""
    width = facts.rows.shape[1]
    tag = hash_row(block, i, width) & LOW
    facts.table[slot] = entry_for(tag, row, uint64(facts.table.shape[0] - 1))
    for c in range(width):
        facts.rows[row, c] = block[i, c]


@operator(types.void, INT, MATRIX, WORDS)
def find(address, block, found):
    """The row of each fact of a block (its first columns), -1 where there is none."""
    facts = facts_of(relation_descriptor_at(address, 0))
    for i in range(block.shape[0]):
        found[i] = max(find_row(block, i, facts), -1)


@operator(types.void, INT, INT, INT, INT, WORDS)
def match(address, other, start, stop, found):
    """The row in another relation of each row in [start, stop), -1 where its fact has none, -2 where it is absent. Two
    evaluations find most facts in the same order, so the row after the last match is tried first."""
    home = relation_descriptor_at(address, 0)
    is_checked = home.is_annotated and not home.is_settled
    rows = rows_of(home)
    level = levels_of(home)
    other_home = relation_descriptor_at(other, 0)
    others = facts_of(other_home)
    width = rows.shape[1]
    mask = uint64(others.table.shape[0] - 1)
    slots = group_of_keys()
    tags = group_of_keys()
    flat = flattened(others.rows)
    expected = int64(start)
    is_in_order = True
    i = int64(start)
    while i < stop:
        size = min(GROUP, stop - i)
        if not is_in_order:
            fetch_slots(rows, i, size, others, slots, tags)
            for g in range(size):
                entry = uint64(others.table[slots[g]])
                if has_tag(entry, tags[g], mask):
                    prefetch(flat, row_in(entry, mask) * width)
        misses = 0
        for g in range(size):
            if is_checked and level[i + g] >= ABSENT:
                found[i + g] = -2
                continue
            if expected < other_home.used and has_row(others.rows, expected, rows, i + g):
                found[i + g] = expected
                expected += 1
                continue
            misses += 1
            if is_in_order:
                value = hash_row(rows, i + g, width)
                slots[g] = value >> uint64(others.shift)
                tags[g] = value & LOW
            row = find_from(rows, i + g, others, slots[g], tags[g])
            found[i + g] = max(row, -1)
            if row >= 0:
                expected = row + 1
        is_in_order = misses < GROUP // 4
        i += size


@inlined
def keep_row(block, kept, i):
    """Moves a row of a block behind those that are kept so far; returns how many they are now."""
    if kept < i:
        for c in range(block.shape[1]):
            block[kept, c] = block[i, c]
    return kept + 1


@operator(INT, MATRIX, INT, types.Array(types.boolean, 1))
def compress(block, used, mask):
    """Moves the rows of a block whose mask is true to its front; returns their number."""
    kept = 0
    for i in range(used):
        if mask[i]:
            kept = keep_row(block, kept, i)
    return kept
