"""The join of incremental evaluation: atoms see a view of their relation, and bindings carry levels (see
`level_views`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    GROUP,
    LOW,
    flattened,
    group_of_keys,
    group_of_numbers,
    halves_of,
    hash_columns,
    inlined,
    int64,
    np_int32,
    prefetch,
    uint64,
)
from elastalog.backends.kernel.execution.level_views import copy_columns, is_seen, level_before, level_now, state_of
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA
from elastalog.backends.kernel.store.postings import EVERY, LENGTH, PLACE, find_slot_of, find_slots
from elastalog.backends.kernel.store.set_table import FILLED, NEXT, SKIPPED, WITHIN, fetch_row, find_key_from, row_in

MEMBER = 3
"""How rows are found, besides DIRECT, HASHED and EVERY of `join`: by the set table, every column being bound."""

MOST_SKIPPED = 1 << 16
"""Rows that may be looked at in vain in one call, those of the last group of the left not counted."""

_AHEAD = 8
"""How many rows of a posting before it is needed memory is asked for."""


@inlined
def leave_off(state, at, within, filled):
    """A join goes on at a row of the left, and at one of those that it leads to."""
    state[NEXT] = at
    state[WITHIN] = within
    state[FILLED] = filled


@inlined
def _note(out, filled, i, row):
    """A row of the left meets a fact: until `_put_noted`, that is in the words of their levels."""
    out[filled, out.shape[1] - 2] = i
    out[filled, out.shape[1] - 1] = row


@inlined
def _put_noted(left, rows, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, start, stop):
    """Writes the bindings of the rows of the left and the facts that were noted, with the higher of their levels, now
    and before. Column by column: a loop over one needs few registers."""
    i_place = out.shape[1] - 2
    row_place = out.shape[1] - 1
    for c in range(keep.shape[0]):
        column = keep[c]
        place = keep_place[c]
        for at in range(start, stop):
            out[at, place] = left[out[at, i_place], column]
    for c in range(take.shape[0]):
        column = take[c]
        place = take_place[c]
        for at in range(start, stop):
            out[at, place] = rows[out[at, row_place], column] if column >= 0 else out[at, row_place]
    for at in range(start, stop):
        i = out[at, i_place]
        row = out[at, row_place]
        now = level_now(level, touched, row, is_loss, is_flat)
        before = level_before(level, touched, row, is_loss, is_flat)
        out[at, i_place] = max(left[i, left.shape[1] - 2], now)
        out[at, row_place] = max(left[i, left.shape[1] - 1], before)


@inlined
def put_absence(left, i, marks, is_loss, keep, keep_place, out, filled):
    """The bindings of a row of the left where a fact is absent, which has no level: its row has these marks, or it has
    none."""
    copy_columns(left, i, 0, keep, keep_place, out, filled)
    was_there = not is_loss and marks & DELTA != 0  # and was so until the present delta
    before = left[i, left.shape[1] - 1]
    out[filled, out.shape[1] - 2] = left[i, left.shape[1] - 2]
    out[filled, out.shape[1] - 1] = np_int32(ABSENT) if was_there else before


@inlined
def is_kept(row, marks, limit, view, is_negated):
    """Whether a row of the left that leads to a fact, with these marks, or to none (-1), leads to bindings."""
    is_seen = (view >> marks) & 1 != 0
    return is_seen or row < 0 if is_negated else is_seen and row >= 0 and row < limit


@inlined
def _join_members(
    left, start, stop, key, table, high, rows, limit, level, touched, view, is_loss, is_flat, is_negated, keep,
    keep_place, take, take_place, out, state,
):  # fmt: skip
    """`join_levels` by the set table, in groups: asks for where to look, then for what is found there, then it is
    there."""
    filled = state[FILLED]
    room = out.shape[0]
    flat_rows = flattened(rows)
    width = rows.shape[1]
    homes = group_of_keys()
    tags = group_of_keys()
    mask = uint64(table.shape[0] - 1)
    i = start
    while i < stop and filled < room:
        first = filled
        size = min(GROUP, stop - i, room - filled)
        for g in range(size):
            value = hash_columns(left, i + g, key)
            homes[g] = value >> high
            tags[g] = value & LOW
            prefetch(table, int64(homes[g]))
        for g in range(size):
            homes[g] = fetch_row(table, homes[g], tags[g], flat_rows, width)
            prefetch(level, row_in(uint64(table[homes[g]]), mask))
        for g in range(size):
            row = find_key_from(left, i + g, key, rows, table, homes[g], tags[g])
            # Of a fact that the present round has brought the level is not known yet.
            marks = state_of(level, touched, row) if row >= 0 and (row < limit or is_negated) else int64(0)
            if is_kept(row, marks, limit, view, is_negated):
                if is_negated:
                    put_absence(left, i + g, marks, is_loss, keep, keep_place, out, filled)
                else:
                    _note(out, filled, i + g, row)
                filled += 1
        if not is_negated:
            _put_noted(
                left, rows, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, first, filled
            )  # fmt: skip
        i += size
    leave_off(state, i, 0, filled)


@inlined
def _fetch_rows(size, pool, flat_rows, width, level, places, lengths):
    """Asks for the first rows that a group of keys leads to, and for their levels: where there are several, first for
    where they are listed."""
    for g in range(size):
        if lengths[g] == 1:
            prefetch(flat_rows, places[g] * width)
            prefetch(level, places[g])
        elif lengths[g] > 1:
            prefetch(pool, places[g])
    for g in range(size):
        if lengths[g] > 1:
            for j in range(places[g], places[g] + min(lengths[g], _AHEAD)):
                prefetch(flat_rows, int64(pool[j]) * width)
                prefetch(level, int64(pool[j]))


@inlined
def _join_postings(
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, view, is_loss,
    is_flat, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """`join_levels` by an index, in groups, or with all rows of the relation."""
    filled = state[FILLED]
    within = state[WITHIN]
    skipped = int64(0)
    room = out.shape[0]
    flat_rows = flattened(rows)
    width = rows.shape[1]
    places = group_of_numbers()
    lengths = group_of_numbers()
    wanted = group_of_keys()
    is_full = False
    i = start
    while i < stop and not is_full and skipped <= MOST_SKIPPED:  # then the caller looks at limits
        first = filled
        size = int64(1) if kind == EVERY else min(GROUP, stop - i)
        places[0], lengths[0] = 0, limit
        if kind != EVERY:
            find_slots(left, i, size, key, kind, keys, shift, slots, pool, rows, columns, places, wanted)
            for g in range(size):
                slot = places[g]
                lengths[g] = int64(slots[slot, LENGTH]) if slot >= 0 else int64(0)
                places[g] = int64(slots[slot, PLACE]) if slot >= 0 else int64(0)
            _fetch_rows(size, pool, flat_rows, width, level, places, lengths)
        for g in range(size):
            place = places[g]
            length = lengths[g]
            for j in range(within, length):
                row = place
                if kind == EVERY:
                    row = int64(j)
                elif length > 1:
                    row = int64(pool[place + j])
                    if j + _AHEAD < length:
                        later = int64(pool[place + j + _AHEAD])
                        prefetch(flat_rows, later * width)
                        prefetch(level, later)
                if row >= limit:
                    break
                if not is_seen(view, level, touched, row):
                    skipped += 1
                elif filled < room:
                    _note(out, filled, i + g, row)
                    filled += 1
                else:
                    is_full = True
                    within = j
                    break
            if is_full:
                size = g
                break
            within = int64(0)
        _put_noted(left, rows, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, first, filled)
        i += size
    leave_off(state, i, within, filled)
    state[SKIPPED] += skipped


@inlined
def join_levels(
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched,
    view, is_loss, is_flat, is_negated, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """As `join.join`, over the rows below `limit` that are in `view`. `is_flat`: the relation is of a lower stratum and
    its facts count as level 0. With kind MEMBER, `keys` is the set table, two slots a number, and the key is every
    column; `is_negated` then keeps rows whose fact is not found, or found in a state of the view. Column -1 of the
    right is the row number. Rows that are not in view are counted in SKIPPED; after many it returns before the block
    is full. A single row is better joined by `join_one`."""
    if kind == MEMBER:
        _join_members(
            left, start, stop, key, halves_of(keys), uint64(shift), rows, limit, level, touched, view, is_loss, is_flat,
            is_negated, keep, keep_place, take, take_place, out, state,
        )  # fmt: skip
    else:
        _join_postings(
            left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, view, is_loss,
            is_flat, keep, keep_place, take, take_place, out, state,
        )  # fmt: skip


@inlined
def _put(left, i, rows, row, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, filled):
    """The bindings of a row of the left and a fact, with the higher of their levels, now and before."""
    copy_columns(left, i, 0, keep, keep_place, out, filled)
    copy_columns(rows, row, row, take, take_place, out, filled)
    now = level_now(level, touched, row, is_loss, is_flat)
    before = level_before(level, touched, row, is_loss, is_flat)
    out[filled, out.shape[1] - 2] = max(left[i, left.shape[1] - 2], now)
    out[filled, out.shape[1] - 1] = max(left[i, left.shape[1] - 1], before)


@inlined
def join_one(
    left, at, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, view, is_loss, is_flat,
    is_negated, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """As `join_levels`, with the first row of those given."""
    filled = int64(0)
    if kind == MEMBER:
        value = hash_columns(left, at, key)
        row = find_key_from(left, at, key, rows, halves_of(keys), value >> uint64(shift), value & LOW)
        marks = state_of(level, touched, row) if row >= 0 and (row < limit or is_negated) else int64(0)
        if is_kept(row, marks, limit, view, is_negated):
            if is_negated:
                put_absence(left, at, marks, is_loss, keep, keep_place, out, filled)
            else:
                _put(
                    left, at, rows, row, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out,
                    filled,
                )  # fmt: skip
            filled += 1
        leave_off(state, at + 1, 0, filled)
        return
    place = int64(0)
    length = int64(limit)
    if kind != EVERY:
        slot = find_slot_of(left, at, key, kind, keys, shift, slots, pool, rows, columns)
        place = int64(slots[slot, PLACE]) if slot >= 0 else int64(0)
        length = int64(slots[slot, LENGTH]) if slot >= 0 else int64(0)
    for j in range(state[WITHIN], length):
        row = place
        if kind == EVERY:
            row = int64(j)
        elif length > 1:
            row = int64(pool[place + j])
        if row >= limit:
            break
        if not is_seen(view, level, touched, row):
            state[SKIPPED] += 1
        elif filled < out.shape[0]:
            _put(left, at, rows, row, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, filled)
            filled += 1
        else:
            leave_off(state, at, j, filled)
            return
    leave_off(state, at + 1, 0, filled)
