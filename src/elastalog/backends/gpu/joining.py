"""What a join does with a chunk of its pairs, in one pass over them: the columns of the rows that follow, or, at the
end of a clause, the keys of the heads that are not known. One kernel on a device; NumPy does the same array by array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from elastalog.backends.gpu import fused
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.gpu.packing import Keys
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of a join: row `i` of the left side with `counts[i]` facts from the position `starts[i]` of `facts` on,
    given by their keys. `ends` are the running sums of `counts`."""

    starts: Array
    counts: Array
    ends: Array
    facts: Keys

    @property
    def is_narrow(self) -> bool:
        """The keys of facts have one part."""
        return len(self.facts) == 1


@dataclass(frozen=True, slots=True)
class FromRow:
    """A word of the left row, moved into its place in a key."""

    column: Array
    add: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class FromFact:
    """A word taken out of the key of a fact, and moved into its place in a key. `part`: of the fact's key."""

    origin: int
    mask: int
    add: int = 0
    shift: int = 0
    part: int = 0


Part = FromRow | FromFact


def columns_of(arrays: Arrays, pairs: Pairs, begin: int, size: int, parts: Sequence[Part]) -> list[Array]:
    """The words of some pairs, from one on: a column for each part."""
    is_fused = arrays.is_device and pairs.is_narrow
    arrays.claim((4 * len(parts) + (0 if is_fused else 16)) * size)
    if is_fused:
        columns = [arrays.module.empty(size, np.int32) for _ in parts]
        _launch(_columns_kernel, pairs, begin, size, parts, (), columns)
        return columns
    left, facts = _enumerated(arrays, pairs, begin, size)
    return [_numbers(part, left, facts).astype(np.int32) for part in parts]


def unknown_heads(
    arrays: Arrays, pairs: Pairs, begin: int, size: int, parts: Sequence[Part], known: Sequence[Array]
) -> Array:
    """The keys of the heads of some pairs, from one on, but for those among the sorted keys of one of two `known`; in
    any order. All have one part, as the keys of facts have."""
    arrays.claim((16 if arrays.is_device else 32) * size)
    if arrays.is_device:
        keys, number = arrays.module.empty(size, np.int64), arrays.module.zeros(1, np.uint64)
        many, few = known
        more = many, np.int64(len(many)), few, np.int64(len(few)), number, keys
        _launch(_heads_kernel, pairs, begin, size, parts, more, ())
        found = int(number[0])
        return keys if found == size else keys[:found].copy()  # so that the rest need not be held
    left, facts = _enumerated(arrays, pairs, begin, size)
    keys = np.zeros(size, np.int64)
    for part in parts:
        keys |= _numbers(part, left, facts) << part.shift
    for one in known:
        if len(one):
            at = np.minimum(np.searchsorted(one, keys), len(one) - 1)
            keys = keys[one[at] != keys]
    return keys


def _enumerated(arrays: Arrays, pairs: Pairs, begin: int, size: int) -> tuple[Array, Keys]:
    """The left row and the key of the fact of each pair."""
    module = arrays.module
    numbers = module.arange(begin, begin + size)
    left = module.searchsorted(pairs.ends, numbers, side="right")
    position = numbers - (pairs.ends - pairs.counts)[left] + pairs.starts[left]
    return left, tuple(part[position] for part in pairs.facts)


def _numbers(part: Part, left: Array, facts: Keys) -> Array:
    if isinstance(part, FromRow):
        return part.column[left].astype(np.int64) + part.add
    return ((facts[part.part] >> part.origin) & part.mask) + part.add


# --- on a device ---------------------------------------------------------------------------------------------------

