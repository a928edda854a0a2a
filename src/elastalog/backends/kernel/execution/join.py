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
    inlined,
    int64,
    np_int32,
    operator,
    types,
)
from elastalog.backends.kernel.store.postings import EVERY, find_postings
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, WITHIN, is_present


@inlined
def copy_columns(rows, row, number, take, place, out, i):  # type: ignore[no-untyped-def]
    """Copies columns of a row to a row of bindings; column -1 is a number."""
    for c in range(take.shape[0]):
        out[i, place[c]] = rows[row, take[c]] if take[c] >= 0 else number


@inlined
def leave_off(state, at, within, filled):  # type: ignore[no-untyped-def]
    """A join goes on at a row of the left, and at one of those that it leads to."""
    state[NEXT] = at
    state[WITHIN] = within
    state[FILLED] = filled


@inlined
def _is_short(keep, take):  # type: ignore[no-untyped-def]
    """Whether rows of the result have a common shape: up to three words, one or two of them taken."""
    if take.shape[0] == 1:
        return keep.shape[0] <= 2 and take[0] >= 0
    return take.shape[0] == 2 and keep.shape[0] == 1 and take[0] >= 0 and take[1] >= 0


@operator(
    types.void, MATRIX, INT, INT, COLUMNS, INT, KEYS, INT, MATRIX, WORDS, MATRIX, COLUMNS, INT, FLAG, WORDS,
    MATRIX, COLUMNS, COLUMNS, COLUMNS, COLUMNS, MATRIX, STATE,
)  # fmt: skip
def join(  # type: ignore[no-untyped-def]
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, is_checked, level,
    touched, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """For each row of left[start:stop] and each row of the relation below `limit` with the same key, one output row:
    kept words of the left, taken words of the right (column -1 is the row number). If checked,
    only rows that are present. Resumes at NEXT and WITHIN."""
    filled = state[FILLED]
    within = state[WITHIN]
    room = out.shape[0]
    places = group_of_numbers()
    lengths = group_of_numbers()
    wanted = group_of_keys()
    flat_rows = flattened(rows)
    width = rows.shape[1]
    flat_out = flattened(out)
    out_width = out.shape[1]
    is_short = kind != EVERY and _is_short(keep, take)
    is_second_taken = take.shape[0] == 2
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        find_postings(
            left, i, size, key, kind, keys, shift, slots, pool, rows, columns, limit, places, lengths, wanted
        )  # fmt: skip
        for g in range(size):
            place = places[g]
            length = lengths[g]
            j = within
            if is_short and length > 1:
                # Written out: x is kept, y is kept or taken, z is taken. Without a kept word x is put where z comes.
                at = filled * out_width
                from_z = take[take.shape[0] - 1]
                to_z = take_place[take.shape[0] - 1]
                to_x = keep_place[0] if keep.shape[0] else to_z
                x = left[i + g, keep[0]] if keep.shape[0] else np_int32(0)
                to_y = to_x
                y = x
                if keep.shape[0] == 2:
                    to_y = keep_place[1]
                    y = left[i + g, keep[1]]
                from_y = from_z
                if is_second_taken:
                    from_y = take[0]
                    to_y = take_place[0]
                end = min(length, within + room - filled)
                while j < end:
                    row = int64(pool[place + j])
                    if row >= limit:
                        length = j
                        break
                    j += 1
                    if not is_checked or is_present(level, touched, row):
                        flat_out[at + to_x] = x
                        flat_out[at + to_y] = flat_rows[row * width + from_y] if is_second_taken else y
                        flat_out[at + to_z] = flat_rows[row * width + from_z]
                        at += out_width
                filled = at // out_width
            else:
                while j < length and filled < room:
                    row = place
                    if kind == EVERY:
                        row = int64(j)
                    elif length > 1:
                        row = int64(pool[place + j])
                    if row >= limit:
                        length = j
                        break
                    j += 1
                    if not is_checked or is_present(level, touched, row):
                        copy_columns(left, i + g, 0, keep, keep_place, out, filled)
                        copy_columns(rows, row, row, take, take_place, out, filled)
                        filled += 1
            if j < length:
                leave_off(state, i + g, j, filled)
                return
            within = 0
        i += size
    leave_off(state, i, 0, filled)
