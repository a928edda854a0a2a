"""Operators of messages: rows ordered by the share that wants them, and facts that arrive with counts."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    GROUP,
    INT,
    LOW,
    MATRIX,
    ONE,
    TABLE,
    WORDS,
    group_of_keys,
    group_of_numbers,
    hash_row,
    int64,
    operator,
    prefetch,
    types,
    uint64,
)
from elastalog.backends.kernel.store.set_table import has_tag, row_in


@operator(types.void, MATRIX, WORDS, WORDS, MATRIX, COLUMNS)
def distribute(rows, count, shares, ordered, bounds):  # type: ignore[no-untyped-def]
    """Copies rows, and their counts as a last column unless there are none, in the order of their shares; rows for
    everybody (a negative share) come last. Rows of share s are those from bounds[s], which is 0 before, to
    bounds[s + 1]."""
    size, width = rows.shape
    last = bounds.shape[0] - 2
    for i in range(size):
        share = shares[i]
        bounds[(last if share < 0 else share) + 1] += 1
    for share in range(last + 1):
        bounds[share + 1] += bounds[share]
    has_count = count.shape[0] > 0
    # Backwards, so that bounds[share + 1], the end of a share, is counted down to its beginning.
    for i in range(size - 1, -1, -1):
        share = last if shares[i] < 0 else shares[i]
        bounds[share + 1] -= 1
        place = bounds[share + 1]
        for c in range(width):
            ordered[place, c] = rows[i, c]
        if has_count:
            ordered[place, width] = count[i]
    for share in range(last + 1):
        bounds[share] = bounds[share + 1]
    bounds[last + 1] = size


@operator(types.void, MATRIX, MATRIX, TABLE, INT, WORDS, INT)
def add_counts(block, rows, table, shift, count, first):  # type: ignore[no-untyped-def]
    """Counts facts that were inserted once each, and whose number is in the last column of the block, as often as that
    says: those from row `first` on."""
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    high = uint64(shift)
    size = block.shape[0]
    members = group_of_numbers()
    hashes = group_of_keys()
    i = 0
    while i < size:
        held = 0
        while i < size and held < GROUP:
            if block[i, width] > 1:
                value = hash_row(block, i, width)
                members[held] = i
                hashes[held] = value
                prefetch(table, int64(value >> high))
                held += 1
            i += 1
        for g in range(held):
            member = members[g]
            slot = hashes[g] >> high
            tag = hashes[g] & LOW
            while table[slot] != 0:
                entry = uint64(table[slot])
                if has_tag(entry, tag, mask):
                    row = row_in(entry, mask)
                    is_same = True
                    for c in range(width):
                        if rows[row, c] != block[member, c]:
                            is_same = False
                    if is_same:
                        if row >= first:
                            count[row] += block[member, width] - 1
                        break
                slot = (slot + ONE) & mask
