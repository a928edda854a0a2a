"""The wide table: distinct 64-bit patterns as small integers, append-only.

It holds what does not fit a word: large numbers and unsigned numbers, and every float; records are chains of patterns.
Open addressing over ids, whose patterns lie in one array: `patterns[i]` is the pattern with id i, slots hold ids, -1
when empty, and the home slot of a pattern is the high bits of its hash. 16 to 32 bytes a pattern. Blocks of rows are
probed all at once by compiled operators, a handful of values one by one.

Readers need no lock: a pattern is written before its id, ids only enter empty slots, and a larger table replaces the
smaller in one assignment; to an operator an id beyond `patterns`, or one whose pattern is not seen yet, counts as
absent. Writers exclude each other, and look again under the lock.
"""

from __future__ import annotations

import numpy as np
from numpy import int64, uint64
from numpy.typing import NDArray

from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached, finding
from elastalog.jit import types
from elastalog.jit.intrinsics import group_of_keys, prefetch
from elastalog.jit.operators import GROUP, HALF, LOW, inlined, operator
from elastalog.relations.limits import MOST_WIDE_PATTERNS, Integers, Words
from elastalog.relations.thread_lock import ThreadLock
from elastalog.settings import SETTINGS

PATTERNS = types.Array(types.int64, 1)
GIVEN = types.Array(types.int64, 1, readonly=True)
SLOTS = types.Array(types.int32, 1)
IDS = types.Array(types.int32, 1)
PARTS = types.Array(types.int32, 2)
INT = types.int64

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BITS = np.int64(32)
_LOW = np.int64(0xFFFFFFFF)
_ENDED = np.int64(-1) << _BITS


@inlined
def home_of(pattern, shift):
    """The high half is folded in first: floats with short fractions differ only there."""
    raw = uint64(pattern)
    return ((raw ^ (raw >> HALF)) * _MULTIPLIER) >> uint64(shift)


@inlined
def id_of(pattern, home, patterns, slots):
    """The id of a pattern, -1 if it has none."""
    mask = uint64(slots.shape[0] - 1)
    slot = home
    found = int64(slots[slot])
    while found >= 0 and not (found < patterns.shape[0] and patterns[found] == pattern):
        slot = (slot + uint64(1)) & mask
        found = int64(slots[slot])
    return found


@operator(types.int64, GIVEN, PATTERNS, SLOTS, INT, IDS)
def find_patterns(wanted, patterns, slots, shift, ids):
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
def enter_patterns(patterns, first, last, slots, shift):
    """Enters the ids from first to last, whose patterns are not there yet, into slots with room for them."""
    mask = uint64(slots.shape[0] - 1)
    for i in range(first, last):
        slot = home_of(patterns[i], shift)
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = i


@operator(types.int64, PARTS, INT, PATTERNS, SLOTS, INT, IDS)
def find_chains(parts, start, patterns, slots, shift, ids):
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
def follow_chains(ids, patterns, parts, ends):
    """The parts of chains, given by the ids of their last patterns, and what precedes the first part. A chain that ends
    early stays ended, at a value that begins no chain."""
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


EMPTY = -1
_NO_PATTERNS: Integers = np.empty(0, np.int64)
_NO_SLOTS: Words = np.full(2, EMPTY, np.int32)
"""What tables have that hold nothing: few programs have wide values, and nothing is ever written here."""
_FIRST = 64
"""Patterns for which there is room once there is one."""

MULTIPLIER = int(_MULTIPLIER)
LOW_64_BITS = (1 << 64) - 1


