"""Operators of evaluation in several threads: inserting into one set table at once, without locks.

The facts of a relation fall into *parts* by the highest bits of their hash, so a part is a range of home slots of the
set table, however large the table is. Every thread first sorts what it derives into parts (`scatter`, `sift`); then
every part is inserted by one thread, which reads and writes no slot but those of the part (`insert_part`). A fact whose
chain of slots leaves the part is put off and inserted later, by one thread alone.

The rows that several threads add at once are dealt out in turns of TURN rows, so that little is left unused when some
have added more rows than others; `close_gaps` moves the last rows there.
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
    group_of_numbers,
    hash_row,
    increment_atomically,
    inlined,
    int64,
    operator,
    prefetch,
    types,
    uint32,
    uint64,
)
from elastalog.backends.kernel.store.set_table import entry_for, fetch_row, find_from, has_tag, row_in

TURN = 256
"""Rows a thread adds before it is the next one's turn."""

# Fields of the state vector of a thread that inserts.
ADDED = 0  # rows added since all threads met
PUT_OFF = 1  # candidates of the part that were put off


@inlined
def row_of_turn(base, i, owner, owners):  # type: ignore[no-untyped-def]
    """The row of the i-th fact that a thread adds."""
    return base + ((i // TURN) * owners + owner) * TURN + i % TURN


@operator(INT, MATRIX, INT, INT, INT, INT, MATRIX, COLUMNS)
def scatter(block, start, stop, part_shift, capacity, out, filled):  # type: ignore[no-untyped-def]
    """Copies block[start:stop] (its first columns) to the parts of the facts: part p is out[p * capacity:][:filled[p]].
    Returns where it stopped, early when a part is full."""
    width = out.shape[1]
    high = uint64(part_shift)
    for i in range(start, stop):
        part = int64(hash_row(block, i, width) >> high)
        position = filled[part]
        if position >= capacity:
            return i
        target = part * capacity + position
        for c in range(width):
            out[target, c] = block[i, c]
        filled[part] = position + 1
    return stop


@operator(INT, MATRIX, INT, INT, INT, INT, MATRIX, COLUMNS, MATRIX, TABLE, INT, WORDS, INT)
def sift(  # type: ignore[no-untyped-def]
    block, start, stop, part_shift, capacity, out, filled, rows, table, shift, count, counted_from
):  # fmt: skip
    """As `scatter`, but leaves out the facts that the relation holds already, which it counts as `rows.insert` does."""
    width = out.shape[1]
    part_high = uint64(part_shift)
    high = uint64(shift)
    hashes = group_of_keys()
    slots = group_of_keys()
    flat = flattened(rows)
    is_counting = count.shape[0] > 0
    i = start
    while i < stop:
        group = min(GROUP, stop - i)
        for g in range(group):
            value = hash_row(block, i + g, width)
            hashes[g] = value
            slots[g] = value >> high
            prefetch(table, int64(value >> high))
        for g in range(group):
            slots[g] = fetch_row(table, slots[g], hashes[g] & LOW, flat, width)
        for g in range(group):
            row = find_from(block, i + g, rows, table, slots[g], hashes[g] & LOW)
            if row >= 0:
                if is_counting and row >= counted_from:
                    increment_atomically(count, row)
                continue
            part = int64(hashes[g] >> part_high)
            position = filled[part]
            if position >= capacity:
                return i + g
            target = part * capacity + position
            for c in range(width):
                out[target, c] = block[i + g, c]
            filled[part] = position + 1
        i += group
    return stop


@operator(types.void, MATRIX, INT, INT, MATRIX, TABLE, INT, INT, WORDS, INT, INT, INT, INT, STATE)
def insert_part(  # type: ignore[no-untyped-def]
    candidates, first, size, rows, table, shift, last, count, counted_from, base, owner, owners, state
):  # fmt: skip
    """Inserts candidates[first:first + size], all of one part, whose slots end before `last`. Counts as `rows.insert`
    does. What is put off is moved to the front of the part."""
    width = rows.shape[1]
    high = uint64(shift)
    mask = uint64(table.shape[0] - 1)
    slots = group_of_numbers()
    tags = group_of_keys()
    flat = flattened(rows)
    is_counting = count.shape[0] > 0
    added = state[ADDED]
    put_off = 0
    i = first
    end = first + size
    while i < end:
        group = min(GROUP, end - i)
        for g in range(group):
            value = hash_row(candidates, i + g, width)
            slots[g] = int64(value >> high)
            tags[g] = value & LOW
            prefetch(table, slots[g])
        for g in range(group):
            slot = slots[g]
            while slot < last:
                entry = uint64(table[slot])
                if entry == NONE:
                    break
                if has_tag(entry, tags[g], mask):
                    prefetch(flat, row_in(entry, mask) * width)
                    break
                slot += 1
            slots[g] = slot
        for g in range(group):
            slot = slots[g]
            tag = tags[g]
            is_done = False
            while slot < last and not is_done:
                entry = uint64(table[slot])
                if entry == NONE:
                    row = row_of_turn(base, added, owner, owners)
                    table[slot] = entry_for(tag, row, mask)
                    for c in range(width):
                        rows[row, c] = candidates[i + g, c]
                    if is_counting:
                        count[row] = 1
                    added += 1
                    is_done = True
                elif has_tag(entry, tag, mask):
                    row = row_in(entry, mask)
                    is_done = True
                    for c in range(width):
                        if rows[row, c] != candidates[i + g, c]:
                            is_done = False
                    if is_done and is_counting and row >= counted_from:
                        count[row] += 1
                slot += 1
            if not is_done:
                for c in range(width):
                    candidates[first + put_off, c] = candidates[i + g, c]
                put_off += 1
        i += group
    state[ADDED] = added
    state[PUT_OFF] = put_off


@operator(INT, MATRIX, INT, TABLE, INT, INT, INT, COLUMNS)
def rebuild_part(rows, used, table, shift, first, last, put_off):  # type: ignore[no-untyped-def]
    """Clears the slots from `first` to `last` and fills them with those of the first rows that are at home there.
    Returns how many were put off; they are noted as far as there is room."""
    width = rows.shape[1]
    high = uint64(shift)
    mask = uint64(table.shape[0] - 1)
    slots = group_of_numbers()
    entries = group_of_keys()
    waiting = 0
    for slot in range(first, last):
        table[slot] = 0
    row = 0
    while row < used:
        group = 0
        while row < used and group < GROUP:
            value = hash_row(rows, row, width)
            slot = int64(value >> high)
            row += 1
            if first <= slot < last:
                slots[group] = slot
                entries[group] = uint64(entry_for(value & LOW, row - 1, mask))
                prefetch(table, slot)
                group += 1
        for g in range(group):
            slot = slots[g]
            while slot < last and table[slot] != 0:
                slot += 1
            if slot < last:
                table[slot] = uint32(entries[g])
            else:
                if waiting < put_off.shape[0]:
                    put_off[waiting] = row_in(entries[g], mask)
                waiting += 1
    return waiting


@operator(types.void, MATRIX, TABLE, INT, COLUMNS)
def enter(rows, table, shift, chosen):  # type: ignore[no-untyped-def]
    """Enters some rows into the set table, whichever slots are free."""
    mask = uint64(table.shape[0] - 1)
    for i in range(chosen.shape[0]):
        value = hash_row(rows, chosen[i], rows.shape[1])
        slot = value >> uint64(shift)
        while table[slot] != 0:
            slot = (slot + ONE) & mask
        table[slot] = entry_for(value & LOW, chosen[i], mask)


@operator(types.void, MATRIX, TABLE, INT, WORDS, INT, COLUMNS)
def close_gaps(rows, table, shift, count, base, added):  # type: ignore[no-untyped-def]
    """Makes the rows from `base` on dense again, of which thread t has added added[t]."""
    owners = added.shape[0]
    end = base + added.sum()
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    high = uint64(shift)
    is_counting = count.shape[0] > 0
    filler = 0  # the thread whose unused rows are being filled
    unused = added[0]
    for owner in range(owners):
        i = added[owner] - 1
        while i >= 0:
            source = row_of_turn(base, i, owner, owners)
            if source < end:
                break
            target = row_of_turn(base, unused, filler, owners)
            while target >= end:
                filler += 1
                unused = added[filler]
                target = row_of_turn(base, unused, filler, owners)
            unused += 1
            for c in range(width):
                rows[target, c] = rows[source, c]
            if is_counting:
                count[target] = count[source]
            slot = hash_row(rows, source, width) >> high
            while row_in(uint64(table[slot]), mask) != source:
                slot = (slot + ONE) & mask
            table[slot] = entry_for(uint64(table[slot]), target, mask)
            i -= 1
