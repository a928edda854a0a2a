"""The join of batch evaluation: rows of bindings with the facts of a relation that agree on a key."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FLAG,
    GROUP,
    INT,
    KEYS,
    MATRIX,
    STATE,
    WORDS,
    flattened,
    group_of_keys,
    group_of_numbers,
    int64,
    np_int32,
    operator,
    types,
)
from elastalog.backends.kernel.store.postings import EVERY, LENGTH, PLACE, find_slots
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN, is_present

BLOCK = 1 << 14
"""Rows of a block of bindings: large enough to hide the cost of a call, small enough for the cache."""


@operator(
    types.void, MATRIX, INT, INT, COLUMNS, INT, KEYS, INT, MATRIX, WORDS, MATRIX, COLUMNS, INT, FLAG, WORDS,
    MATRIX, COLUMNS, COLUMNS, COLUMNS, COLUMNS, MATRIX, STATE,
)  # fmt: skip
def join(
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, is_checked, level,
    touched, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """For each row of left[start:stop] and each row of the relation below `limit` with the same key, one output row:
    kept words of the left, taken words of the right (column -1 is the row number). If checked,
    only rows that are present. Resumes at NEXT and WITHIN."""
    filled = state[FILLED]
    room = out.shape[0]
    within = state[WITHIN]
    kept = keep.shape[0]
    taken = take.shape[0]
    found = group_of_numbers()
    wanted = group_of_keys()
    flat_rows = flattened(rows)
    width = rows.shape[1]
    flat_out = flattened(out)
    out_width = out.shape[1]
    # The common shapes, written out below: one taken word and up to two kept ones, or two and one.
    takes_one = taken == 1 and kept <= 2 and take[0] >= 0
    takes_two = taken == 2 and kept == 1 and take[0] >= 0 and take[1] >= 0
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        if kind != EVERY:
            find_slots(left, i, size, key, kind, keys, shift, slots, pool, rows, columns, found, wanted)
        for g in range(size):
            length = limit
            place = int64(0)
            if kind != EVERY:
                if found[g] < 0:
                    continue
                length = int64(slots[found[g], LENGTH])
                place = int64(slots[found[g], PLACE])
            j = within
            within = 0
            is_done = False
            if kind != EVERY and length > 1 and (takes_one or takes_two):
                end = min(length, j + room - filled)
                at = filled * out_width
                from_z = take[taken - 1]
                to_z = take_place[taken - 1]
                # Where nothing is kept, or only one word, another one is written over, or written twice.
                x = left[i + g, keep[0]] if kept else np_int32(0)
                y = left[i + g, keep[1]] if kept > 1 else x
                to_x = keep_place[0] if kept else to_z
                to_y = keep_place[1] if kept > 1 else to_x
                if takes_two:
                    to_y = take_place[0]
                from_y = take[0]
                while j < end:
                    row = int64(pool[place + j])
                    if row >= limit:
                        is_done = True
                        break
                    j += 1
                    if not is_checked or is_present(level, touched, row):
                        flat_out[at + to_x] = x
                        flat_out[at + to_y] = flat_rows[row * width + from_y] if takes_two else y
                        flat_out[at + to_z] = flat_rows[row * width + from_z]
                        at += out_width
                filled = at // out_width
            else:
                while j < length:
                    row = j if kind == EVERY else place if length == 1 else int64(pool[place + j])
                    if row >= limit:
                        is_done = True
                        break
                    if not is_checked or is_present(level, touched, row):
                        if filled >= room:
                            break
                        for c in range(kept):
                            out[filled, keep_place[c]] = left[i + g, keep[c]]
                        for c in range(taken):
                            out[filled, take_place[c]] = rows[row, take[c]] if take[c] >= 0 else row
                        filled += 1
                    j += 1
            if not is_done and j < length:
                state[NEXT] = i + g
                state[WITHIN] = j
                state[FILLED] = filled
                return
        i += size
    state[NEXT] = i
    state[WITHIN] = 0
    state[FILLED] = filled
