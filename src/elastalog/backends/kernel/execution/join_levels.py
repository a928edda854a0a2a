"""The join of incremental evaluation: atoms see a view of their relation, and bindings carry levels.

The last two words of every row of bindings are the highest level of the body so far, now and before. "Before" is the
previous epoch while losses are propagated; while gains are, it is the moment before the present delta settled. A fact
that was not there has level ABSENT.
"""

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
from elastalog.backends.kernel.store.annotations import ABSENT, DELTA, REFERENCE, UNTOUCHED, entry_of
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
    has_tag,
    row_in,
)

MEMBER = 3
"""How rows are found, besides DIRECT, HASHED and EVERY of `join`: by the set table, every column being bound."""

AHEAD = 16
"""How many rows before it is needed memory is asked for."""

WITHIN_AHEAD = 8
"""The same for the rows of a posting."""

LEVELS = 2
"""Words that every row of bindings carries behind its slots."""


MOST_SKIPPED = 1 << 16
"""Rows that may be looked at in vain in one call, those of one row of the left not counted."""


@inlined
def state_of(level, touched, row):  # type: ignore[no-untyped-def]
    """The marks of a row."""
    value = level[row]
    if value >= REFERENCE:
        return int64(entry_of(touched, value - REFERENCE).marks)
    return int64(UNTOUCHED) if value < ABSENT else int64(0)


@inlined
def level_now(level, touched, row, is_loss, is_flat):  # type: ignore[no-untyped-def]
    if is_flat:
        return np_int32(0)
    value = level[row]
    if value >= REFERENCE:
        return entry_now(entry_of(touched, value - REFERENCE), is_loss, is_flat)
    return value


@inlined
def level_before(level, touched, row, is_loss, is_flat):  # type: ignore[no-untyped-def]
    value = level[row]
    if value >= REFERENCE:
        return entry_before(entry_of(touched, value - REFERENCE), is_loss, is_flat)
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def entry_now(fact, is_loss, is_flat):  # type: ignore[no-untyped-def]
    if is_flat:
        return np_int32(0)
    return fact.old if is_loss else fact.new


@inlined
def entry_before(fact, is_loss, is_flat):  # type: ignore[no-untyped-def]
    if is_loss:
        value = fact.old
    elif fact.marks & DELTA:
        value = fact.other
    else:
        value = fact.new
    if is_flat and value < ABSENT:
        return np_int32(0)
    return value


@inlined
def copy_columns(rows, row, number, take, place, out, i):  # type: ignore[no-untyped-def]
    """Copies columns of a row of a relation to a row of bindings; column -1 is a number."""
    for c in range(take.shape[0]):
        out[i, place[c]] = rows[row, take[c]] if take[c] >= 0 else number


@inlined
def copy_fact(rows, row, level, touched, is_loss, is_flat, take, place, out, i):  # type: ignore[no-untyped-def]
    """The same with the levels of the fact; column -1 is the row."""
    copy_columns(rows, row, row, take, place, out, i)
    width = out.shape[1]
    out[i, width - 2] = level_now(level, touched, row, is_loss, is_flat)
    out[i, width - 1] = level_before(level, touched, row, is_loss, is_flat)


