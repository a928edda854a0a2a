"""The numbers that fix the encoding of values as words, and the array types on its two sides."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

WORD: Final = np.dtype(np.int32)
"""The type of words: NumPy takes three times as long to make a short array if it is given the class."""

Words: TypeAlias = NDArray[np.int32]
Integers: TypeAlias = NDArray[np.int64]
Unsigned: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

# A number word w < WIDE is the number itself; any other stands for the pattern w - WIDE of the wide table.
WIDE = 1 << 30
LEAST_NARROW = -WIDE
MOST_WIDE_PATTERNS = 1 << 30

LEAST_NUMBER = -(1 << 63)
MOST_NUMBER = (1 << 63) - 1
MOST_UNSIGNED = (1 << 64) - 1
MOST_EXACT_INTEGER_IN_FLOAT = 1 << 53
