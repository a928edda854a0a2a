"""Facts as sorted keys: found by binary search, joined by ranges, grown by merging. Large arrays are never sorted
again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.backends.gpu import fused
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.gpu.device_arrays import distinct
from elastalog.backends.gpu.packing import KEY_BITS, Keys, Packing

LATE = 16
"""Facts of late rounds are kept beside as many times more."""


def search(arrays: Arrays, keys: Keys, wanted: Keys, side: str) -> Array:
    """For each wanted key the number of keys before it (`left`), or before and equal to it (`right`)."""
    if arrays.is_device:
        return arrays.module.search(keys, wanted, is_after=side == "right")
    if len(keys) == 1:
        return arrays.module.searchsorted(keys[0], wanted[0], side=side)
    return np.searchsorted(_as_texts(keys), _as_texts(wanted), side=side)  # type: ignore[call-overload]


def _as_texts(keys: Keys) -> Array:
    """Keys of several parts as texts of bytes, which NumPy compares from the highest on: no part is negative."""
    return np.stack(keys, axis=1).astype(">i8").view(f"S{8 * len(keys)}").ravel()


def is_member(arrays: Arrays, keys: Keys, wanted: Keys) -> Array:
    """Which of the wanted keys are among `keys`."""
    if not len(keys[0]):
        return arrays.module.zeros(len(wanted[0]), bool)
    at = arrays.module.minimum(search(arrays, keys, wanted, "left"), len(keys[0]) - 1)
    found = keys[0][at] == wanted[0]
    for part, sought in zip(keys[1:], wanted[1:], strict=True):
        found &= part[at] == sought
    return found


def in_order(arrays: Arrays, keys: Keys, bits: int = KEY_BITS) -> Keys:
    """The keys sorted. `bits`: how many the keys have, if they consist of one part."""
    arrays.claim(2 * sum(part.nbytes for part in keys))
    if len(keys) == 1:
        return (arrays.module.sort(keys[0], bits) if arrays.is_device else np.sort(keys[0]),)
    order = arrays.module.lexsort(keys[::-1])
    return tuple(part[order] for part in keys)


def merged(arrays: Arrays, keys: Keys, more: Keys) -> Keys:
    """Two sorted sets of keys as one."""
    if not len(more[0]):
        return keys
    if not len(keys[0]):
        return more
    module = arrays.module
    size = len(keys[0]) + len(more[0])
    arrays.claim(size * (8 * len(keys) + 16 * (len(keys) > 1)))
    if arrays.is_device and len(keys) == 1:
        return (fused.merged(module, keys[0], more[0]),)
    places = search(arrays, keys, more, "left") + module.arange(len(more[0]))
    places_before = search(arrays, more, keys, "left") + module.arange(len(keys[0]))
    parts = []
    for part, new in zip(keys, more, strict=True):
        out = module.empty(size, np.int64)
        out[places] = new
        out[places_before] = part
        parts.append(out)
    return tuple(parts)


def counted(arrays: Arrays, keys: Keys, bits: int, counts: Array | None = None) -> tuple[Keys, Array]:
    """The distinct keys in order, and how often each was met; `counts` says how often it was before. `bits`: of keys of
    one part."""
    module = arrays.module
    if not len(keys[0]):
        return keys, module.zeros(0, np.int64)
    if counts is None and len(keys) == 1:
        keys = in_order(arrays, keys, bits)
        if arrays.is_device:
            arrays.claim(3 * keys[0].nbytes)
            found, numbers = distinct(keys[0])
            return (found,), numbers
    else:
        arrays.claim(2 * sum(part.nbytes for part in keys))
        order = arrays.module.lexsort(keys[::-1])
        keys = tuple(part[order] for part in keys)
        counts = None if counts is None else counts[order]
    at, ends = segments(arrays, keys)
    if counts is None:
        numbers = ends - at
    else:
        sums = module.concatenate((module.zeros(1, np.int64), module.cumsum(counts)))
        numbers = sums[ends] - sums[at]
    return tuple(part[at] for part in keys), numbers


def segments(arrays: Arrays, keys: Keys) -> tuple[Array, Array]:
    """Where equal ones of sorted keys begin, and where they end."""
    module = arrays.module
    is_other = keys[0][1:] != keys[0][:-1]
    for part in keys[1:]:
        is_other = is_other | (part[1:] != part[:-1])
    at = module.flatnonzero(module.concatenate((module.ones(1, bool), is_other)))
    return at, module.concatenate((at[1:], module.full(1, len(keys[0]), np.int64)))


class SortedIndex:
    """The facts of a relation in one order of columns: `new` all of them, `old` those before the latest round. For
    relations below the stratum they are the same.

    Facts of late rounds are kept beside the others until they are many, or all are needed in one array: a large array
    that is only searched is not written anew every round."""

    __slots__ = ("_arrays", "_late", "_most", "old", "packing")

    def __init__(self, arrays: Arrays, packing: Packing, columns: Sequence[Array]) -> None:
        self._arrays = arrays
        self.packing = packing
        self._most = self.keys(columns)
        self._late = self._nothing()
        self.old: Keys = self._most

    def keys(self, columns: Sequence[Array]) -> Keys:
        """The keys of facts given by the relation's columns, sorted."""
        keys = self.packing.pack([columns[column] for column in self.packing.order], self._arrays)
        return in_order(self._arrays, keys, self.packing.bits)

    def __len__(self) -> int:
        return len(self._most[0]) + len(self._late[0])

    @property
    def runs(self) -> tuple[Keys, Keys]:
        """The facts in two sorted parts."""
        return self._most, self._late

    @property
    def new(self) -> Keys:
        """All facts, sorted."""
        if len(self._late[0]):
            self._most = merged(self._arrays, self._most, self._late)
            self._late = self._nothing()
        return self._most

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for run in self.runs for part in run)

    def _nothing(self) -> Keys:
        return tuple(self._arrays.module.empty(0, np.int64) for _ in range(self.packing.parts))

    def settle(self) -> SortedIndex:
        """No round brings facts any more."""
        self.old = self.new
        return self

    def start(self) -> None:
        """All facts are of the first round."""
        self.old = self._nothing()

    def stay(self, *, keeps_old: bool) -> None:
        """A round has brought no facts."""
        self.old = self.new if keeps_old else self._nothing()

    def take(self, more: Keys, *, keeps_old: bool) -> None:
        """Takes in the facts of a round."""
        self.stay(keeps_old=keeps_old)
        self._late = merged(self._arrays, self._late, more)
        if len(self._late[0]) * LATE >= len(self._most[0]):
            self._most = self.new

    def knows(self, keys: Keys) -> Array:
        """Which keys of all columns are those of facts."""
        is_known = is_member(self._arrays, self._most, keys)
        return is_known | is_member(self._arrays, self._late, keys) if len(self._late[0]) else is_known

    def holds(self, values: Sequence[Array], keys: Keys) -> Array:
        """Which rows of values of all columns are facts, among `keys`."""
        if self.packing.is_fused(values, self._arrays):
            return fused.held(self._arrays.module, values, self.packing.shifts(len(values)), keys[0])
        return is_member(self._arrays, keys, self.packing.pack(values, self._arrays))

    def ranges(self, values: Sequence[Array], keys: Keys) -> tuple[Array, Array]:
        """For rows of values of the first columns: where the facts with these begin among `keys`, and how many they
        are."""
        packing = self.packing
        if packing.is_fused(values, self._arrays):
            rest = packing.rest(len(values))[0]
            return fused.ranges(self._arrays.module, values, packing.shifts(len(values)), rest, keys[0])
        first = packing.pack(values, self._arrays)
        last = tuple(part + most for part, most in zip(first, packing.rest(len(values)), strict=True))
        starts = search(self._arrays, keys, first, "left")
        return starts, search(self._arrays, keys, last, "right") - starts
