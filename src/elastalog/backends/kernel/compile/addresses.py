"""Arrays by address, in compiled code: an operator that works on many relations takes tables of addresses instead of
arrays, because handing over an array costs more than a small join does.

Whoever writes an address into a table keeps the array alive for as long as the table is used.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from elastalog.jit import types
from elastalog.jit.intrinsics import array_at
from elastalog.jit.operators import piece


def address_of(array: npt.NDArray[Any]) -> int:
    """Where the elements of a contiguous array begin."""
    return int(array.__array_interface__["data"][0])


matrix_at = array_at(types.int32, 2)
words_at = array_at(types.int32, 1)
numbers_at = array_at(types.int64, 1)
keys_at = array_at(types.uint64, 1)
table_at = array_at(types.uint32, 1)


__all__ = ["address_of", "keys_at", "matrix_at", "numbers_at", "piece", "table_at", "words_at"]
