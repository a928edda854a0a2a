"""Passes over keys and pairs that a device makes in one launch each, where NumPy makes several over arrays: packing,
unpacking, searching, merging and joining. Only called with arrays of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from elastalog.backends.gpu.device_arrays import MOST_PARTS as MOST_PARTS
from elastalog.backends.gpu.device_arrays import THREADS, DeviceArray, DeviceModule, blocks_for, by_value

if TYPE_CHECKING:
    from elastalog.backends.gpu.joining import Pairs, Part

_MERGED = 8 * THREADS
"""Keys that a block merges: it looks once for where they begin and end among the others."""

Place: TypeAlias = tuple[int, int]
"""A column in a key: what is added to its words, and the shift."""
Unpacked: TypeAlias = tuple[DeviceArray, int, int, int]
"""A column: the part of keys that has it, its shift there, the mask, and what is added to its words."""


def packed(module: DeviceModule, columns: Sequence[DeviceArray], places: Sequence[Place]) -> DeviceArray:
    """The keys of rows given by columns."""
    size = len(columns[0])
    keys = module.empty(size, np.int64)
    _launch(module, "pack", size, (keys.place, size), _columns(columns, places))
    return keys


def unpacked(module: DeviceModule, columns: Sequence[Unpacked], *, is_matrix: bool = False) -> list[DeviceArray]:
    """The words of columns, each by itself, or all as those of a matrix."""
    size = len(columns[0][0])
    if is_matrix:
        given = [module.empty((size, len(columns)), np.int32)]
        found = [given[0][:, column] for column in range(len(columns))]
    else:
        given = found = [module.empty(size, np.int32) for _ in columns]
    for begin in range(0, len(columns), MOST_PARTS):
        some = range(begin, min(begin + MOST_PARTS, len(columns)))
        words = [
            word
            for n in some
            for keys, shift, mask, add in (columns[n],)
            for word in (found[n].place, found[n].step, add, shift, mask, keys.place)
        ]
        _launch(module, "unpack", size, (size,), by_value(len(some), words, 6))
    return given


def held(
    module: DeviceModule, columns: Sequence[DeviceArray], places: Sequence[Place], keys: DeviceArray
) -> DeviceArray:
    """Which of the rows given by columns are among sorted keys."""
    size = len(columns[0])
    found = module.empty(size, np.bool_)
    _launch(module, "hold", size, (keys.place, len(keys), found.place, size), _columns(columns, places))
    return found


def ranges(
    module: DeviceModule, columns: Sequence[DeviceArray], places: Sequence[Place], rest: int, keys: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """For rows given by their first columns, where among sorted keys those begin that begin so, and how many they are.
    `rest` is what all other columns add at most."""
    size = len(columns[0])
    starts, counts = module.empty(size, np.int64), module.empty(size, np.int64)
    given = (keys.place, len(keys), rest, starts.place, counts.place, size)
    _launch(module, "range", size, given, _columns(columns, places))
    return starts, counts


def merged(module: DeviceModule, keys: DeviceArray, more: DeviceArray) -> DeviceArray:
    """Two sorted sets of keys as one."""
    out = module.empty(len(keys) + len(more), np.int64)
    for own, others in ((keys, more), (more, keys)):
        given = (own.place, len(own), others.place, len(others), out.place)
        module.driver.launch("merge", blocks_for(len(own), _MERGED), THREADS, given)
    return out


def pair_columns(module: DeviceModule, pairs: Pairs, begin: int, size: int, parts: Sequence[Part]) -> list[DeviceArray]:
    """The words of some pairs, from one on: a column for each part."""
    columns = [module.empty(size, np.int32) for _ in parts]
    for first in range(0, len(parts), MOST_PARTS):
        some = slice(first, first + MOST_PARTS)
        _launch(module, "pair_columns", size, _pairs(pairs, begin, size), _origins(parts[some], columns[some]))
    return columns


def pair_heads(
    module: DeviceModule, pairs: Pairs, begin: int, size: int, parts: Sequence[Part], known: Sequence[DeviceArray]
) -> DeviceArray:
    """The keys of the heads of some pairs, from one on, but for those among the sorted keys of one of two `known`."""
    keys, number = module.empty(size, np.int64), module.zeros(1, np.int64)
    sets = [word for one in known for word in (one.place, len(one))]
    given = (*_pairs(pairs, begin, size), *sets, number.place, keys.place)
    _launch(module, "pair_heads", size, given, _origins(parts, ()))
    found = number[0]
    return keys if found == size else keys[:found].copy()  # so that the rest need not be held


def _launch(
    module: DeviceModule, function: str, size: int, given: tuple[int, ...], parts: tuple[int, ...]
) -> None:  # fmt: skip
    if size:
        module.driver.launch(function, blocks_for(size), THREADS, (*given, *parts))


def _columns(columns: Sequence[DeviceArray], places: Sequence[Place]) -> tuple[int, ...]:
    words = [
        word
        for column, (add, shift) in zip(columns, places, strict=True)
        for word in (column.place, column.step, add, shift, 0, 0)
    ]
    return by_value(len(columns), words, 6)


def _pairs(pairs: Pairs, begin: int, size: int) -> tuple[int, ...]:
    ends, (facts,) = pairs.ends, pairs.facts
    return pairs.starts.place, pairs.counts.place, ends.place, len(ends), facts.place, begin, size


def _origins(parts: Sequence[Part], columns: Sequence[DeviceArray]) -> tuple[int, ...]:
    words: list[int] = []
    for number, part in enumerate(parts):
        place, step = (0, 0) if part.column is None else (part.column.place, part.column.step)
        words += (place, step, part.origin, part.mask, part.add, part.shift, columns[number].place if columns else 0)
    return by_value(len(parts), words, 7)
