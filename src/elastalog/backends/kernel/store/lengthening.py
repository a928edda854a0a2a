"""Arrays of words that become longer, or shorter, where they are.

Long ones are mappings of the system, which gives them large pages, moves pages and not their content when they become
longer, and clears a page for the thread that first touches it. Numpy asks for large pages too, but copies an array that
has them whenever it becomes longer, and clears what is new in the thread that asks.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from elastalog.backends.kernel.store.memory import Vector
from elastalog.diagnostics.quota import take
from elastalog.settings import SETTINGS

_PAGE = 1 << 21
"""Bytes of a large page. Mappings of whole ones begin where one does."""

_WORD = 4
_HAS_MAPPINGS = sys.platform == "linux"


def lengthen(owner: object, name: str, used: int, length: int) -> None:
    """Gives the array that an attribute holds another length. The first `used` entries are kept; those behind are of
    any value. If somebody else refers to the array, it is copied to become longer, and keeps its memory otherwise. When
    memory ends, or Ctrl-C comes, it is as before."""
    array: Vector = getattr(owner, name)
    shape, former, mapping = array.shape[1:], len(array), _mapping_of(array)
    take((length - former) * prod(shape) * _WORD)
    del array  # so that nobody refers to it
    if mapping is not None:
        _resize_mapping(owner, name, mapping, former, length, shape)
    elif length < former or _size_of(length, shape) < SETTINGS.map_from or not _HAS_MAPPINGS:
        _resize(owner, name, (length, *shape))
    array = getattr(owner, name)
    if len(array) < length:
        longer = words(length, shape)
        longer[:used] = array[:used]
        setattr(owner, name, longer)


def _resize(owner: object, name: str, shape: tuple[int, ...]) -> None:
    array: Vector = getattr(owner, name)
    try:
        setattr(owner, name, _nothing(shape[1:]))
        with suppress(ValueError):  # somebody refers to it
            array.resize(shape)
    finally:
        setattr(owner, name, array)


def _resize_mapping(
    owner: object, name: str, mapping: mmap.mmap, former: int, length: int, shape: tuple[int, ...]
) -> None:
    now = min(former, length)
    try:
        setattr(owner, name, _nothing(shape))
        with suppress(BufferError):  # somebody refers to the array
            mapping.resize(_size_of(length, shape))
            now = length
    except OSError:
        raise MemoryError from None
    finally:
        setattr(owner, name, _within(mapping, now, shape))


def _nothing(shape: tuple[int, ...]) -> Vector:
    """What stands for an array while nobody may refer to it."""
    return np.empty((0, *shape), np.int32)


def words(length: int, shape: tuple[int, ...]) -> Vector:
    """An array of so many entries, each of this shape, of any value."""
    size = _size_of(length, shape)
    if size < SETTINGS.map_from or not _HAS_MAPPINGS:
        return np.empty((length, *shape), np.int32)
    try:
        mapping = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError from None
    with suppress(OSError):  # a system without large pages
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return _within(mapping, length, shape)


def _size_of(length: int, shape: tuple[int, ...]) -> int:
    return -(-length * prod(shape) * _WORD // _PAGE) * _PAGE


def _within(mapping: mmap.mmap, length: int, shape: tuple[int, ...]) -> Vector:
    """The first entries of a mapping. Unlike one that numpy is given a buffer for, the array keeps it from being
    resized."""
    number = length * prod(shape)
    return np.asarray(memoryview(mapping)[: number * _WORD].cast("i", (length, *shape)))


def _mapping_of(array: Vector) -> mmap.mmap | None:
    base: Any = array.base
    return base.obj if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap) else None
