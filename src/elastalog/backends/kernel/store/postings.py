"""Operators on indexes: for a key, the rows that hold it, in ascending order.

An index is *direct* when its key is one column of small non-negative words: the slot is the word. Otherwise it is a
hash table of keys (exact for up to two columns, verified for more). Each slot has two numbers: where its rows are, and
how many. One row is kept in the slot itself; more are in a block of a pool, of size 4, or when that is full 6, 8, 12,
16, 24 and so on. Blocks that were left for larger ones are used again; when they are a third of the pool, the others
are moved together. Rows that come at once are *packed*: their blocks, at the front of the pool, have no room for more.
Since rows ascend, the facts before a round of semi-naive evaluation are a bound on row numbers.

Several threads extend an index together: each adds the rows of some keys, its *part*, which no other looks at. Words
that are neighbours belong to one part, so that threads do not write to the same lines of memory.

Behind the keys of a hash table lies a *filter*, four bits for every slot, one of which is set for each key. It tells
most keys that are not there, and lies near the processor where the keys do not.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FINISH,
    GROUP,
    INT,
    KEYS,
    MATRIX,
    NONE,
    ONE,
    STATE,
    WORDS,
    flattened,
    group_of_keys,
    group_of_numbers,
    hash_columns,
    inlined,
    int64,
    keys_at,
    matrix_at,
    mix,
    np_int32,
    numbers_at,
    operator,
    pack,
    piece,
    prefetch,
    types,
    uint32,
    uint64,
    words_at,
)
from elastalog.backends.kernel.store.annotations import facts_of, rows_of
from elastalog.backends.kernel.store.memory import index_descriptor_at, relation_descriptor_at
from elastalog.backends.kernel.store.set_table import is_present
from elastalog.jit.atomics import add_unordered, compare_and_swap, or_unordered
from elastalog.jit.intrinsics import behind
from elastalog.jit.operators import view

DIRECT, HASHED, EVERY = range(3)
"""How postings are found: by word, by key, or all rows of the relation (a cross product)."""

# Columns of a slot.
PLACE, LENGTH = range(2)
SLOT_WIDTH = 2

# Fields of the state vector, in common.
POOL_USED = 1
KEYS_USED = 2
PACKED = 3  # blocks before this place are packed

# Of each part, one after the other.
LEFT = 4  # places of the pool in blocks that were left
STRIP, STRIP_END = 5, 6  # places of the pool that are for blocks of the part
WISH = 7  # what was full when rows were last added
FREE = 8  # and the following: of blocks of each size that were left, the first one's place + 1; it holds the next one's
INDEX_STATE_SIZE = FREE + 64

KEYS_FULL, POOL_FULL = 1, 2
"""A key has no slot, or would have too many neighbours; a block has no place."""

_MOST_FILTERED = 1 << 20
"""Keys up to which the filter is looked at: that of more is not near either."""

_AHEAD = 12
_UNPLACED = -1
_FIRST_BLOCK = 4
STRIP_LENGTH = 1 << 9
"""Places of the pool that a part takes at a time, where there are several."""

_TWO, _FOUR, _SIX, _WITHIN = np.uint64(2), np.uint64(4), np.uint64(6), np.uint64(63)
_SIXTEEN, _HIGH_BITS = np.uint64(16), np.uint64(48)
_NO_PAIR = np.uint64(0x8000_0000_8000_0000)
"""Two words that no value has (see `relations.words`)."""


Postings = namedtuple("Postings", "kind keys shift slots pool columns")
"""The arrays of an index, as compiled code holds them."""


@view
def postings_of(index):
    """What the descriptor of an index leads to."""
    return Postings(
        index.kind,
        keys_at(index.keys, index.keys_size),
        index.shift,
        matrix_at(index.slots, index.slots_size, SLOT_WIDTH),
        words_at(index.pool, index.pool_size),
        numbers_at(index.columns, index.columns_number),
    )


@inlined
def index_key(rows, row, columns):
    """The key of some columns, never 0: exact for up to two columns, a hash for more."""
    width = columns.shape[0]
    if width == 1:
        return uint64(uint32(rows[row, columns[0]])) + ONE
    if width == 2:
        # Not + 1 as above: that is 0 for two words -1.
        return pack(rows[row, columns[0]], rows[row, columns[1]]) ^ _NO_PAIR
    return hash_columns(rows, row, columns) | ONE


@inlined
def hash_key(key):
    return mix(key) * FINISH


@inlined
def _bit_of(value, high):
    """The bit of a filter that a hash leads to, by number: of each slot there are four."""
    return value >> (high - _TWO)


@inlined
def row_at(index, slot, number):
    """One of the rows of a slot."""
    place = int64(index.slots[slot, PLACE])
    return place if index.slots[slot, LENGTH] == 1 else int64(index.pool[place + number])


@inlined
def find_home(block, i, key, value, home, index, rows):
    """The slot of the words in columns `key` of a row of a block, whose key is `value`, or the empty one that they
    would take: hashes are verified."""
    mask = uint64(index.keys.shape[0] - 1)
    while True:
        entry = index.keys[home]
        if entry == NONE:
            return home
        if entry == value:
            is_same = True
            if key.shape[0] > 2:
                first = row_at(index, home, 0)
                for c in range(key.shape[0]):
                    if rows[first, index.columns[c]] != block[i, key[c]]:
                        is_same = False
            if is_same:
                return home
        home = (home + ONE) & mask


@inlined
def find_slot(block, i, key, value, home, index, rows):
    """The slot of the words in columns `key` of a row of a block, -1 if there is none."""
    home = find_home(block, i, key, value, home, index, rows)
    return int64(home) if index.keys[home] != NONE else int64(-1)


@inlined
def find_slot_of(block, i, key, index, rows):
    """The slot that the key of a row leads to, by word or by key; -1 if there is none."""
    if index.kind == DIRECT:
        word = int64(block[i, key[0]])
        return word if word >= 0 and word < index.slots.shape[0] else int64(-1)
    value = index_key(block, i, key)
    return find_slot(block, i, key, value, hash_key(value) >> uint64(index.shift), index, rows)


@inlined
def find_slots(block, start, size, key, index, rows, found):
    """The slots that the keys of a group of rows lead to. Prefetches all of them before it looks at the first."""
    slots = index.slots
    if index.kind == DIRECT:
        for g in range(size):
            word = int64(block[start + g, key[0]])
            if word < 0 or word >= slots.shape[0]:
                word = int64(-1)
            else:
                prefetch(flattened(slots), word * SLOT_WIDTH)
            found[g] = word
    else:
        high = uint64(index.shift)
        is_filtered = index.keys.shape[0] <= _MOST_FILTERED
        bits = behind(index.keys)
        wanted = group_of_keys()
        for g in range(size):
            wanted[g] = index_key(block, start + g, key)
            value = hash_key(wanted[g])
            bit = _bit_of(value, high)
            found[g] = int64(value >> high)
            if is_filtered and not (bits[int64(bit >> _SIX)] >> (bit & _WITHIN)) & ONE:
                found[g] = int64(-1)
            else:
                prefetch(index.keys, found[g])
                prefetch(flattened(slots), found[g] * SLOT_WIDTH)
        for g in range(size):
            if found[g] >= 0:
                home = uint64(found[g])
                found[g] = find_slot(block, start + g, key, wanted[g], home, index, rows)


@inlined
def _part_of(value, parts):
    """The part to which a key belongs, given by a number whose high bits are spread well: in a table of keys, a range
    of slots."""
    return int64((value >> _HIGH_BITS) * uint64(parts) >> _SIXTEEN)


@inlined
def _is_of(part, value):
    return part.parts == 1 or _part_of(value, part.parts) == part.number


_Part = namedtuple("_Part", "number parts")
"""One of `parts` parts of the keys; each thread adds rows to its own part only."""

_Group = namedtuple("_Group", "rows keys homes")
"""Rows that are added together, their keys, and what these hash to; words instead where these are slots."""


@inlined
def _take_group(rows, row, stop, index, part, group):
    """The next rows that belong to a part; asks for the memory of their slots. Returns how many, and the row after
    them."""
    columns = index.columns
    slots = index.slots
    high = uint64(index.shift)
    is_direct = index.kind == DIRECT
    size = int64(0)
    while row < stop and size < GROUP:
        if is_direct:
            word = uint64(int64(rows[row, columns[0]]))
            if _is_of(part, (word >> _FOUR) * FINISH):
                group.rows[size] = uint64(row)
                group.homes[size] = word
                if word < uint64(slots.shape[0]):
                    prefetch(flattened(slots), int64(word) * SLOT_WIDTH)
                size += 1
        else:
            key = index_key(rows, row, columns)
            value = hash_key(key)
            if _is_of(part, value):
                group.rows[size] = uint64(row)
                group.keys[size] = key
                group.homes[size] = value
                prefetch(index.keys, int64(value >> high))
                prefetch(flattened(slots), int64(value >> high) * SLOT_WIDTH)
                size += 1
        row += 1
    return size, row


@inlined
def _enter_key(rows, row, key, value, index, parts):
    """The slot of a row's key, which is entered if it is new, and whether it was. Others enter other keys at the same
    time if there are parts."""
    keys = index.keys
    high = uint64(index.shift)
    home = value >> high
    while True:
        home = find_home(rows, row, index.columns, key, home, index, rows)
        if keys[home] == key:
            return int64(home), False
        if parts == 1:
            keys[home] = key
            break
        # Another key may take the slot, or have taken it by now.
        if compare_and_swap(keys, int64(home), NONE, key) == NONE:
            break
    bit = _bit_of(value, high)
    if parts == 1:
        behind(keys)[int64(bit >> _SIX)] |= ONE << (bit & _WITHIN)
    else:
        or_unordered(behind(keys), int64(bit >> _SIX), ONE << (bit & _WITHIN))
    return int64(home), True


@inlined
def _granted(keys, state):
    """How many more keys a thread may enter, which count as used: 0 if the table is full enough."""
    more = int64(1) + (keys.shape[0] >> 10)
    if add_unordered(state, KEYS_USED, more) + more <= keys.shape[0] * 5 // 8:
        return more
    add_unordered(state, KEYS_USED, -more)
    return int64(0)


@inlined
def _block_of(state, own, kind, size, pool, parts):
    """A block of the pool for a part: one that was left, or a new one; -1 if there is no room."""
    wider = state[own + FREE + kind] - 1
    if wider >= 0:
        state[own + FREE + kind] = pool[wider]
        state[own + LEFT] -= size
        return wider
    if parts == 1:
        wider = state[POOL_USED]
        if wider + size > pool.shape[0]:
            return int64(-1)
        state[POOL_USED] += size
        return wider
    if state[own + STRIP] + size > state[own + STRIP_END]:
        length = max(size, STRIP_LENGTH)
        strip = add_unordered(state, POOL_USED, length)
        if strip + length > pool.shape[0]:
            add_unordered(state, POOL_USED, -length)
            return int64(-1)
        state[own + STRIP] = strip
        state[own + STRIP_END] = strip + length
    wider = state[own + STRIP]
    state[own + STRIP] += size
    return wider


@operator(INT, INT, MATRIX, INT, INT, INT, INT)
def append(address, rows, start, stop, part, parts):
    """`append_rows` to the index whose descriptor is at an address."""
    return append_rows(index_descriptor_at(address, 0), rows, start, stop, part, parts)


@piece
def append_rows(home, rows, start, stop, part, parts):
    """Adds those of the rows [start, stop) whose keys belong to `part` of `parts`, each of which a thread of its own
    may add; returns the first row not added, because something is full."""
    index = postings_of(home)
    slots = index.slots
    pool = index.pool
    is_direct = index.kind == DIRECT
    state = numbers_at(home.state, home.state_size)
    own = part * INDEX_STATE_SIZE
    packed = state[PACKED]
    granted = entered = int64(0)
    group = _Group(group_of_keys(), group_of_keys(), group_of_keys())
    row = start
    is_full = False
    while row < stop and not is_full:
        size, following = _take_group(rows, row, stop, index, _Part(part, parts), group)
        for g in range(size):
            at = int64(group.rows[g])
            slot = int64(group.homes[g])
            if is_direct:
                is_full = group.homes[g] >= uint64(slots.shape[0])
            elif entered == granted:
                granted += _granted(index.keys, state)
                is_full = entered == granted
            if not is_full and not is_direct:
                slot, is_new = _enter_key(rows, at, group.keys[g], group.homes[g], index, parts)
                entered += is_new
            if is_full:
                state[own + WISH] = KEYS_FULL
                following = at
                break
            length = int64(slots[slot, LENGTH])
            if length == 0:
                slots[slot, PLACE] = at
                slots[slot, LENGTH] = 1
                continue
            place = int64(slots[slot, PLACE])
            lowest = length & -length
            if length == 1 or place < packed or (length >= _FIRST_BLOCK and (length == lowest or length == 3 * lowest)):
                room = int64(_FIRST_BLOCK)
                kind = 0  # of sizes, this one
                while room <= length:
                    room = room // 3 * 4 if kind & 1 else room // 2 * 3
                    kind += 1
                wider = _block_of(state, own, kind, room, pool, parts)
                if wider < 0:
                    is_full = True
                    state[own + WISH] = POOL_FULL
                    following = at
                    break
                if length == 1:
                    pool[wider] = place
                else:
                    for j in range(length):
                        pool[wider + j] = pool[place + j]
                    state[own + LEFT] += length
                    if kind > 0:
                        pool[place] = state[own + FREE + kind - 1]
                        state[own + FREE + kind - 1] = place + 1
                slots[slot, PLACE] = wider
                place = wider
            pool[place + length] = at
            slots[slot, LENGTH] = length + 1
        row = following
    add_unordered(state, KEYS_USED, entered - granted)
    return row


@inlined
def _size_for(length):
    """The size of the smallest block for `length` rows."""
    size = int64(_FIRST_BLOCK)
    while size < length:
        larger = size // 2 * 3
        size = larger if larger >= length else size * 2
    return size


@operator(INT, MATRIX)
def room_for_blocks(slots):
    """How long a pool must be that `move_together` fills."""
    room = int64(0)
    for slot in range(slots.shape[0]):
        if slots[slot, LENGTH] > 1:
            room += _size_for(slots[slot, LENGTH])
    return room


@operator(types.void, MATRIX, WORDS, WORDS, STATE)
def move_together(slots, pool, other, state):
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
    keys_used = state[KEYS_USED]
    for i in range(state.shape[0]):
        state[i] = 0
    state[KEYS_USED] = keys_used
    state[POOL_USED] = used


@operator(types.void, MATRIX, INT, INT, INT, COLUMNS)
def extent(rows, start, stop, column, found):
    """The least and the greatest word of the rows [start, stop), or what was found before."""
    least, greatest = found[0], found[1]
    for row in range(start, stop):
        word = int64(rows[row, column])
        least = min(least, word)
        greatest = max(greatest, word)
    found[0], found[1] = least, greatest


@operator(types.void, MATRIX, INT, INT, COLUMNS, KEYS)
def mark_keys(rows, start, stop, columns, marks):
    """Sets a bit for every key that the rows [start, stop) have, and often the same for a few."""
    mask = uint64(marks.shape[0] * 64 - 1)
    for row in range(start, stop):
        bit = (hash_key(index_key(rows, row, columns)) >> _SIXTEEN) & mask
        place, flag = int64(bit >> _SIX), ONE << (bit & _WITHIN)
        if marks[place] & flag == 0:
            or_unordered(marks, place, flag)


@operator(types.boolean, MATRIX, INT, INT, INT, WORDS)
def count_words(rows, start, stop, column, counts):
    """Counts the rows [start, stop) by a word; False if one has no place."""
    for row in range(start, stop):
        word = uint64(int64(rows[row, column]))
        if word >= uint64(counts.shape[0]):
            return False
        counts[word] += 1
    return True


@operator(INT, MATRIX, MATRIX)
def lay_out_words(counts, slots):
    """Gives the words that were counted, in ranges of rows one after the other, their blocks. `counts` are from now on
    the places where the next row of each range goes. Returns where the blocks end."""
    end = int64(0)
    for slot in range(slots.shape[0]):
        first = end
        length = int64(0)
        for part in range(counts.shape[0]):
            number = counts[part, slot]
            counts[part, slot] = first + length
            length += number
        slots[slot, PLACE] = first
        slots[slot, LENGTH] = length
        if length > 1:
            end += length
    return end


@operator(types.void, MATRIX, INT, INT, INT, WORDS, MATRIX, WORDS)
def fill_words(rows, start, stop, column, places, slots, pool):
    """Writes the rows [start, stop) into the blocks laid out for them."""
    for row in range(start, stop):
        if row + 2 * _AHEAD < stop:
            prefetch(flattened(slots), int64(rows[row + 2 * _AHEAD, column]) * SLOT_WIDTH)
            prefetch(places, int64(rows[row + 2 * _AHEAD, column]))
            prefetch(pool, int64(places[rows[row + _AHEAD, column]]))
        word = rows[row, column]
        if slots[word, LENGTH] > 1:
            pool[places[word]] = row
            places[word] += 1
        else:
            slots[word, PLACE] = row


@operator(types.void, INT, MATRIX, INT, INT, COLUMNS, WORDS)
def list_by_part(address, rows, start, stop, places, listed):
    """Lists the rows [start, stop) by the parts that their keys belong to, at the next place of each, unless there is
    no list: then they are counted."""
    columns = postings_of(index_descriptor_at(address, 0)).columns
    is_counting = listed.shape[0] == 0
    for row in range(start, stop):
        part = _part_of(hash_key(index_key(rows, row, columns)), places.shape[0])
        if not is_counting:
            listed[places[part]] = row
        places[part] += 1


@operator(INT, INT, MATRIX, WORDS, WORDS, INT)
def measure(address, rows, listed, found, parts):
    """Counts rows, those listed of one of the `parts`, under their keys, of at most two columns; `found` are the slots
    that these have. `PLACE` of a slot with one row is that, and of one with several `_UNPLACED`. Returns how long the
    blocks of several are together, -1 if the table of keys is full."""
    home = index_descriptor_at(address, 0)
    index = postings_of(home)
    slots = index.slots
    state = numbers_at(home.state, home.state_size)
    length = granted = entered = int64(0)
    keys, homes = group_of_keys(), group_of_keys()
    for start in range(0, listed.shape[0], GROUP):
        size = min(GROUP, listed.shape[0] - start)
        for g in range(size):
            keys[g] = index_key(rows, listed[start + g], index.columns)
            homes[g] = hash_key(keys[g])
            prefetch(index.keys, int64(homes[g] >> uint64(index.shift)))
            prefetch(flattened(slots), int64(homes[g] >> uint64(index.shift)) * SLOT_WIDTH)
        for g in range(size):
            if entered == granted:
                granted += _granted(index.keys, state)
                if entered == granted:
                    return int64(-1)
            row = listed[start + g]
            slot, is_new = _enter_key(rows, row, keys[g], homes[g], index, parts)
            found[start + g] = slot
            entered += is_new
            if is_new:
                slots[slot, PLACE] = row
            else:
                length += 2 if slots[slot, LENGTH] == 1 else 1
                slots[slot, PLACE] = _UNPLACED
            slots[slot, LENGTH] += 1
    add_unordered(state, KEYS_USED, entered - granted)
    return length


@operator(types.void, INT, WORDS, WORDS, INT)
def fill(address, listed, found, end):
    """Writes the rows that were measured, the last first, into blocks, the last of which ends at `end`."""
    index = postings_of(index_descriptor_at(address, 0))
    slots = index.slots
    for i in range(listed.shape[0] - 1, -1, -1):
        prefetch(flattened(slots), int64(found[max(i - _AHEAD, 0)]) * SLOT_WIDTH)
        slot = found[i]
        if slots[slot, LENGTH] > 1:
            place = int64(slots[slot, PLACE])
            if place == _UNPLACED:
                place = end
                end -= slots[slot, LENGTH]
            index.pool[place - 1] = listed[i]
            slots[slot, PLACE] = place - 1


@operator(INT, INT, INT, MATRIX, COLUMNS, WORDS)
def find_keys(address, relation, block, key, found):
    """The slot in an index of the words in columns `key` of each row of a block, -1 where there is none. Returns how
    many rows these slots have, those of absent facts included."""
    index = postings_of(index_descriptor_at(address, 0))
    rows = rows_of(relation_descriptor_at(relation, 0))
    group = group_of_numbers()
    number = int64(0)
    for start in range(0, block.shape[0], GROUP):
        size = min(GROUP, block.shape[0] - start)
        find_slots(block, start, size, key, index, rows, group)
        for g in range(size):
            found[start + g] = group[g]
            if group[g] >= 0:
                number += index.slots[group[g], LENGTH]
    return number


@operator(INT, INT, INT, WORDS, MATRIX)
def rows_in_slots(address, relation, slots, found):
    """The present rows of some slots, -1 for none, each below the place of its slot among them. Returns how many."""
    index = postings_of(index_descriptor_at(address, 0))
    home = relation_descriptor_at(relation, 0)
    facts = facts_of(home)
    is_checked = home.is_settled == 0
    number = int64(0)
    for i in range(slots.shape[0]):
        length = index.slots[slots[i], LENGTH] if slots[i] >= 0 else np_int32(0)
        for j in range(length):
            row = row_at(index, slots[i], j)
            if not is_checked or is_present(facts, row):
                found[0, number] = i
                found[1, number] = row
                number += 1
    return number


@operator(types.void, KEYS, MATRIX, KEYS, MATRIX, INT)
def grow(keys, slots, wider_keys, wider_slots, shift):
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
            bit = _bit_of(value, high)
            behind(wider_keys)[int64(bit >> _SIX)] |= ONE << (bit & _WITHIN)
            for c in range(SLOT_WIDTH):
                wider_slots[home, c] = slots[i, c]
