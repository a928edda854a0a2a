"""The join of incremental evaluation with one row, without what groups of them need: chains have rounds of one."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import LOW, halves_of, hash_columns, inlined, int64, uint64
from elastalog.backends.kernel.execution.join_levels import MEMBER, is_kept, leave_off, put_absence
from elastalog.backends.kernel.execution.level_views import copy_columns, is_seen, level_before, level_now, state_of
from elastalog.backends.kernel.store.postings import EVERY, LENGTH, PLACE, find_slot_of
from elastalog.backends.kernel.store.set_table import SKIPPED, WITHIN, find_key_from


@inlined
def _put(  # type: ignore[no-untyped-def]
    left, i, rows, row, level, touched, is_loss, is_flat, keep, keep_place, take, take_place, out, filled
):
    """The bindings of a row of the left and a fact, with the higher of their levels, now and before."""
    copy_columns(left, i, 0, keep, keep_place, out, filled)
    copy_columns(rows, row, row, take, take_place, out, filled)
    now = level_now(level, touched, row, is_loss, is_flat)
    before = level_before(level, touched, row, is_loss, is_flat)
    out[filled, out.shape[1] - 2] = max(left[i, left.shape[1] - 2], now)
    out[filled, out.shape[1] - 1] = max(left[i, left.shape[1] - 1], before)


@inlined
def join_one(  # type: ignore[no-untyped-def]
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
