"""An index of a relation: grows with it, chooses direct or hashed addressing, answers joins (see `postings`)."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.lengthening import lengthen
from elastalog.backends.kernel.store.memory import (
    NO_KEYS,
    STAMPS,
    Matrix,
    Vector,
    cleared,
    empty_keys,
    power_of_two,
    state_vector,
)
from elastalog.backends.kernel.store.postings import DIRECT, HASHED
from elastalog.backends.kernel.store.whereabouts import IndexWhereabouts
from elastalog.diagnostics import memory_limit
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
        "keys",
        "kind",
        "laid_out",
        "pool",
        "shift",
        "slots",
        "stamp",
        "state",
        "whereabouts",
    )

    def __init__(self, columns: tuple[int, ...], rows: Matrix, used: int) -> None:
        self.stamp = STAMPS.take()
        self.laid_out = -1
        self.whereabouts = IndexWhereabouts()
        self.ahead = -1
        self.columns: Vector = np.array(columns, np.int64)
        self.done = 0
        self.pool: Vector = np.empty(64, np.int32)
        self.shift = 58
        self.state: Vector = state_vector(postings.INDEX_STATE_SIZE)
        self.kind = DIRECT if len(columns) == 1 and _is_dense(rows[:used, columns[0]]) else HASHED
        if self.kind == DIRECT:
            top = int(rows[:used, columns[0]].max()) + 1 if used else 16
            self.keys: Vector = NO_KEYS
            self.slots: Matrix = cleared((max(top, 16), postings.SLOT_WIDTH), np.int32)
        else:
            self.keys = empty_keys(_SMALL_TABLE)
            self.slots = cleared((_SMALL_TABLE, postings.SLOT_WIDTH), np.int32)

    def successor(self) -> Index:
        """An empty index with room for what this one holds."""
        other = object.__new__(Index)
        other.stamp, other.laid_out = STAMPS.take(), -1
        other.whereabouts = IndexWhereabouts()
        other.ahead = -1
        other.columns, other.kind, other.shift = self.columns, self.kind, self.shift
        other.done = 0
        other.keys = NO_KEYS if self.kind == DIRECT else empty_keys(len(self.keys))
        other.slots = cleared(self.slots.shape, np.int32)
        other.pool = np.empty(int(self.state[postings.POOL_USED]) + 64, np.int32)
        other.state = state_vector(postings.INDEX_STATE_SIZE)
        return other

    @property
    def done(self) -> int:
        """How many rows have been added."""
        return self.whereabouts.added

    @done.setter
    def done(self, rows: int) -> None:
        self.whereabouts.added = rows

    def lay_out(self) -> IndexWhereabouts:
        """Where the index is, written down again if it has moved."""
        found, stamp = self.whereabouts, self.stamp
        if stamp != self.laid_out:
            found.columns, found.columns_number = address_of(self.columns), len(self.columns)
            found.kind = self.kind
            found.keys, found.keys_size, found.shift = address_of(self.keys), len(self.keys), self.shift
            found.slots, found.slots_size = address_of(self.slots), len(self.slots)
            found.pool, found.pool_size = address_of(self.pool), len(self.pool)
            found.state, found.state_size = address_of(self.state), len(self.state)
            self.laid_out = stamp  # last, as with relations
        return found

    def extend(self, rows: Matrix, used: int) -> None:
        """Adds the rows up to `used`."""
        if (
            self.done == 0
            and used >= SETTINGS.pack_from
            and len(self.columns) <= _EXACT_COLUMNS
            and self._pack(rows, used)
        ):
            return
        while self.done < used:
            is_direct = self.kind == DIRECT
            self.done = postings.append(
                rows,
                self.done,
                used,
                self.columns,
                is_direct,
                self.keys,
                self.shift,
                self.slots,
                self.pool,
                self.state,
            )
            if self.done < used:
                self._make_room(rows, used)

    def _pack(self, rows: Matrix, used: int) -> bool:
        """Adds the first rows in blocks as long as they must be. False if a word came that has no slot; then nothing is
        added."""
        self.stamp = STAMPS.take()
        is_direct = self.kind == DIRECT
        done = 0
        while True:
            done = postings.measure(
                rows, done, used, self.columns, is_direct, self.keys, self.shift, self.slots, self.state
            )
            if done >= used:
                break
            if is_direct:
                self.slots.fill(0)
                return False
            self._widen_table()
        packed = postings.lay_out(self.slots)
        self.pool = np.empty(packed + packed // 16 + 64, np.int32)
        postings.fill(rows, used, self.columns, is_direct, self.keys, self.shift, self.slots, self.pool)
        self.state[postings.POOL_USED] = self.state[postings.PACKED] = packed
        self.done = used
        return True

    def _make_room(self, rows: Matrix, used: int) -> None:
        self.stamp = STAMPS.take()
        if self.kind == DIRECT:
            word = int(rows[self.done, self.columns[0]])
            if not 0 <= word < len(self.slots):
                waiting = rows[self.done : used, self.columns[0]]
                top = self._wider(int(waiting.max()) + 1)
                if waiting.min() < 0 or top > max(16 * used, SETTINGS.direct_keys_anyway):
                    self._become_hashed(rows)
                else:
                    wider = cleared((top, postings.SLOT_WIDTH), np.int32)
                    wider[: len(self.slots)] = self.slots
                    self.slots = wider
                return
        elif self.state[postings.KEYS_USED] >= len(self.keys) * 5 // 8:
            self._widen_table()
            return
        self._lengthen_pool()

    def _lengthen_pool(self) -> None:
        """Makes room in the pool: by moving blocks together if that gives much."""
        if self.state[postings.LEFT] * 3 >= self.state[postings.POOL_USED]:
            needed = postings.room_for_blocks(self.slots)
            pool = np.empty(needed + max(needed // 8, 64), np.int32)
            postings.move_together(self.slots, self.pool, pool, self.state)
            self.pool = pool
            return
        size = len(self.pool)
        size += max(size // (4 if size < _LARGE_POOL else 16), 64)
        lengthen(self, "pool", int(self.state[postings.POOL_USED]), size)

    def _wider(self, words: int) -> int:
        """How many slots there are to be, so that `words` are among them and not every new word needs more."""
        if len(self.slots) < SETTINGS.many_slots:
            return power_of_two(words)
        return max(words, len(self.slots) + len(self.slots) // 8)

    def _widen_table(self) -> None:
        size = len(self.keys) * (2 if len(self.keys) >= _MANY_KEYS else 4)
        width = 8 + 4 * postings.SLOT_WIDTH
        memory_limit.ask(size * width, len(self.keys) * width)
        keys = empty_keys(size)
        slots = cleared((size, postings.SLOT_WIDTH), np.int32)
        self.shift = 65 - size.bit_length()
        postings.grow(self.keys, self.slots, keys, slots, self.shift)
        self.keys, self.slots = keys, slots

    def _become_hashed(self, rows: Matrix) -> None:
        """A word came that direct addressing cannot hold: the rows so far are added again, under hashed keys."""
        done, self.done = self.done, 0
        self.kind = HASHED
        size = power_of_two(done * 2 + _SMALL_TABLE)
        self.keys = empty_keys(size)
        self.slots = cleared((size, postings.SLOT_WIDTH), np.int32)
        self.shift = 65 - size.bit_length()
        self.state[:] = 0
        self.extend(rows, done)

    @property
    def arrays(self) -> tuple[int, Vector, int, Matrix, Vector]:
        """What a join looks keys up in."""
        return self.kind, self.keys, self.shift, self.slots, self.pool

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.slots.nbytes + self.pool.nbytes)


def _is_dense(words: Vector) -> bool:
    if not len(words):
        return True
    return bool(
        words.min() >= 0
        and int(words.max()) < max(SETTINGS.direct_keys_factor * len(words), SETTINGS.direct_keys_anyway)
    )