@inlined
def copy_entry(rows, fact, is_loss, is_flat, take, place, out, i):  # type: ignore[no-untyped-def]
    """The same of a touched fact, whose entry is at hand."""
    copy_columns(rows, int64(fact.row), int64(fact.row), take, place, out, i)
    width = out.shape[1]
    out[i, width - 2] = entry_now(fact, is_loss, is_flat)
    out[i, width - 1] = entry_before(fact, is_loss, is_flat)


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
    table_mask = uint64(table.shape[0] - 1)
    high = uint64(shift)
    flat_slots = flattened(slots)
    flat_rows = flattened(rows)
    width = rows.shape[1]
    if kind == MEMBER and not is_negated:
        _join_members(
            left, start, stop, key, table, high, rows, limit, level, touched, view, is_loss, is_flat, keep, keep_place,
            take, take_place, out, state,
        )  # fmt: skip
        return
    for i in range(start, stop):
        # What later rows will look at is asked for now: first where to look, then what is found there.
        if i + AHEAD < stop:
            if kind == MEMBER:
                prefetch(table, int64(hash_columns(left, i + AHEAD, key) >> high))
            elif kind == DIRECT:
                word = int64(left[i + AHEAD, key[0]])
                if word >= 0 and word < slots.shape[0]:
                    prefetch(flat_slots, word * SLOT_WIDTH)
            elif kind == HASHED:
                home = hash_key(index_key(left, i + AHEAD, key)) >> high
                prefetch(keys, int64(home))
                prefetch(flat_slots, int64(home) * SLOT_WIDTH)
            place = int64(-1)
            if kind == MEMBER:
                # Most slots hold another fact, whose row would only be in the way.
                value = hash_columns(left, i + AHEAD // 2, key)
                taken_slot = uint64(table[value >> high])
                if has_tag(taken_slot, value & LOW, table_mask):
                    place = row_in(taken_slot, table_mask)
            elif kind == DIRECT:
                word = int64(left[i + AHEAD // 2, key[0]])
                if word >= 0 and word < slots.shape[0]:
                    if slots[word, LENGTH] == 1:
                        place = int64(slots[word, PLACE])
                    elif slots[word, LENGTH] > 1:
                        prefetch(pool, int64(slots[word, PLACE]))
                word = int64(left[i + 1, key[0]])
                if word >= 0 and word < slots.shape[0]:
                    first = int64(slots[word, PLACE])
                    for j in range(min(int64(slots[word, LENGTH]), WITHIN_AHEAD) if slots[word, LENGTH] > 1 else 0):
                        prefetch(flat_rows, int64(pool[first + j]) * width)
                        prefetch(level, int64(pool[first + j]))
            if place >= 0:
                prefetch(flat_rows, place * width)
                prefetch(level, place)
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


@operator(types.void, WORDS, INT, INT, MATRIX, MATRIX, INT, FLAG, FLAG, FLAG, COLUMNS, COLUMNS, MATRIX, STATE)
def gather_entries(  # type: ignore[no-untyped-def]
    entries, start, stop, rows, touched, view, is_loss, is_flat, is_negated, take, place, out, state
):
    """Copies columns of the rows of touched entries that are in the view, with their levels."""
    filled = state[FILLED]
    width = out.shape[1]
    for i in range(start, stop):
        fact = entry_of(touched, entries[i])
        if not (view >> int64(fact.marks)) & 1:
            continue
        copy_entry(rows, fact, is_loss, is_flat, take, place, out, filled)
        if is_negated:
            out[filled, width - 2] = 0
            out[filled, width - 1] = 0 if is_loss else ABSENT
        filled += 1
    state[FILLED] = filled


@operator(types.void, WORDS, INT, INT, MATRIX, MATRIX, COLUMNS, COLUMNS, MATRIX)
def gather_heads(entries, start, stop, rows, touched, take, place, out):  # type: ignore[no-untyped-def]
    """Copies columns of the rows of touched entries as heads of backward evaluation: column -1 is the entry, levels are
    0."""
    width = out.shape[1]
    for i in range(start, stop):
        entry = entries[i]
        row = int64(entry_of(touched, entry).row)
        copy_columns(rows, row, entry, take, place, out, i - start)
        out[i - start, width - 2] = 0
        out[i - start, width - 1] = 0


@operator(types.void, MATRIX, INT, INT, WORDS, MATRIX, FLAG, COLUMNS, COLUMNS, MATRIX, STATE)
def gather_levels(rows, start, stop, level, touched, is_flat, take, place, out, state):  # type: ignore[no-untyped-def]
    """Copies columns of the present rows in [start, stop), with their levels."""
    filled = int64(0)
    room = out.shape[0]
    width = out.shape[1]
    i = start
    while i < stop and filled < room:
        now = level_now(level, touched, i, False, False)
        if now < ABSENT:
            copy_columns(rows, i, i, take, place, out, filled)
            if is_flat:
                now = np_int32(0)
            out[filled, width - 2] = now
            out[filled, width - 1] = now
            filled += 1
        i += 1
    state[NEXT] = i
    state[FILLED] = filled
