"""Compiled operators on a table of texts.

The texts lie one after the other in an array of bytes; `ends[i]` and `ends[i + 1]` are where text i begins and ends. A
slot table finds them: open addressing, one 64-bit word a slot, 0 when empty, else the low half of the text's hash above
its id + 1; the home slot is the high bits of the hash. Slots are filled up to 11/16.
"""

from __future__ import annotations

import numpy as np
from numpy import int64, uint64

from elastalog.jit import types
from elastalog.jit.intrinsics import eight_bytes, group_of_keys, prefetch, put_eight_bytes
from elastalog.jit.operators import FINISH, GROUP, HALF, LOW, NONE, ONE, inlined, mix, operator

BYTES = types.Array(types.uint8, 1)
GIVEN_BYTES = types.Array(types.uint8, 1, readonly=True)
PLACES = types.Array(types.int64, 1)
SLOTS = types.Array(types.uint64, 1)
IDS = types.Array(types.int32, 1)
FLAG = types.boolean
INT = types.int64

AT_ONCE = GROUP
"""Texts for which there must be room."""

# Fields of the state vector.
USED = 0  # texts in the table
NEXT = 1  # the next text of the column
NEEDED = 2  # bytes that the table lacks

_WORD = 8
_BYTE = np.uint64(8)


@inlined
def hash_text(data, start, end):
    """The hash of the bytes from start to end, by words of eight with zeros behind the last; nothing else is read."""
    value = NONE
    position = start
    while position + _WORD <= end:
        value = mix(value + eight_bytes(data, position))
        position += _WORD
    rest = end - position
    if rest > 0:
        last = NONE
        if end - start >= _WORD:
            last = eight_bytes(data, end - _WORD) >> (_BYTE * uint64(_WORD - rest))
        else:
            for place in range(rest):
                last |= uint64(data[position + place]) << (_BYTE * uint64(place))
        value = mix(value + last)
    return finished_hash(value, end - start)


@inlined
def finished_hash(value, size):
    """The hash of a text of `size` bytes, from the `value` that its words were mixed to."""
    return mix(value + uint64(size) * FINISH) * FINISH


@inlined
def is_same_text(left, left_start, right, right_start, size):
    is_same = True
    if size >= _WORD:
        position = 0
        while is_same and position + _WORD <= size:
            is_same = eight_bytes(left, left_start + position) == eight_bytes(right, right_start + position)
            position += _WORD
        if is_same and position < size:
            end = size - _WORD
            is_same = eight_bytes(left, left_start + end) == eight_bytes(right, right_start + end)
    else:
        for position in range(size):
            if left[left_start + position] != right[right_start + position]:
                is_same = False
    return is_same


@inlined
def copy_text(source, start, target, place, size):
    """Copies `size` bytes, eight at a time; the last eight may overlap with those before them."""
    if size >= _WORD:
        position = 0
        while position + _WORD <= size:
            put_eight_bytes(target, place + position, eight_bytes(source, start + position))
            position += _WORD
        put_eight_bytes(target, place + size - _WORD, eight_bytes(source, start + size - _WORD))
    else:
        for position in range(size):
            target[place + position] = source[start + position]


@operator(types.void, GIVEN_BYTES, PLACES, INT, INT, SLOTS, INT)
def enter(texts, ends, first, last, slots, shift):
    """Enters the texts with ids from first to last, which are not there yet, into a slot table with room for them."""
    mask = uint64(slots.shape[0] - 1)
    high = uint64(shift)
    homes = group_of_keys()
    tags = group_of_keys()
    text = first
    while text < last:
        size = min(GROUP, last - text)
        for g in range(size):
            value = hash_text(texts, ends[text + g], ends[text + g + 1])
            homes[g] = value >> high
            tags[g] = value & LOW
            prefetch(slots, int64(homes[g]))
        for g in range(size):
            slot = homes[g]
            while slots[slot] != NONE:
                slot = (slot + ONE) & mask
            slots[slot] = (tags[g] << HALF) | uint64(text + g + 1)
        text += size


@operator(
    types.void, GIVEN_BYTES, PLACES, PLACES, SLOTS, INT, INT, BYTES, PLACES, SLOTS, INT, FLAG, IDS, PLACES
)  # fmt: skip
def intern(data, begins, limits, hashes, start, stop, texts, ends, slots, shift, is_adding, ids, state):
    """The ids of the texts [start, stop) of a column, which lie from `begins` to `limits`; a text that the table lacks
    gets a new id if adding, else -1. `hashes` are theirs, or empty. Returns early, with NEXT and NEEDED, when the table
    is full."""
    mask = uint64(slots.shape[0] - 1)
    high = uint64(shift)
    is_hashed = hashes.shape[0] > 0
    used = state[USED]
    room = min(ends.shape[0] - 1, slots.shape[0] * 11 // 16)
    state[NEEDED] = 0
    tags = group_of_keys()
    found = group_of_keys()
    i = start
    while i < stop:
        size = min(GROUP, stop - i)
        if is_adding:
            needed = ends[used] - texts.shape[0]
            for g in range(size):
                needed += limits[i + g] - begins[i + g]
            if used + size > room or needed > 0:
                state[NEEDED] = max(needed, 0)
                break
        for g in range(size):
            value = hashes[i + g] if is_hashed else hash_text(data, begins[i + g], limits[i + g])
            tags[g] = value & LOW
            found[g] = value >> high
            prefetch(slots, int64(found[g]))
        for g in range(size):
            slot = found[g]
            entry = slots[slot]
            while entry != NONE and (entry >> HALF) != tags[g]:
                slot = (slot + ONE) & mask
                entry = slots[slot]
            found[g] = slot
            if entry != NONE:
                prefetch(ends, int64(entry & LOW) - 1)
        for g in range(size):
            entry = slots[found[g]]
            if entry != NONE:
                prefetch(texts, ends[int64(entry & LOW) - 1])
        for g in range(size):
            begin = begins[i + g]
            length = limits[i + g] - begin
            slot = found[g]
            ids[i + g] = -1
            while True:
                entry = slots[slot]
                if entry == NONE:
                    if is_adding:
                        slots[slot] = (tags[g] << HALF) | uint64(used + 1)
                        end = ends[used]
                        copy_text(data, begin, texts, end, length)
                        ids[i + g] = used
                        used += 1
                        ends[used] = end + length
                    break
                if (entry >> HALF) == tags[g]:
                    text = int64(entry & LOW) - 1
                    is_length = ends[text + 1] - ends[text] == length
                    if is_length and is_same_text(texts, ends[text], data, begin, length):
                        ids[i + g] = text
                        break
                slot = (slot + ONE) & mask
        i += size
    state[USED] = used
    state[NEXT] = i
