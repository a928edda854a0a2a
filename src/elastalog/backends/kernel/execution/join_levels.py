"""The join of incremental evaluation: atoms see a view of their relation, and bindings carry levels (see
`level_views`)."""

from __future__ import annotations

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FLAG,
    GROUP,
    INT,
    KEYS,
    LOW,
    MATRIX,
    NONE,
    ONE,
    STATE,
    WORDS,
    flattened,
    group_of_keys,
    group_of_numbers,
    halves_of,
    hash_columns,
    inlined,
    int64,
    np_int32,
    operator,
    prefetch,
    types,
    uint64,
)
from elastalog.backends.kernel.execution.level_views import copy_columns, level_before, level_now, state_of
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA
from elastalog.backends.kernel.store.postings import (
    DIRECT,
    EVERY,
    HASHED,
    LENGTH,
    PLACE,
    SLOT_WIDTH,
    first_row,
    hash_key,
    index_key,
)
from elastalog.backends.kernel.store.set_table import (
    FILLED,
    NEXT,
    SKIPPED,
    WITHIN,
    fetch_row,
    find_key_from,
    row_in,
)

MEMBER = 3
"""How rows are found, besides DIRECT, HASHED and EVERY of `join`: by the set table, every column being bound."""

AHEAD = 16
"""How many rows before it is needed memory is asked for."""

WITHIN_AHEAD = 8
"""The same for the rows of a posting."""

MANY = 16
"""Rows that are worth being looked up in groups: chains have rounds of one."""


MOST_SKIPPED = 1 << 16
"""Rows that may be looked at in vain in one call, those of one row of the left not counted."""


@inlined
def _join_members(  # type: ignore[no-untyped-def]
    left, start, stop, key, table, high, rows, limit, level, touched, view, is_loss, is_flat, keep, keep_place, take,
    take_place, out, state,
):  # fmt: skip
    """`join_levels` by the set table, in groups: where to look is asked for, then what is found there, then it is
    there."""
    filled = state[FILLED]
    room = out.shape[0]
    left_width = left.shape[1]
    out_width = out.shape[1]
    flat_rows = flattened(rows)
    width = rows.shape[1]
    homes = group_of_keys()
    tags = group_of_keys()
    mask = uint64(table.shape[0] - 1)
    i = start
    while i < stop and filled < room:
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
            if row < 0 or row >= limit or not (view >> state_of(level, touched, row)) & 1:
                continue
            for c in range(keep.shape[0]):
                out[filled, keep_place[c]] = left[i + g, keep[c]]
            copy_columns(rows, row, row, take, take_place, out, filled)
            now = level_now(level, touched, row, is_loss, is_flat)
            before = level_before(level, touched, row, is_loss, is_flat)
            out[filled, out_width - 2] = max(left[i + g, left_width - 2], now)
            out[filled, out_width - 1] = max(left[i + g, left_width - 1], before)
            filled += 1
        i += size
    state[NEXT] = i
    state[WITHIN] = 0
    state[FILLED] = filled


@inlined
def _find_slots(left, start, size, key, kind, keys, shift, slots, pool, rows, columns, found, wanted):  # type: ignore[no-untyped-def]
    """The slots of a group of keys, -1 where there is none; asks for their memory before."""
    flat_slots = flattened(slots)
    if kind == DIRECT:
        top = slots.shape[0]
        for g in range(size):
            word = int64(left[start + g, key[0]])
            if word >= top or word < 0:
                word = int64(-1)
            else:
                prefetch(flat_slots, word * SLOT_WIDTH)
            found[g] = word
        return
    high = uint64(shift)
    mask = uint64(keys.shape[0] - 1)
    key_width = key.shape[0]
    for g in range(size):
        value = index_key(left, start + g, key)
        home = hash_key(value) >> high
        wanted[g] = value
        found[g] = int64(home)
        prefetch(keys, int64(home))
        prefetch(flat_slots, int64(home) * SLOT_WIDTH)
    for g in range(size):
        home = uint64(found[g])
        while True:
            entry = keys[home]
            if entry == NONE:
                found[g] = -1
                break
            if entry == wanted[g]:
                is_same = True
                if key_width > 2:
                    first = first_row(slots, home, pool)
                    for c in range(key_width):
                        if rows[first, columns[c]] != left[start + g, key[c]]:
                            is_same = False
                if is_same:
                    found[g] = int64(home)
                    break
            home = (home + ONE) & mask


