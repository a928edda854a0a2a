"""An index of a relation: grows with it, chooses direct or hashed addressing, answers joins (see `postings`)."""

from __future__ import annotations

import math
from ctypes import addressof

import numpy as np

from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.inserting import APART
from elastalog.backends.kernel.store.memory import (
    NO_KEYS,
    NO_WORDS,
    STAMPS,
    IndexDescriptor,
    Matrix,
    Vector,
    cleared,
    empty_keys,
    lengthen,
    power_of_two,
    write_index,
)
from elastalog.backends.kernel.store.postings import DIRECT, HASHED, STRIP_LENGTH
from elastalog.diagnostics import quota
from elastalog.relations.limits import WORD
from elastalog.settings import SETTINGS

_SMALL_TABLE = 64

_EXACT_COLUMNS = 2
"""Keys of more columns are hashes (see `postings`), which packing does not verify."""

_LARGE_POOL = 1 << 20
_MANY_KEYS = 1 << 14


class Index:
    """The rows of a matrix by the words in some columns. `done` rows have been added; `ahead` of them when it was made
    for updates to come, if it was. `stamp` and `laid_out`: see `KernelRelation`."""

    __slots__ = (
        "ahead",
        "columns",
        "descriptor",
        "keys",
        "kind",
        "laid_out",
        "pool",
        "shift",
        "slots",
        "stamp",
        "state",
    )

    def __init__(self, columns: tuple[int, ...], rows: Matrix, used: int, crew: Crew = ALONE) -> None:
        self._begin(np.array(columns, np.int64))
        self.pool: Vector = np.empty(64, np.int32)
        self.shift = 58
        least, greatest = _extent(rows, used, columns[0], crew) if len(columns) == 1 else (-1, -1)
        most = max(SETTINGS.direct_keys_factor * used, SETTINGS.direct_keys_anyway)
        self.kind = DIRECT if least >= 0 and greatest < most else HASHED
        if self.kind == DIRECT:
            top = greatest + 1
            self.keys: Vector = NO_KEYS
            self.slots: Matrix = cleared((max(top, 16), postings.SLOT_WIDTH), np.int32)
        else:
            size = _SMALL_TABLE
            if used >= SETTINGS.pack_from:
                keys = _distinct_keys(rows, used, self.columns, crew)
                # Five slots in eight may be taken.
                size = max(size, power_of_two(int((keys + 4 * math.sqrt(keys)) * 8 / 5)))
                quota.ask(size * (8 + 4 * postings.SLOT_WIDTH))
            self._clear_table(size)

    def _clear_table(self, size: int) -> None:
        """From now on there is an empty table of keys."""
        self.stamp = STAMPS.take()
        self.keys = empty_keys(size)
        self.slots = cleared((size, postings.SLOT_WIDTH), np.int32)
        self.shift = 65 - size.bit_length()

    def _begin(self, columns: Vector) -> None:
        self.stamp, self.laid_out, self.ahead = STAMPS.take(), -1, -1
        self.descriptor = IndexDescriptor()
        self.columns = columns
        self.state: Vector = np.zeros(postings.INDEX_STATE_SIZE, np.int64)

    def successor(self) -> Index:
        """An empty index with room for what this one holds."""
        other = object.__new__(Index)
        other._begin(self.columns)
        other.kind, other.shift = self.kind, self.shift
        other.keys = NO_KEYS if self.kind == DIRECT else empty_keys(len(self.keys))
        other.slots = cleared(self.slots.shape, WORD)
        # Of one that has no rows: as that of which it is the successor.
        other.pool = np.empty(int(self.state[postings.POOL_USED]) + 64 if self.done else len(self.pool), WORD)
        return other

    @property
    def done(self) -> int:
        """How many rows have been added."""
        return self.descriptor.added

    def lay_out(self) -> IndexDescriptor:
        """Where the index is, written down again if it has moved."""
        found, stamp = self.descriptor, self.stamp
        if stamp != self.laid_out:
            write_index(
                addressof(found), self.columns, self.kind, self.keys, self.shift, self.slots, self.pool, self.state
            )
            self.laid_out = stamp  # last, as with relations
        return found

    @property
    def home(self) -> int:
        """Where its descriptor is, for operators; written down again if the index has moved."""
        return addressof(self.lay_out())

    def divide(self, parts: int) -> None:
        """Prepares the index to be extended by `parts` threads at once."""
        if parts * postings.INDEX_STATE_SIZE > len(self.state):
            state = np.zeros(parts * postings.INDEX_STATE_SIZE, np.int64)
            state[: len(self.state)] = self.state
            self.stamp = STAMPS.take()
            self.state = state

    def extend(self, rows: Matrix, used: int, crew: Crew = ALONE) -> None:
        """Adds the rows up to `used`, with all threads of a crew if there are many."""
        found = self.descriptor
        if used - found.added < SETTINGS.divide_index_from or not crew.is_free:
            crew = ALONE
        is_exact = len(self.columns) <= _EXACT_COLUMNS
        if found.added == 0 and used >= SETTINGS.pack_from and is_exact and self._pack(rows, used, crew):
            return
        if crew.number > 1:
            self._extend_together(rows, used, crew)
        while found.added < used:
            found.added = postings.append(self.home, rows, found.added, used, 0, 1)
            if found.added < used:
                self.make_room(rows, used)

    def _extend_together(self, rows: Matrix, used: int, crew: Crew) -> None:
        """Adds rows part by part; those that are not done are added by one thread."""
        self.divide(crew.number)
        done = [self.done] * crew.number
        home = self.home

        def append(part: int) -> None:
            done[part] = postings.append(home, rows, done[part], used, part, crew.number)

        while True:
            self.lay_out()
            crew.do_parts(append)
            if min(done) >= used:
                self.descriptor.added = used
                return
            if not self.make_room(rows, used):
                return

    def _pack(self, rows: Matrix, used: int, crew: Crew) -> bool:
        """Adds the first rows in blocks as long as they must be. False if a word came that has no slot; then nothing is
        added."""
        self.stamp = STAMPS.take()
        self.divide(crew.number)
        packed = self._pack_words(rows, used, crew) if self.kind == DIRECT else self._pack_keys(rows, used, crew)
        if packed < 0:
            return False
        self.state[postings.POOL_USED] = self.state[postings.PACKED] = packed
        self.descriptor.added = used
        return True

    def _pack_words(self, rows: Matrix, used: int, crew: Crew) -> int:
        """Packs a direct index by counting words in ranges of rows; returns the length of the blocks, -1 if a word has
        no slot. By keys, as hashed ones are, all threads would look at all rows: with 16 of them, six times as long."""
        parts = min(crew.number, max(1, 2 * used // len(self.slots)))  # counting takes memory
        counts: Matrix = np.zeros((parts, len(self.slots)), np.int32)
        column, are_counted = int(self.columns[0]), [True] * parts

        def count(part: int) -> None:
            if part < parts:
                first, last = (used * number // parts for number in (part, part + 1))
                are_counted[part] = postings.count_words(rows, first, last, column, counts[part])

        def fill(part: int) -> None:
            if part < parts:
                first, last = (used * number // parts for number in (part, part + 1))
                postings.fill_words(rows, first, last, column, counts[part], self.slots, self.pool)

        crew.do_parts(count)
        if not all(are_counted):
            return -1
        packed = int(postings.lay_out_words(counts, self.slots))
        self.pool = np.empty(packed + packed // 16 + 64, np.int32)
        crew.do_parts(fill)
        return packed

    def _pack_keys(self, rows: Matrix, used: int, crew: Crew) -> int:
        """Packs a hashed index, each thread the rows of a part of the keys; returns the length of the blocks."""
        home, listed = self.home, self._by_part(rows, used, crew)
        found = [np.empty_like(numbers) for numbers in listed]
        lengths = [-1] * len(listed)

        def measure(part: int) -> None:
            lengths[part] = postings.measure(home, rows, listed[part], found[part], len(listed))

        crew.do_parts(measure)
        while min(lengths) < 0:
            self._clear_table(self._wider())
            self.state[postings.KEYS_USED] = 0
            self.lay_out()
            crew.do_parts(measure)
        packed = sum(lengths)
        self.stamp = STAMPS.take()
        self.pool = np.empty(packed + packed // 16 + 64, np.int32)
        self.lay_out()
        crew.do_parts(lambda part: postings.fill(home, listed[part], found[part], sum(lengths[: part + 1])))
        return packed

    def _by_part(self, rows: Matrix, used: int, crew: Crew) -> list[Vector]:
        """The numbers of rows, by the part of the keys that each belongs to."""
        parts, home = crew.number, self.home
        if parts == 1:
            return [np.arange(used, dtype=np.int32)]
        # Of each thread, by part: how many rows there are, and then where the next one goes.
        places: Matrix = np.zeros((parts, parts + APART), np.int64)
        listed = NO_WORDS

        def enlist(thread: int, start: int, stop: int) -> None:
            postings.list_by_part(home, rows, start, stop, places[thread, :parts], listed)

        crew.do_ranges(used, enlist)
        counts = places[:, :parts].copy()
        places[:, :parts] = counts.T.cumsum().reshape(parts, parts).T - counts
        begins = places[0, 1:parts].copy()
        listed = np.empty(used, np.int32)
        crew.do_ranges(used, enlist)
        return np.split(listed, begins)

    def make_room(self, rows: Matrix, used: int) -> bool:
        """Something is full, with some of the rows that are not `done` added and others not. False if all rows are to
        be added again: then none is done."""
        self.stamp = STAMPS.take()
        wishes: Vector = self.state[postings.WISH :: postings.INDEX_STATE_SIZE]
        wants_keys = bool((wishes == postings.KEYS_FULL).any())
        if (wishes == postings.POOL_FULL).any():
            self._lengthen_pool(used - self.done)
        wishes[:] = 0
        if wants_keys and self.kind == HASHED:
            keys, slots = self.keys, self.slots
            self._clear_table(self._wider())
            postings.grow(keys, slots, self.keys, self.slots, self.shift)
        elif wants_keys:
            waiting = rows[self.done : used, self.columns[0]]
            words, size = int(waiting.max()) + 1, len(self.slots)
            # Not every new word needs more.
            top = power_of_two(words) if size < SETTINGS.many_slots else max(words, size + size // 8)
            if waiting.min() < 0 or top > max(16 * used, SETTINGS.direct_keys_anyway):
                # Direct addressing cannot hold a word: the rows so far are to be added again, under keys.
                self._clear_table(power_of_two(self.done * 2 + _SMALL_TABLE))
                self.kind, self.descriptor.added = HASHED, 0
                self.state[:] = 0
                return False
            wider = cleared((top, postings.SLOT_WIDTH), np.int32)
            wider[: len(self.slots)] = self.slots
            self.slots = wider
        return True

    def _lengthen_pool(self, lacking: int) -> None:
        """Makes room in the pool for the rows that it lacks: by moving blocks together if that gives much."""
        left = int(self.state[postings.LEFT :: postings.INDEX_STATE_SIZE].sum())
        if left and left * 3 >= self.state[postings.POOL_USED]:
            needed = postings.room_for_blocks(self.slots)
            pool = np.empty(needed + max(needed // 8, 64), np.int32)
            postings.move_together(self.slots, self.pool, pool, self.state)
            self.pool = pool
            return
        size = len(self.pool)
        parts = len(self.state) // postings.INDEX_STATE_SIZE
        pool_used = int(self.state[postings.POOL_USED])
        size += max(size // (4 if size < _LARGE_POOL else 16), 64)
        if parts > 1:  # all wait until there is room
            size = max(size, len(self.pool) + parts * STRIP_LENGTH, pool_used + lacking)
        lengthen(self, "pool", pool_used, size)

    def _wider(self) -> int:
        """The size of a wider table of keys, for which there is memory."""
        size = len(self.keys) * (2 if len(self.keys) >= _MANY_KEYS else 4)
        width = 8 + 4 * postings.SLOT_WIDTH
        quota.ask(size * width, len(self.keys) * width)
        return size

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.slots.nbytes + self.pool.nbytes)


def _extent(rows: Matrix, used: int, column: int, crew: Crew) -> tuple[int, int]:
    """The least and the greatest word of a column; (0, 15) if there are no rows."""
    if used < SETTINGS.divide_index_from:
        words = rows[:used, column]
        return (int(np.minimum.reduce(words)), int(np.maximum.reduce(words))) if used else (0, 15)
    found: Matrix = np.full((crew.number, 2), rows[0, column], np.int64)
    crew.do_ranges(used, lambda part, first, last: postings.extent(rows, first, last, column, found[part]))
    return int(found[:, 0].min()), int(found[:, 1].max())


def _distinct_keys(rows: Matrix, used: int, columns: Vector, crew: Crew) -> float:
    """About how many keys many rows have: they set bits, and how many stay free tells how many met."""
    marks: Vector = np.zeros(power_of_two(max(used, 64)) // 64, np.uint64)
    crew.do_ranges(used, lambda part, first, last: postings.mark_keys(rows, first, last, columns, marks))
    bits = 64 * len(marks)
    free = bits - int(np.bitwise_count(marks).sum())
    return bits * math.log(bits / max(free, 1))
