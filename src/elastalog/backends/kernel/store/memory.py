"""Arrays of the kernel: their types, and how they are made and grown."""

from __future__ import annotations

from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.diagnostics.quota import take

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]

LARGE_TABLE = 1 << 22
MOST_TAKEN, MOST_TAKEN_AT_ONCE = 11, 13
"""How many of 16 slots of a set table may be taken, and of a large one that was filled at once: beyond the first share
insertion gets slower, so that tables which are still to grow do so earlier."""

NO_KEYS: Vector = np.zeros(1, np.uint64)
NO_WORDS: Vector = np.zeros(0, np.int32)
NO_TABLE: Vector = np.zeros(0, np.uint32)
NO_MATRIX: Matrix = np.zeros((1, 6), np.int32)


STATE_SIZE = 8


class Stamps:
    """Numbers, none of which is given twice; `last` is the one given last."""

    def __init__(self) -> None:
        self._numbers = count()
        self.last = -1

    def take(self) -> int:
        """The next one, in whatever thread."""
        self.last = number = next(self._numbers)
        return number


STAMPS = Stamps()
"""Whoever holds arrays takes a number from here before one of them is replaced or moves, so that those who have written
down where they are see that they must look again. Before, since Ctrl-C may come in between; no number comes twice."""


def state_vector(size: int = STATE_SIZE) -> Vector:
    """What operators note of their work from call to call; those who do name its fields (see `set_table`, `postings`,
    `bookkeeping`)."""
    return np.zeros(size, np.int64)


def cleared(shape: int | tuple[int, ...], dtype: Any) -> Vector:
    """Zeros whose pages are touched now: fresh memory is given out in large pages this way, which halves its cost."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


def empty_table(slots: int) -> Vector:
    """A set table without facts (see `set_table`)."""
    return cleared(slots, np.uint32)


def empty_keys(size: int) -> Vector:
    """The keys of an index without rows, and behind them the bits of its filter (see `postings`)."""
    return cleared(size + size // 16, np.uint64)[:size]


def power_of_two(size: int) -> int:
    """The least power of two that is at least `size` and 16."""
    return 1 << max(4, (size - 1).bit_length())


def rows_for(slots: int) -> int:
    """How many rows a set table of so many slots may hold before it grows."""
    return slots * MOST_TAKEN // 16


def slots_for(rows: int) -> int:
    """The size of the smallest set table that may hold so many rows."""
    slots = power_of_two(rows * 16 // MOST_TAKEN)
    return slots if rows <= rows_for(slots) else 2 * slots


def slots_at_once(rows: int) -> tuple[int, int]:
    """The same for rows that come at once, and few after them; and how many the table may hold."""
    slots = slots_for(rows)
    full = slots // 2 * MOST_TAKEN_AT_ONCE // 16
    return (slots // 2, full) if slots > LARGE_TABLE and rows <= full else (slots, rows_for(slots))


def grown(array: Vector, used: int, size: int) -> Vector:
    """A longer copy of an array, its first `used` entries kept."""
    take(size * (array.nbytes // max(len(array), 1)) - array.nbytes)
    wider = np.empty((size, *array.shape[1:]), array.dtype)
    wider[:used] = array[:used]
    return wider