_PAIRS = (
    "const long long* starts, const long long* counts, const long long* ends, long long lefts, "
    "const long long* facts, long long begin, long long size"
)
_FIND_ROWS = r"""
    __shared__ long long first, last;
    long long at = blockIdx.x * (long long) blockDim.x, thread = at + threadIdx.x;
    /* Pairs are in the order of left rows: those of a block lie between the rows of its first and last pair. */
    if (threadIdx.x == 0) first = before(ends, 0, lefts, begin + at + 1);
    if (threadIdx.x == 32) {
        long long most = at + blockDim.x - 1;
        last = before(ends, 0, lefts, begin + (most < size ? most : size - 1) + 1);
    }
    __syncthreads();
"""
_FIND_PAIR = r"""
    long long wanted = begin + thread, left = before(ends, first, last, wanted + 1);
    long long fact = facts[starts[left] + (wanted - (ends[left] - counts[left]))];
"""


def _declared(number: int, is_row: bool) -> str:
    origin = f"const int* row{number}" if is_row else f"long long origin{number}, long long mask{number}"
    return f"{origin}, long long add{number}, long long shift{number}"


def _value(number: int, is_row: bool) -> str:
    taken = f"(long long) row{number}[left]" if is_row else f"((fact >> origin{number}) & mask{number})"
    return f"({taken} + add{number})"


@cache
def _columns_kernel(shape: tuple[bool, ...]) -> Any:
    declared = "".join(f", {_declared(n, is_row)}, int* column{n}" for n, is_row in enumerate(shape))
    body = "".join(f"    column{n}[thread] = (int) {_value(n, is_row)};\n" for n, is_row in enumerate(shape))
    return _kernel("columns", declared, f"{_FIND_ROWS}    if (thread >= size) return;\n{_FIND_PAIR}{body}")


@cache
def _heads_kernel(shape: tuple[bool, ...]) -> Any:
    declared = ", const long long* many, long long number, const long long* few, long long fewer"
    declared += ", unsigned long long* total, long long* keys"
    declared += "".join(f", {_declared(n, is_row)}" for n, is_row in enumerate(shape))
    key = " | ".join(f"({_value(n, is_row)} << shift{n})" for n, is_row in enumerate(shape)) or "0LL"
    body = _APPEND.replace("FIND_ROWS", _FIND_ROWS).replace("FIND_PAIR", _FIND_PAIR).replace("KEY", key)
    return _kernel("heads", declared, body)


_APPEND = r"""
    /* A block asks once for room for all keys that it has found: the order of keys does not matter. */
    __shared__ unsigned int found;
    __shared__ unsigned long long room;
    if (threadIdx.x == 0) found = 0;
    FIND_ROWS
    long long key = 0;
    unsigned int place = 0;
    bool is_new = false;
    if (thread < size) {
        FIND_PAIR
        key = KEY;
        is_new = !is_among(many, number, key) && !is_among(few, fewer, key);
        if (is_new) place = atomicAdd(&found, 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) room = atomicAdd(total, (unsigned long long) found);
    __syncthreads();
    if (is_new) keys[room + place] = key;
"""


def _kernel(name: str, declared: str, body: str) -> Any:
    import cupy

    return cupy.RawKernel(f'{fused.SEARCH}extern "C" __global__ void {name}({_PAIRS}{declared})\n{{{body}}}', name)


def _launch(
    kernel: Any,
    pairs: Pairs,
    begin: int,
    size: int,
    parts: Sequence[Part],
    more: tuple[Any, ...],
    columns: Sequence[Array],
) -> None:
    """Runs the kernel for parts of this shape, a thread a pair; `columns`: where the word of each part goes, if it goes
    into one of its own."""
    arguments: list[Any] = [pairs.starts, pairs.counts, pairs.ends, np.int64(len(pairs.ends)), pairs.facts[0]]
    arguments += [np.int64(begin), np.int64(size), *more]
    for number, part in enumerate(parts):
        match part:
            case FromRow(column):
                arguments.append(column)
            case FromFact(origin, mask):
                arguments += [np.int64(origin), np.int64(mask)]
        arguments += [np.int64(part.add), np.int64(part.shift)]
        if columns:
            arguments.append(columns[number])
    shape = tuple(isinstance(part, FromRow) for part in parts)
    kernel(shape)(((size + fused.THREADS - 1) // fused.THREADS,), (fused.THREADS,), tuple(arguments))
