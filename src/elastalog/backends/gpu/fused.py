"""Passes over keys, mostly of one part, that a device makes in one kernel each, where NumPy makes several over arrays:
packing, unpacking, searching, merging and telling apart. Only called with arrays of CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from elastalog.backends.gpu.arrays import Array

THREADS = 256
"""Of a block."""
_MERGED = 8
"""Keys that a thread merges: a block looks once for where its keys begin and end among the others."""

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
/* Whether a number is among sorted ones. */
__device__ __forceinline__ bool is_among(const long long* sorted, long long size, long long number)
{
    long long at = before(sorted, 0, size, number);
    return at < size && sorted[at] == number;
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


def searched(keys: Sequence[Array], wanted: Sequence[Array], *, is_after: bool) -> Array:
    """For each wanted key of several parts the number of sorted keys before it; of equal ones, too, if it is after
    them."""
    return _searching(len(keys))(*keys, *wanted, len(keys[0]), int(is_after))


def merged(keys: Array, more: Array) -> Array:
    """Two sorted sets of keys as one."""
    import cupy

    size = len(keys) + len(more)
    out = cupy.empty(_roomy(size), keys.dtype)[:size]
    for own, others in ((keys, more), (more, keys)):
        blocks = -(-len(own) // (THREADS * _MERGED))
        _merging()((blocks,), (THREADS,), (own, np.int64(len(own)), others, np.int64(len(others)), out))
    return out


def _roomy(size: int) -> int:
    """A size that is not much larger, of which there are few: what grows from round to round then finds memory that it
    has left before, instead of asking the device for more."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step


def distinct(keys: Array) -> tuple[Array, Array]:
    """The distinct ones of sorted keys, of which there is one at least, and how often each is there."""
    import cupy

    size = len(keys)
    ranks = cupy.cumsum(_telling()(keys, size=size))
    number = int(ranks[-1])
    found, starts = cupy.empty(number, keys.dtype), cupy.empty(number + 1, np.int64)
    _placing()(keys, ranks, size, found, starts, size=size)
    return found, starts[1:] - starts[:-1]


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
        f"is_held = is_among(&keys[0], number, {_key(columns)})", "hold", preamble=SEARCH,
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


@cache
def _searching(parts: int) -> Any:
    import cupy

    given = [f"raw int64 k{n}" for n in range(parts)] + [f"int64 w{n}" for n in range(parts)]
    is_less = "".join(
        f"is_less = k{n}[middle] < w{n} || (k{n}[middle] == w{n} && is_less);" for n in reversed(range(parts))
    )
    return cupy.ElementwiseKernel(
        f"{', '.join(given)}, int64 number, int64 is_after", "int64 place",
        "long long low = 0, high = number;"
        "while (low < high) {"
        f"long long middle = (low + high) >> 1; bool is_less = is_after != 0; {is_less}"
        "if (is_less) low = middle + 1; else high = middle; }"
        "place = low", f"search{parts}",
    )  # fmt: skip


@cache
def _telling() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "raw int64 keys", "int64 is_first", "is_first = i == 0 || keys[i] != keys[i - 1]", "tell"
    )


@cache
def _placing() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "raw int64 keys, raw int64 ranks, int64 number", "raw int64 found, raw int64 starts",
        "long long rank = ranks[i];"
        "if (i == 0 || keys[i] != keys[i - 1]) { found[rank - 1] = keys[i]; starts[rank - 1] = i; }"
        "if (i == number - 1) starts[rank] = number", "place",
    )  # fmt: skip


_MERGE = r"""
/* Puts every key after as many of its own as stand before it, and as many of the others as are less: for the keys of a
   block they lie between those of its first and its last. */
extern "C" __global__ void merge(
    const long long* keys, long long size, const long long* others, long long number, long long* merged)
{
    __shared__ long long first, last;
    long long tile = blockDim.x * (long long) MERGED, at = blockIdx.x * tile;
    long long end = at + tile < size ? at + tile : size;
    if (threadIdx.x == 0) first = before(others, 0, number, keys[at]);
    if (threadIdx.x == 32) last = before(others, 0, number, keys[end - 1]);
    __syncthreads();
    for (long long own = at + threadIdx.x; own < end; own += blockDim.x) {
        long long key = keys[own];
        merged[own + before(others, first, last, key)] = key;
    }
}
"""


@cache
def _merging() -> Any:
    import cupy

    return cupy.RawKernel(SEARCH + _MERGE.replace("MERGED", str(_MERGED)), "merge")
