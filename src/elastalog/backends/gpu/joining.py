"""What a join does with a chunk of its pairs, in one pass over them: the columns of the rows that follow, or, at the
end of a clause, the keys of the heads that are not known. One kernel on a device; NumPy does the same array by array.
"""

from __future__ import annotations

from collections.abc import Sequence

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
class Part:
    """A word of a pair, moved into its place in a key: that of the left row in a column or, without one, what a shift
    and a mask take out of the fact's key. `part`: of that key."""

    column: Array | None
    origin: int = 0
    mask: int = 0
    add: int = 0
    shift: int = 0
    part: int = 0


def columns_of(arrays: Arrays, pairs: Pairs, begin: int, size: int, parts: Sequence[Part]) -> list[Array]:
    """The words of some pairs, from one on: a column for each part."""
    is_fused = arrays.is_device and pairs.is_narrow
    arrays.claim((4 * len(parts) + (0 if is_fused else 16)) * size)
    if is_fused:
        return fused.pair_columns(arrays.module, pairs, begin, size, parts)
    left, facts = _enumerated(arrays, pairs, begin, size)
    return [_numbers(part, left, facts).astype(np.int32) for part in parts]


def unknown_heads(
    arrays: Arrays, pairs: Pairs, begin: int, size: int, parts: Sequence[Part], known: Sequence[Array]
) -> Array:
    """The keys of the heads of some pairs, from one on, but for those among the sorted keys of one of two `known`; in
    any order. All have one part, as the keys of facts have."""
    arrays.claim((16 if arrays.is_device else 32) * size)
    if arrays.is_device:
        return fused.pair_heads(arrays.module, pairs, begin, size, parts, known)
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
    if part.column is not None:
        return part.column[left].astype(np.int64) + part.add
    return ((facts[part.part] >> part.origin) & part.mask) + part.add
