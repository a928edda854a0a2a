"""Operators on indexes: for a key, the rows that hold it, in ascending order.

An index is *direct* when its key is one column of small non-negative words: the slot is the word. Otherwise it is a
hash table of keys (exact for up to two columns, verified for more). Each slot has two numbers: where its rows are, and
how many. One row is kept in the slot itself; more are in a block of a pool, of size 4, or when that is full 6, 8, 12,
16, 24 and so on. Blocks that were left for larger ones are used again; when they are a third of the pool, the others
are moved together. Rows that come at once are *packed*: their blocks, at the front of the pool, have no room for more.
Since rows ascend, the facts before a round of semi-naive evaluation are a bound on row numbers.

Behind the keys of a hash table lies a *filter*, four bits for every slot, one of which is set for each key. It tells
most keys that are not there, and lies near the processor where the keys do not.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FINISH,
    FLAG,
    INT,
    KEYS,
    MATRIX,
    NONE,
    ONE,
    STATE,
    WORDS,
    flattened,
    hash_columns,
    inlined,
    int64,
    mix,
    np_int32,
    operator,
    pack,
    prefetch,
    types,
    uint32,
    uint64,
)
from elastalog.jit.intrinsics import behind

DIRECT, HASHED, EVERY = range(3)
"""How postings are found: by word, by key, or all rows of the relation (a cross product)."""

# Columns of a slot.
PLACE, LENGTH = range(2)
SLOT_WIDTH = 2

# Fields of the state vector.
LEFT = 4  # places of the pool in blocks that were left
POOL_USED = 5
KEYS_USED = 6
PACKED = 7  # blocks before this place are packed
FREE = 8  # and the following: of blocks of each size that were left, the first one's place + 1; it holds the next one's
INDEX_STATE_SIZE = FREE + 64

_MOST_FILTERED = 1 << 20
"""Keys up to which the filter is looked at: that of more is not near either."""

_AHEAD = 12
_FIRST_BLOCK = 4
_TWO, _SIX, _WITHIN = np.uint64(2), np.uint64(6), np.uint64(63)
_NO_PAIR = np.uint64(0x8000_0000_8000_0000)
"""Two words that no value has (see `relations.words`)."""


@inlined
def index_key(rows, row, columns):  # type: ignore[no-untyped-def]
    """The key of some columns, never 0: exact for up to two columns, a hash for more."""
    width = columns.shape[0]
    if width == 1:
        return uint64(uint32(rows[row, columns[0]])) + ONE
    if width == 2:
        # Not + 1 as above: that is 0 for two words -1.
        return pack(rows[row, columns[0]], rows[row, columns[1]]) ^ _NO_PAIR
    return hash_columns(rows, row, columns) | ONE


@inlined
def hash_key(key):  # type: ignore[no-untyped-def]
    return mix(key) * FINISH


@inlined
def _bit_of(value, high):  # type: ignore[no-untyped-def]
    """The bit of a filter that a hash leads to, by number: of each slot there are four."""
    return value >> (high - _TWO)


@inlined
def _note(keys, value, high):  # type: ignore[no-untyped-def]
    """Sets the bit of a key, given by its hash."""
    bit = _bit_of(value, high)
    behind(keys)[int64(bit >> _SIX)] |= ONE << (bit & _WITHIN)


@inlined
def first_row(slots, slot, pool):  # type: ignore[no-untyped-def]
    """The first row of a slot that is in use: it verifies a hashed key."""
    place = slots[slot, PLACE]
    return int64(place) if slots[slot, LENGTH] == 1 else int64(pool[place])


@inlined
def find_key(key, home, keys):  # type: ignore[no-untyped-def]
    """The slot of an exact key, looked for from its home on, or the empty one that it would take."""
    mask = uint64(keys.shape[0] - 1)
    while keys[home] != key and keys[home] != NONE:
        home = (home + ONE) & mask
    return home


@inlined
def find_home(block, i, key, value, home, keys, slots, pool, rows, columns):  # type: ignore[no-untyped-def]
    """The same for the words in columns `key` of a row of a block, whose key is `value`: hashes are verified."""
    mask = uint64(keys.shape[0] - 1)
    while True:
        entry = keys[home]
        if entry == NONE:
            return home
        if entry == value:
            is_same = True
            if key.shape[0] > 2:
                first = first_row(slots, home, pool)
                for c in range(key.shape[0]):
                    if rows[first, columns[c]] != block[i, key[c]]:
                        is_same = False
            if is_same:
                return home
        home = (home + ONE) & mask


@inlined
def find_slot(block, i, key, value, home, keys, slots, pool, rows, columns):  # type: ignore[no-untyped-def]
    """The same, but -1 if there is none."""
    home = find_home(block, i, key, value, home, keys, slots, pool, rows, columns)
    return int64(home) if keys[home] != NONE else int64(-1)


@inlined
def _fetch_by_word(rows, row, stop, columns, slots):  # type: ignore[no-untyped-def]
    """Asks for the memory of the slot that a later row leads to by its word."""
    if row + _AHEAD < stop:
        prefetch(flattened(slots), int64(rows[row + _AHEAD, columns[0]]) * SLOT_WIDTH)


@inlined
def _fetch_by_key(rows, row, stop, columns, keys, high, slots):  # type: ignore[no-untyped-def]
    """The same by its key."""
    if row + _AHEAD < stop:
        home = int64(hash_key(index_key(rows, row + _AHEAD, columns)) >> high)
        prefetch(keys, home)
        prefetch(flattened(slots), home * SLOT_WIDTH)


@inlined
def find_slot_of(block, i, key, kind, keys, shift, slots, pool, rows, columns):  # type: ignore[no-untyped-def]
    """The slot that the key of a row leads to, by word or by key; -1 if there is none."""
    if kind == DIRECT:
        word = int64(block[i, key[0]])
        return word if word >= 0 and word < slots.shape[0] else int64(-1)
    value = index_key(block, i, key)
    return find_slot(block, i, key, value, hash_key(value) >> uint64(shift), keys, slots, pool, rows, columns)


@inlined
def find_slots(  # type: ignore[no-untyped-def]
    block, start, size, key, kind, keys, shift, slots, pool, rows, columns, found, wanted
):
    """The same for a group of rows. Asks for the memory of all slots before it looks at the first."""
    if kind == DIRECT:
        for g in range(size):
            word = int64(block[start + g, key[0]])
            if word < 0 or word >= slots.shape[0]:
                word = int64(-1)
            else:
                prefetch(flattened(slots), word * SLOT_WIDTH)
            found[g] = word
    else:
        high = uint64(shift)
        is_filtered = keys.shape[0] <= _MOST_FILTERED
        bits = behind(keys)
        for g in range(size):
            wanted[g] = index_key(block, start + g, key)
            value = hash_key(wanted[g])
            bit = _bit_of(value, high)
            found[g] = int64(value >> high)
            if is_filtered and not (bits[int64(bit >> _SIX)] >> (bit & _WITHIN)) & ONE:
                found[g] = int64(-1)
            else:
                prefetch(keys, found[g])
                prefetch(flattened(slots), found[g] * SLOT_WIDTH)
        for g in range(size):
            if found[g] >= 0:
                home = uint64(found[g])
                found[g] = find_slot(block, start + g, key, wanted[g], home, keys, slots, pool, rows, columns)


@operator(INT, MATRIX, INT, INT, COLUMNS, FLAG, KEYS, INT, MATRIX, WORDS, STATE)
def append(rows, start, stop, columns, is_direct, keys, shift, slots, pool, state):  # type: ignore[no-untyped-def]
    """Adds rows [start, stop); returns the first row not added, because something is full."""
    pool_used = state[POOL_USED]
    packed = state[PACKED]
    left = state[LEFT]
    keys_used = state[KEYS_USED]
    limit = keys.shape[0] * 5 // 8
    high = uint64(shift)
    row = start
    while row < stop:
        if is_direct:
            _fetch_by_word(rows, row, stop, columns, slots)
            slot = int64(rows[row, columns[0]])
            if slot < 0 or slot >= slots.shape[0]:
                break
        else:
            if keys_used >= limit:
                break
            _fetch_by_key(rows, row, stop, columns, keys, high, slots)
            key = index_key(rows, row, columns)
            value = hash_key(key)
            home = find_home(rows, row, columns, key, value >> high, keys, slots, pool, rows, columns)
            if keys[home] == NONE:
                keys[home] = key
                _note(keys, value, high)
                keys_used += 1
            slot = int64(home)
        length = slots[slot, LENGTH]
        if length == 0:
            slots[slot, PLACE] = row
            slots[slot, LENGTH] = 1
        else:
            place = slots[slot, PLACE]
            lowest = length & -length
            if length == 1 or place < packed or (length >= _FIRST_BLOCK and (length == lowest or length == 3 * lowest)):
                size = _FIRST_BLOCK
                kind = 0  # of sizes, this one
                while size <= length:
                    size = size // 3 * 4 if kind & 1 else size // 2 * 3
                    kind += 1
                wider = state[FREE + kind] - 1
                if wider >= 0:
                    state[FREE + kind] = pool[wider]
                    left -= size
                elif pool_used + size <= pool.shape[0]:
                    wider = pool_used
                    pool_used += size
                else:
                    break
                if length == 1:
                    pool[wider] = place
                else:
                    for j in range(length):
                        pool[wider + j] = pool[place + j]
                    left += length
                    if kind > 0:
                        pool[place] = state[FREE + kind - 1]
                        state[FREE + kind - 1] = place + 1
                slots[slot, PLACE] = wider
                place = np_int32(wider)
            pool[place + length] = row
            slots[slot, LENGTH] = length + 1
        row += 1
    state[POOL_USED] = pool_used
    state[LEFT] = left
    state[KEYS_USED] = keys_used
    return row


@inlined
def _size_for(length):  # type: ignore[no-untyped-def]
    """Of the smallest block for so many rows."""
    size = int64(_FIRST_BLOCK)
    while size < length:
        larger = size // 2 * 3
        size = larger if larger >= length else size * 2
    return size


@operator(INT, MATRIX)
def room_for_blocks(slots):  # type: ignore[no-untyped-def]
    """How long a pool must be that `move_together` fills."""
    room = int64(0)
    for slot in range(slots.shape[0]):
        if slots[slot, LENGTH] > 1:
            room += _size_for(slots[slot, LENGTH])
    return room


@operator(types.void, MATRIX, WORDS, WORDS, STATE)
def move_together(slots, pool, other, state):  # type: ignore[no-untyped-def]
    """Copies all blocks to another pool, in which none has been left and none is packed."""
    used = int64(0)
    for slot in range(slots.shape[0]):
        length = slots[slot, LENGTH]
        if length > 1:
            place = slots[slot, PLACE]
            for j in range(length):
                other[used + j] = pool[place + j]
            slots[slot, PLACE] = used
            used += _size_for(length)
    for i in range(FREE, state.shape[0]):
        state[i] = 0
    state[PACKED] = 0
    state[LEFT] = 0
    state[POOL_USED] = used


@operator(INT, MATRIX, INT, INT, COLUMNS, FLAG, KEYS, INT, MATRIX, STATE)
def measure(rows, start, stop, columns, is_direct, keys, shift, slots, state):  # type: ignore[no-untyped-def]
    """Counts the rows [start, stop) under their keys, of at most two columns, and notes the first of each; returns the
    first row not counted, because the table of keys is full, or a word has no slot."""
    keys_used = state[KEYS_USED]
    limit = keys.shape[0] * 5 // 8
    high = uint64(shift)
    row = start
    while row < stop:
        if is_direct:
            _fetch_by_word(rows, row, stop, columns, slots)
            slot = int64(rows[row, columns[0]])
            if slot < 0 or slot >= slots.shape[0]:
                break
        else:
            if keys_used >= limit:
                break
            _fetch_by_key(rows, row, stop, columns, keys, high, slots)
            key = index_key(rows, row, columns)
            value = hash_key(key)
            home = find_key(key, value >> high, keys)
            if keys[home] == NONE:
                keys[home] = key
                _note(keys, value, high)
                keys_used += 1
            slot = int64(home)
        if slots[slot, LENGTH] == 0:
            slots[slot, PLACE] = row
        slots[slot, LENGTH] += 1
        row += 1
    state[KEYS_USED] = keys_used
    return row


@operator(INT, MATRIX)
def lay_out(slots):  # type: ignore[no-untyped-def]
    """Gives the keys that were measured, and have more than one row, their blocks; returns where these end."""
    end = int64(0)
    for slot in range(slots.shape[0]):
        if slots[slot, LENGTH] > 1:
            slots[slot, PLACE] = end
            end += slots[slot, LENGTH]
    return end


@operator(types.void, MATRIX, INT, COLUMNS, FLAG, KEYS, INT, MATRIX, WORDS)
def fill(rows, stop, columns, is_direct, keys, shift, slots, pool):  # type: ignore[no-untyped-def]
    """Writes rows [0, stop), which were measured, into the blocks laid out for them."""
    high = uint64(shift)
    for row in range(stop):
        if is_direct:
            _fetch_by_word(rows, row, stop, columns, slots)
            slot = int64(rows[row, columns[0]])
        else:
            _fetch_by_key(rows, row, stop, columns, keys, high, slots)
            key = index_key(rows, row, columns)
            slot = int64(find_key(key, hash_key(key) >> high, keys))
        if slots[slot, LENGTH] > 1:
            pool[slots[slot, PLACE]] = row
            slots[slot, PLACE] += 1
    for slot in range(slots.shape[0]):
        if slots[slot, LENGTH] > 1:
            slots[slot, PLACE] -= slots[slot, LENGTH]


@operator(types.void, KEYS, MATRIX, KEYS, MATRIX, INT)
def grow(keys, slots, wider_keys, wider_slots, shift):  # type: ignore[no-untyped-def]
    """Moves a hash table of keys into a wider, empty one."""
    mask = uint64(wider_keys.shape[0] - 1)
    high = uint64(shift)
    for i in range(keys.shape[0]):
        if keys[i] != NONE:
            value = hash_key(keys[i])
            home = value >> high
            while wider_keys[home] != NONE:
                home = (home + ONE) & mask
            wider_keys[home] = keys[i]
            _note(wider_keys, value, high)
            for c in range(SLOT_WIDTH):
                wider_slots[home, c] = slots[i, c]
