"""Arrays of the kernel: their types, and how they are made and grown."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]

NO_KEYS: Vector = np.zeros(1, np.uint64)
NO_WORDS: Vector = np.zeros(0, np.int32)
NO_MATRIX: Matrix = np.zeros((1, 6), np.int32)


def cleared(shape: int | tuple[int, ...], dtype: Any) -> Vector:
    """Zeros whose pages are touched now: fresh memory is given out in large pages this way, which halves its cost."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


def power_of_two(size: int) -> int:
    """The least power of two that is at least `size` and 16."""
    return 1 << max(4, (size - 1).bit_length())


def grown(array: Vector, used: int, size: int) -> Vector:
    """A longer copy of an array, its first `used` entries kept."""
    wider = np.empty((size, *array.shape[1:]), array.dtype)
    wider[:used] = array[:used]
    return wider
