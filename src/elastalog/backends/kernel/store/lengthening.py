"""Arrays of words that become longer, or shorter, where they are.

Short ones are numpy's. Long ones lie in address space that is reserved for as many entries as there may ever be: the
system gives a page when a thread first touches it, so that what is reserved costs nothing, and no address changes when
an array becomes longer: it is another view of the same memory. Pages behind a shorter one are given back. What is
reserved has large pages, is no part of core dumps, and is private to each process after a fork.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from elastalog.backends.kernel.store.memory import Vector
from elastalog.diagnostics import quota
from elastalog.settings import SETTINGS

_MOST = 1 << 30
"""Entries for which there is address space."""

_PAGE = 1 << 21
"""Bytes of a large page. Mappings of whole ones begin where one does."""

_WORD = 4
_HAS_MAPPINGS = sys.platform == "linux"
_NOT_COUNTED = 0x4000
"""MAP_NORESERVE, which `mmap` has no name for in Python 3.11: address space takes nothing from others."""


def lengthen(owner: object, name: str, used: int, length: int) -> None:
    """Gives the array that an attribute holds another length. The first `used` entries are kept; those behind are of
    any value. A short array that somebody else refers to is copied to become longer, and keeps its memory otherwise.
    When memory ends, or Ctrl-C comes, it is as before."""
    array: Vector = getattr(owner, name)
    shape, former, mapping = array.shape[1:], len(array), _mapping_of(array)
    size, entry = _size_of(length, shape), prod(shape) * _WORD
    is_reserved = size >= SETTINGS.map_from and _HAS_MAPPINGS
    if is_reserved:
        quota.take((length - former) * entry)
        if mapping is None:
            quota.require(used * entry, quota.LIMIT.get())
    else:  # NumPy touches all of it
        quota.ask((length - former) * entry)
    del array  # so that nobody refers to it
    if mapping is not None and size <= len(mapping):
        setattr(owner, name, _within(mapping, length, shape))
        if length < former:
            mapping.madvise(mmap.MADV_DONTNEED, size, len(mapping) - size)
        return
    if length < former or not is_reserved:
        _resize(owner, name, (length, *shape))
    array = getattr(owner, name)
    if len(array) < length:
        longer = words(length, shape)
        longer[:used] = array[:used]
        setattr(owner, name, longer)


def _resize(owner: object, name: str, shape: tuple[int, ...]) -> None:
    array: Vector = getattr(owner, name)
    try:
        setattr(owner, name, np.empty((0, *shape[1:]), np.int32))
        with suppress(ValueError):  # somebody refers to it
            array.resize(shape)
    finally:
        setattr(owner, name, array)


def words(length: int, shape: tuple[int, ...]) -> Vector:
    """An array of so many entries, each of this shape, of any value."""
    size = _size_of(length, shape)
    if size < SETTINGS.map_from or not _HAS_MAPPINGS:
        return np.empty((length, *shape), np.int32)
    return _within(_reserved(size, _size_of(_MOST, shape)), length, shape)


def _reserved(least: int, most: int) -> mmap.mmap:
    """Address space of so many bytes at most, as there are: a system that counts it, or a limit, may leave less."""
    size = max(least, most) if _is_unlimited() else least
    while True:
        try:
            mapping = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NOT_COUNTED)
            break
        except (OSError, OverflowError):
            if size == least:
                raise MemoryError from None
            size = max(least, size // 2 // _PAGE * _PAGE)
    for advice in (mmap.MADV_HUGEPAGE, mmap.MADV_DONTDUMP):
        with suppress(OSError):  # a system without
            mapping.madvise(advice)
    return mapping


def _is_unlimited() -> bool:
    """Whether address space has no limit of its own."""
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def _size_of(length: int, shape: tuple[int, ...]) -> int:
    return -(-length * prod(shape) * _WORD // _PAGE) * _PAGE


def _within(mapping: mmap.mmap, length: int, shape: tuple[int, ...]) -> Vector:
    """The first entries of a mapping."""
    number = length * prod(shape)
    return np.asarray(memoryview(mapping)[: number * _WORD].cast("i", (length, *shape)))


def _mapping_of(array: Vector) -> mmap.mmap | None:
    base: Any = array.base
    return base.obj if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap) else None
