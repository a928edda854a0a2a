"""The wide table: distinct 64-bit patterns as small integers, append-only.

It holds what does not fit a word: large numbers and unsigned numbers, and every float. Open addressing over ids, whose
patterns lie in one array: 16 to 32 bytes a pattern. Blocks of rows are probed all at once by compiled operators, a
handful of values one by one.

Readers need no lock: a pattern is written before its id, ids only enter empty slots, and a larger table replaces the
smaller in one assignment. Writers exclude each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.relations import wide_operators
from elastalog.relations.limits import MOST_WIDE_PATTERNS, Integers, Words
from elastalog.relations.thread_lock import ThreadLock
from elastalog.settings import SETTINGS

EMPTY = -1
MULTIPLIER = 0x9E3779B97F4A7C15
LOW_64_BITS = (1 << 64) - 1


class WideTable:
    """A bijection between 64-bit patterns (as int64) and ids 0, 1, 2, …, fewer than 2^30."""

    __slots__ = ("_length", "_lock", "_patterns", "_slots")

    def __init__(self) -> None:
        self._length = 0
        self._patterns: Integers = np.empty(64, np.int64)
        self._slots: Words = np.full(128, EMPTY, np.int32)
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
        absent = wide_operators.find_chains(parts, start, self._patterns, slots, _shift(slots), ids)
        return ids, int(absent)

    def follow_chains(self, ids: Words, links: int) -> tuple[NDArray[np.int32], Integers]:
        """The parts of chains, a row for each link, and what they begin with."""
        parts, ends = np.empty((links, len(ids)), np.int32), np.empty(len(ids), np.int64)
        wide_operators.follow_chains(np.ascontiguousarray(ids), self._patterns, parts, ends)
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
        absent = wide_operators.find(patterns, self._patterns, slots, _shift(slots), found)
        return found, int(absent)

    def _append(self, new: Integers) -> Words:
        """Adds distinct absent patterns, under the lock."""
        first, last = self._length, self._length + len(new)
        if last > MOST_WIDE_PATTERNS:
            raise LimitReached([_too_many_patterns()])
        is_longer, is_wider = last > len(self._patterns), 2 * last > len(self._slots)
        slots = 1 << (2 * last).bit_length()
        quota.ask(8 * last * is_longer + 4 * slots * is_wider)
        if is_longer:
            larger: Integers = np.empty(max(last, 2 * len(self._patterns)), np.int64)
            larger[:first] = self._patterns[:first]
            self._patterns = larger
        self._patterns[first:last] = new
        ids = np.arange(first, last, dtype=np.int32)
        try:
            if is_wider:
                self._slots = self._slots_of(last, slots)
            else:
                wide_operators.enter(self._patterns, first, last, self._slots, _shift(self._slots))
            self._length = last  # last of all: what is counted can be found
        except BaseException:  # Ctrl-C: what was not counted must not be found
            self._slots = self._slots_of(self._length, len(self._slots))
            raise
        return ids

    def _slots_of(self, count: int, size: int) -> Words:
        slots: Words = np.full(size, EMPTY, np.int32)
        wide_operators.enter(self._patterns, 0, count, slots, _shift(slots))
        return slots


def _shift(slots: Words) -> int:
    """By how much the hash of a pattern is shifted to give its home slot."""
    return 65 - len(slots).bit_length()


def _too_many_patterns() -> Diagnostic:
    return Diagnostic(
        code="E0508",
        message=f"more than {MOST_WIDE_PATTERNS:,} distinct wide numbers and floats",
        notes=("numbers from -2^30 to 2^30 - 1 are stored directly and do not count",),
        help="partition the facts, or use symbols or smaller numbers as identifiers",
    )
