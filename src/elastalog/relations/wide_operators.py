"""Compiled operators on the wide table: blocks of patterns, and records, which are chains of patterns.

`patterns[i]` is the pattern with id i; slots hold ids, -1 when empty; the home slot of a pattern is the high bits of
its hash. Another thread may be adding patterns: an id beyond `patterns`, or one whose pattern is not seen yet, counts
as absent, and whoever adds looks again under the lock.
"""

from __future__ import annotations

import numpy as np
from numpy import int64, uint64

from elastalog.jit import types
from elastalog.jit.intrinsics import group_of_keys, prefetch
from elastalog.jit.operators import GROUP, HALF, LOW, inlined, operator

PATTERNS = types.Array(types.int64, 1)
GIVEN = types.Array(types.int64, 1, readonly=True)
SLOTS = types.Array(types.int32, 1)
IDS = types.Array(types.int32, 1)
PARTS = types.Array(types.int32, 2)
INT = types.int64

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BITS = np.int64(32)
_LOW = np.int64(0xFFFFFFFF)
_ENDED = np.int64(-1) << _BITS


@inlined
def home_of(pattern, shift):  # type: ignore[no-untyped-def]
    """The high half is folded in first: floats with short fractions differ only there."""
    raw = uint64(pattern)
    return ((raw ^ (raw >> HALF)) * MULTIPLIER) >> uint64(shift)


@inlined
def id_of(pattern, home, patterns, slots):  # type: ignore[no-untyped-def]
    """The id of a pattern, -1 if it has none."""
    mask = uint64(slots.shape[0] - 1)
    slot = home
    found = int64(slots[slot])
    while found >= 0 and not (found < patterns.shape[0] and patterns[found] == pattern):
        slot = (slot + uint64(1)) & mask
        found = int64(slots[slot])
    return found


@operator(types.int64, GIVEN, PATTERNS, SLOTS, INT, IDS)
def find(wanted, patterns, slots, shift, ids):  # type: ignore[no-untyped-def]
    """The ids of patterns, -1 where absent; returns how many are."""
    absent = 0
    homes = group_of_keys()
    i = 0
    while i < wanted.shape[0]:
        size = min(GROUP, wanted.shape[0] - i)
        for g in range(size):
            homes[g] = home_of(wanted[i + g], shift)
            prefetch(slots, int64(homes[g]))
        for g in range(size):
            prefetch(patterns, max(int64(slots[homes[g]]), 0))
        for g in range(size):
            found = id_of(wanted[i + g], homes[g], patterns, slots)
            ids[i + g] = found
            if found < 0:
                absent += 1
        i += size
    return absent


@operator(types.void, PATTERNS, INT, INT, SLOTS, INT)
def enter(patterns, first, last, slots, shift):  # type: ignore[no-untyped-def]
    """Enters the ids from first to last, whose patterns are not there yet, into slots with room for them."""
    mask = uint64(slots.shape[0] - 1)
    for i in range(first, last):
        slot = home_of(patterns[i], shift)
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = i


@operator(types.int64, PARTS, INT, PATTERNS, SLOTS, INT, IDS)
def find_chains(parts, start, patterns, slots, shift, ids):  # type: ignore[no-untyped-def]
    """The ids of the last patterns of chains that begin with `start` and go on with a part of each row of `parts`; -1
    where a pattern is absent. Returns how many are."""
    absent = 0
    links = parts.shape[0]
    homes = group_of_keys()
    chains = group_of_keys()
    i = 0
    while i < ids.shape[0]:
        size = min(GROUP, ids.shape[0] - i)
        for g in range(size):
            ids[i + g] = 0
            chains[g] = uint64(start)
        for link in range(links):
            for g in range(size):
                chains[g] = (chains[g] << HALF) | (uint64(int64(parts[link, i + g])) & LOW)
                homes[g] = home_of(chains[g], shift)
                prefetch(slots, int64(homes[g]))
            for g in range(size):
                prefetch(patterns, max(int64(slots[homes[g]]), 0))
            for g in range(size):
                found = id_of(int64(chains[g]), homes[g], patterns, slots)
                chains[g] = uint64(max(found, 0))
                if found < 0:
                    ids[i + g] = -1
        for g in range(size):
            if ids[i + g] < 0:
                absent += 1
            else:
                ids[i + g] = int64(chains[g])
        i += size
    return absent


@operator(types.void, IDS, PATTERNS, PARTS, PATTERNS)
def follow_chains(ids, patterns, parts, ends):  # type: ignore[no-untyped-def]
    """The parts of chains, given by the ids of their last patterns, and what stands before the first part. A chain that
    ends early stays ended, at nothing that a chain begins with."""
    links = parts.shape[0]
    i = 0
    while i < ids.shape[0]:
        size = min(GROUP, ids.shape[0] - i)
        for g in range(size):
            ends[i + g] = int64(ids[i + g])
        for link in range(links - 1, -1, -1):
            for g in range(size):
                prefetch(patterns, max(ends[i + g], 0))
            for g in range(size):
                chain = ends[i + g]
                pattern = patterns[max(chain, 0)]
                parts[link, i + g] = int64(pattern & _LOW)
                ends[i + g] = _ENDED if chain < 0 else pattern >> _BITS
        i += size