@inlined
def _fetch_postings(size, slots, pool, flat_rows, width, level, found):  # type: ignore[no-untyped-def]
    """Asks for the first rows of a group of slots, and for their levels: where there are several, first for where they
    are listed."""
    for g in range(size):
        slot = found[g]
        if slot >= 0:
            if slots[slot, LENGTH] == 1:
                prefetch(flat_rows, int64(slots[slot, PLACE]) * width)
                prefetch(level, int64(slots[slot, PLACE]))
            else:
                prefetch(pool, int64(slots[slot, PLACE]))
    for g in range(size):
        slot = found[g]
        if slot >= 0 and slots[slot, LENGTH] > 1:
            first = int64(slots[slot, PLACE])
            for j in range(min(int64(slots[slot, LENGTH]), WITHIN_AHEAD)):
                prefetch(flat_rows, int64(pool[first + j]) * width)
                prefetch(level, int64(pool[first + j]))


@inlined
def _join_postings(  # type: ignore[no-untyped-def]
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, view, is_loss,
    is_flat, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """`join_levels` by an index, in groups: asks for where to look, then for what is found there, then it is there."""
    filled = state[FILLED]
    skipped = int64(0)
    room = out.shape[0]
    first_within = state[WITHIN]
    kept = keep.shape[0]
    left_width = left.shape[1]
    out_width = out.shape[1]
    flat_rows = flattened(rows)
    width = rows.shape[1]
    found = group_of_numbers()
    wanted = group_of_keys()
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        _find_slots(left, i, size, key, kind, keys, shift, slots, pool, rows, columns, found, wanted)
        _fetch_postings(size, slots, pool, flat_rows, width, level, found)
        for g in range(size):
            slot = found[g]
            if slot < 0:
                continue
            length = int64(slots[slot, LENGTH])
            place = int64(slots[slot, PLACE])
            for j in range(first_within, length):
                row = place
                if length > 1:
                    row = int64(pool[place + j])
                    if j + WITHIN_AHEAD < length:
                        later = int64(pool[place + j + WITHIN_AHEAD])
                        prefetch(flat_rows, later * width)
                        prefetch(level, later)
                if row >= limit:
                    break
                if not (view >> state_of(level, touched, row)) & 1:
                    skipped += 1
                    continue
                if filled >= room:
                    state[NEXT] = i + g
                    state[WITHIN] = j
                    state[FILLED] = filled
                    state[SKIPPED] += skipped
                    return
                for c in range(kept):
                    out[filled, keep_place[c]] = left[i + g, keep[c]]
                copy_columns(rows, row, row, take, take_place, out, filled)
                now = level_now(level, touched, row, is_loss, is_flat)
                before = level_before(level, touched, row, is_loss, is_flat)
                out[filled, out_width - 2] = max(left[i + g, left_width - 2], now)
                out[filled, out_width - 1] = max(left[i + g, left_width - 1], before)
                filled += 1
            first_within = 0
        i += size
        if skipped > MOST_SKIPPED:
            break  # whoever called looks at limits before he goes on
    state[NEXT] = i
    state[WITHIN] = 0
    state[FILLED] = filled
    state[SKIPPED] += skipped


@operator(
    types.void, MATRIX, INT, INT, COLUMNS, INT, KEYS, INT, MATRIX, WORDS, MATRIX, COLUMNS, INT, WORDS, MATRIX,
    INT, FLAG, FLAG, FLAG, COLUMNS, COLUMNS, COLUMNS, COLUMNS, MATRIX, STATE,
)  # fmt: skip
def join_levels(  # type: ignore[no-untyped-def]
    left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched,
    view, is_loss, is_flat, is_negated, keep, keep_place, take, take_place, out, state,
):  # fmt: skip
    """As `join.join`, over the rows below `limit` that are in `view`. `is_flat`: the relation is of a lower stratum and
    its facts count as level 0. With kind MEMBER, `keys` is the set table, two slots a number, and the key is every
    column; `is_negated` then keeps rows whose fact is not found, or found in a state of the view. Column -1 of the
    right is the row number. Rows that are not in view are counted in SKIPPED; after many it returns before the block
    is full."""
    filled = state[FILLED]
    skipped = int64(0)
    room = out.shape[0]
    first_within = state[WITHIN]
    kept = keep.shape[0]
    key_width = key.shape[0]
    left_width = left.shape[1]
    out_width = out.shape[1]
    mask = uint64(keys.shape[0] - 1)
    table = halves_of(keys)
    high = uint64(shift)
    flat_rows = flattened(rows)
    width = rows.shape[1]
    if kind == MEMBER and not is_negated:
        _join_members(
            left, start, stop, key, table, high, rows, limit, level, touched, view, is_loss, is_flat, keep, keep_place,
            take, take_place, out, state,
        )  # fmt: skip
        return
    if kind < EVERY and stop - start >= MANY:  # by an index
        _join_postings(
            left, start, stop, key, kind, keys, shift, slots, pool, rows, columns, limit, level, touched, view, is_loss,
            is_flat, keep, keep_place, take, take_place, out, state,
        )  # fmt: skip
        return
    for i in range(start, stop):
        if kind == MEMBER and i + AHEAD < stop:
            prefetch(table, int64(hash_columns(left, i + AHEAD, key) >> high))
        length = int64(0)
        place = int64(0)
        if kind == MEMBER:
            value = hash_columns(left, i, key)
            place = find_key_from(left, i, key, rows, table, value >> high, value & LOW)
            length = int64(1) if place >= 0 else int64(0)
        elif kind == DIRECT:
            word = int64(left[i, key[0]])
            if word >= 0 and word < slots.shape[0]:
                length = int64(slots[word, LENGTH])
                place = int64(slots[word, PLACE])
        elif kind == HASHED:
            value = index_key(left, i, key)
            home = hash_key(value) >> high
            while True:
                entry = keys[home]
                if entry == NONE:
                    break
                if entry == value:
                    is_same = True
                    if key_width > 2:
                        first = first_row(slots, home, pool)
                        for c in range(key_width):
                            if rows[first, columns[c]] != left[i, key[c]]:
                                is_same = False
                    if is_same:
                        length = int64(slots[home, LENGTH])
                        place = int64(slots[home, PLACE])
                        break
                home = (home + ONE) & mask
        else:
            length = limit
        now = left[i, left_width - 2]
        before = left[i, left_width - 1]
        if is_negated:
            holds = True
            was = np_int32(0)
            if length > 0:
                marks = state_of(level, touched, place)
                holds = (view >> marks) & 1 != 0
                if not is_loss and marks & DELTA:
                    was = np_int32(ABSENT)
            if holds:
                if filled >= room:
                    state[NEXT] = i
                    state[WITHIN] = 0
                    state[FILLED] = filled
                    return
                for c in range(kept):
                    out[filled, keep_place[c]] = left[i, keep[c]]
                out[filled, out_width - 2] = now
                out[filled, out_width - 1] = max(before, was)
                filled += 1
            continue
        for j in range(first_within, length):
            row = place
            if kind == EVERY:
                row = int64(j)
            elif length > 1:
                row = int64(pool[place + j])
                if j + WITHIN_AHEAD < length:
                    later = int64(pool[place + j + WITHIN_AHEAD])
                    prefetch(flat_rows, later * width)
                    prefetch(level, later)
            if row >= limit:
                break
            if not (view >> state_of(level, touched, row)) & 1:
                skipped += 1
                continue
            if filled >= room:
                state[NEXT] = i
                state[WITHIN] = j
                state[FILLED] = filled
                state[SKIPPED] += skipped
                return
            for c in range(kept):
                out[filled, keep_place[c]] = left[i, keep[c]]
            copy_columns(rows, row, row, take, take_place, out, filled)
            out[filled, out_width - 2] = max(now, level_now(level, touched, row, is_loss, is_flat))
            out[filled, out_width - 1] = max(before, level_before(level, touched, row, is_loss, is_flat))
            filled += 1
        first_within = 0
        if skipped > MOST_SKIPPED:
            # Whoever called looks at limits before he goes on.
            state[NEXT] = i + 1
            state[WITHIN] = 0
            state[FILLED] = filled
            state[SKIPPED] += skipped
            return
    state[NEXT] = stop
    state[WITHIN] = 0
    state[FILLED] = filled
    state[SKIPPED] += skipped