class WideTable:
    """A bijection between 64-bit patterns (as int64) and ids 0, 1, 2, …, fewer than 2^30."""

    __slots__ = ("_length", "_lock", "_patterns", "_slots")

    def __init__(self) -> None:
        self._length = 0
        self._patterns = _NO_PATTERNS
        self._slots = _NO_SLOTS
        self._lock = ThreadLock()

    def __len__(self) -> int:
        return self._length

    def intern(self, patterns: Integers) -> Words:
        """The ids of patterns, new ones added in order of value (large blocks) or of appearance (small ones)."""
        if len(patterns) <= SETTINGS.few_wide:
            return np.array([self.intern_one(pattern) for pattern in patterns.tolist()], np.int32)
        patterns = np.ascontiguousarray(patterns)
        ids, absent = self._probe(patterns)
        if absent:
            is_absent = ids == EMPTY
            distinct, position = np.unique(patterns[is_absent], return_inverse=True)
            with self._lock:
                new_ids, _ = self._probe(distinct)  # another writer may have been here since
                is_new = new_ids == EMPTY
                new_ids[is_new] = self._append(distinct[is_new])
            ids[is_absent] = new_ids[position]
        return ids

    def intern_one(self, pattern: int) -> int:
        """The id of one pattern, which is added if new."""
        found = self.find(pattern)
        if found is not None:
            return found
        with self._lock:
            found = self.find(pattern)
            return int(self._append(np.array([pattern], np.int64))[0]) if found is None else found

    def find(self, pattern: int) -> int | None:
        """The id of one pattern if it has one; never adds."""
        slots = self._slots
        mask = len(slots) - 1
        mixed = (pattern ^ ((pattern & LOW_64_BITS) >> 32)) * MULTIPLIER & LOW_64_BITS
        slot = mixed >> (65 - len(slots).bit_length())
        while (held := slots.item(slot)) != EMPTY:
            if self._patterns.item(held) == pattern:
                return held
            slot = slot + 1 & mask
        return None

    def find_all(self, patterns: Integers) -> Words:
        """The ids of patterns, -1 where absent; never adds."""
        return self._probe(np.ascontiguousarray(patterns))[0]

    def find_chains(self, start: int, parts: NDArray[np.int32]) -> tuple[Words, int]:
        """The ids of the last patterns of chains, -1 where one is absent, and how many are: a pattern has the id of the
        one before it in the upper half, the first one `start`, and in the lower half a word of a row of `parts`."""
        ids: Words = np.empty(parts.shape[1], np.int32)
        slots = self._slots
        absent = find_chains(parts, start, self._patterns, slots, _shift(slots), ids)
        return ids, int(absent)

    def follow_chains(self, ids: Words, links: int) -> tuple[NDArray[np.int32], Integers]:
        """The parts of chains, a row for each link, and what they begin with."""
        parts, ends = np.empty((links, len(ids)), np.int32), np.empty(len(ids), np.int64)
        follow_chains(np.ascontiguousarray(ids), self._patterns, parts, ends)
        return parts, ends

    def patterns(self, ids: Words) -> Integers:
        """The patterns of ids."""
        return self._patterns[ids]

    def pattern(self, pattern_id: int) -> int:
        """The pattern of one id, as a signed integer."""
        return self._patterns.item(pattern_id)

    def patterns_from(self, first_id: int) -> Integers:
        """The patterns with ids from `first_id` on, in order: what a journal has not written yet."""
        return self._patterns[first_id : self._length].copy()

    def extend(self, patterns: Integers) -> None:
        """Adds distinct patterns that have no id yet, in order: what a store has kept."""
        if len(patterns):
            with self._lock:
                self._append(np.ascontiguousarray(patterns))

    def _probe(self, patterns: Integers) -> tuple[Words, int]:
        """The ids of patterns, and how many are absent."""
        found: Words = np.empty(len(patterns), np.int32)
        slots = self._slots
        absent = find_patterns(patterns, self._patterns, slots, _shift(slots), found)
        return found, int(absent)

    def _append(self, new: Integers) -> Words:
        """Adds distinct absent patterns, under the lock."""
        first, last = self._length, self._length + len(new)
        if last > MOST_WIDE_PATTERNS:
            raise LimitReached([finding("E0508", most=MOST_WIDE_PATTERNS)])
        is_longer, is_wider = last > len(self._patterns), 2 * last >= len(self._slots)
        slots = 1 << (2 * max(last, _FIRST)).bit_length()
        quota.ask(8 * last * is_longer + 4 * slots * is_wider)
        if is_longer:
            larger: Integers = np.empty(max(last, _FIRST, 2 * len(self._patterns)), np.int64)
            larger[:first] = self._patterns[:first]
            self._patterns = larger
        self._patterns[first:last] = new
        ids = np.arange(first, last, dtype=np.int32)
        try:
            if is_wider:
                self._slots = self._slots_of(last, slots)
            else:
                enter_patterns(self._patterns, first, last, self._slots, _shift(self._slots))
            self._length = last  # last of all: what is counted can be found
        except BaseException:  # Ctrl-C: what was not counted must not be found
            self._slots = self._slots_of(self._length, len(self._slots))
            raise
        return ids

    def _slots_of(self, count: int, size: int) -> Words:
        slots: Words = np.full(size, EMPTY, np.int32)
        enter_patterns(self._patterns, 0, count, slots, _shift(slots))
        return slots


def _shift(slots: Words) -> int:
    """By how much the hash of a pattern is shifted to give its home slot."""
    return 65 - len(slots).bit_length()
