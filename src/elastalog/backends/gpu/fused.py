"""Passes over keys of one part that a device makes in one kernel each, where NumPy makes several over arrays: packing,
unpacking, searching and merging. Only called with arrays of CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from elastalog.backends.gpu.arrays import Array

THREADS = 256
"""Of a block."""

Place: TypeAlias = tuple[int, int]
"""Of a column in a key: what is added to its words, and the shift."""

SEARCH = r"""
/* How many of the sorted numbers between two positions are less than one. */
__device__ __forceinline__ long long before(
    const long long* sorted, long long low, long long high, long long number)
{
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (sorted[middle] < number) low = middle + 1; else high = middle;
    }
    return low;
}
/* The same, where the answer is likely to be near `low`. */
__device__ __forceinline__ long long soon_before(
    const long long* sorted, long long low, long long high, long long number)
{
    long long step = 1;
    while (low + step < high && sorted[low + step] < number) { low += step; step <<= 1; }
    return before(sorted, low, low + step < high ? low + step : high, number);
}
"""


def unpacked(keys: Array, shift: int, mask: int, add: int) -> Array:
    """The words of a column."""
    return _unpacking()(keys, shift, mask, add)


def packed(columns: Sequence[Array], places: Sequence[Place]) -> Array:
    """The keys of rows given by columns."""
    return _packing(len(columns))(*_interleaved(columns, places))


def held(columns: Sequence[Array], places: Sequence[Place], keys: Array) -> Array:
    """Which of the rows given by columns are among sorted keys."""
    return _holding(len(columns))(*_interleaved(columns, places), keys, len(keys))


def ranges(columns: Sequence[Array], places: Sequence[Place], rest: int, keys: Array) -> tuple[Array, Array]:
    """For rows given by their first columns, where among sorted keys those begin that begin so, and how many they are.
    `rest` is what all other columns add at most."""
    starts, counts = _ranging(len(columns))(*_interleaved(columns, places), rest, keys, len(keys))
    return starts, counts


def merged(keys: Array, more: Array) -> Array:
    """Two sorted sets of keys as one."""
    import cupy

    out = cupy.empty(len(keys) + len(more), keys.dtype)
    for own, others in ((keys, more), (more, keys)):
        blocks = (len(own) + THREADS - 1) // THREADS
        _merging()((blocks,), (THREADS,), (own, np.int64(len(own)), others, np.int64(len(others)), out))
    return out


def _interleaved(columns: Sequence[Array], places: Sequence[Place]) -> list[Any]:
    return [part for column, (add, shift) in zip(columns, places, strict=True) for part in (column, add, shift)]


def _given(columns: int) -> str:
    return ", ".join(f"int32 c{n}, int64 a{n}, int64 s{n}" for n in range(columns))


def _key(columns: int) -> str:
    return " | ".join(f"(((long long) c{n} + a{n}) << s{n})" for n in range(columns))


@cache
def _unpacking() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "int64 key, int64 shift, int64 mask, int64 more", "int32 word",
        "word = (int) (((key >> shift) & mask) + more)", "unpack",
    )  # fmt: skip


@cache
def _packing(columns: int) -> Any:
    import cupy

    return cupy.ElementwiseKernel(_given(columns), "int64 key", f"key = {_key(columns)}", "pack")


@cache
def _holding(columns: int) -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        f"{_given(columns)}, raw int64 keys, int64 number", "bool is_held",
        f"long long key = {_key(columns)}, at = before(&keys[0], 0, number, key);"
        "is_held = at < number && keys[at] == key", "hold", preamble=SEARCH,
    )  # fmt: skip


@cache
def _ranging(columns: int) -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        f"{_given(columns)}, int64 rest, raw int64 keys, int64 number", "int64 start, int64 count",
        f"long long key = {_key(columns)};"
        "start = before(&keys[0], 0, number, key);"
        "count = soon_before(&keys[0], start, number, key + rest + 1) - start", "range", preamble=SEARCH,
    )  # fmt: skip


_MERGE = r"""
/* Puts every key after as many of its own as stand before it, and as many of the others as are less: for the keys of a
   block they lie between those of its first and its last. */
extern "C" __global__ void merge(
    const long long* keys, long long size, const long long* others, long long number, long long* merged)
{
    __shared__ long long first, last;
    long long at = blockIdx.x * (long long) blockDim.x, thread = at + threadIdx.x, most = at + blockDim.x - 1;
    if (threadIdx.x == 0) first = before(others, 0, number, keys[at]);
    if (threadIdx.x == 32) last = before(others, 0, number, keys[most < size ? most : size - 1]);
    __syncthreads();
    if (thread < size) merged[thread + before(others, first, last, keys[thread])] = keys[thread];
}
"""


@cache
def _merging() -> Any:
    import cupy

    return cupy.RawKernel(SEARCH + _MERGE, "merge")
