"""Arrays of the kernel: their types, how they are made and grown, and where compiled code finds them.

Short arrays are numpy's, and move when they grow. From `SETTINGS.map_from` bytes on an array lies in address space that
is reserved for as many entries as there may ever be: the system gives a page when a thread first touches it, so that
what is reserved costs nothing, and no address changes when the array becomes longer: it is another view of the same
memory. Pages behind a shorter one are given back. Reserved memory has large pages, is not part of core dumps, and is
private to each process after a fork.

Compiled code that works on many relations finds their arrays by descriptors: records that stay in place for as long as
the relation or the index lives, and are written again when one of its arrays has moved.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from ctypes import Structure
from itertools import count
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    INT,
    KEYS,
    MATRIX,
    STATE,
    TABLE,
    WORDS,
    operator,
    place_of,
    record,
    record_at,
    types,
)
from elastalog.diagnostics import quota
from elastalog.diagnostics.quota import take
from elastalog.settings import SETTINGS

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]

LARGE_TABLE = 1 << 22
MOST_TAKEN, MOST_TAKEN_AT_ONCE = 11, 13
"""How many of 16 slots of a set table may be taken, and of a large one that was filled at once: beyond the first share
insertion gets slower, so that tables which are still to grow do so earlier."""

NO_KEYS: Vector = np.zeros(1, np.uint64)
NO_WORDS: Vector = np.zeros(0, np.int32)
NO_TABLE: Vector = np.zeros(0, np.uint32)


class Stamps:
    """Numbers, none of which is given twice; `last` is the one given last."""

    def __init__(self) -> None:
        self._numbers = count()
        self.last = -1

    def take(self) -> int:
        """The next one, in whatever thread."""
        self.last = number = next(self._numbers)
        return number


STAMPS = Stamps()
"""The owner of arrays takes a number from here before one of them is replaced or moves, so that those who have written
down where they are see that they must look again. Before, since Ctrl-C may come in between; no number comes twice."""


def cleared(shape: int | tuple[int, ...], dtype: Any) -> Vector:
    """Zeros. Many are as the system gives them, page by page, to the thread that first touches one."""
    size = (shape if isinstance(shape, int) else prod(shape)) * np.dtype(dtype).itemsize
    if size >= SETTINGS.map_from and _HAS_MAPPINGS:
        size = -(-size // _PAGE) * _PAGE
        return np.ndarray(shape, dtype, _reserved(size, size))
    return np.zeros(shape, dtype)


def sparse_bits(size: int) -> Vector:
    """`size` bits, all clear, few of which will be set: pages that are never touched take no memory, while zeros of
    NumPy may be written out in memory that was used before."""
    if not _HAS_MAPPINGS:
        return np.zeros(size // 64, np.uint64)
    return np.frombuffer(mmap.mmap(-1, size // 8, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint64)


def empty_table(slots: int) -> Vector:
    """A set table without facts (see `set_table`)."""
    return cleared(slots, np.uint32)


def empty_keys(size: int) -> Vector:
    """The keys of an index without rows, and behind them the bits of its filter (see `postings`)."""
    return cleared(size + size // 16, np.uint64)[:size]


def power_of_two(size: int) -> int:
    """The least power of two that is at least `size` and 16."""
    return 1 << max(4, (size - 1).bit_length())


def rows_for(slots: int) -> int:
    """How many rows a set table of `slots` slots may hold before it grows."""
    return slots * MOST_TAKEN // 16


def slots_for(rows: int) -> int:
    """The size of the smallest set table that may hold `rows` rows."""
    slots = power_of_two(rows * 16 // MOST_TAKEN)
    return slots if rows <= rows_for(slots) else 2 * slots


def slots_at_once(rows: int) -> tuple[int, int]:
    """The size of a set table for rows that come at once, with few to follow; and how many it may hold."""
    slots = slots_for(rows)
    full = slots // 2 * MOST_TAKEN_AT_ONCE // 16
    return (slots // 2, full) if slots > LARGE_TABLE and rows <= full else (slots, rows_for(slots))


def grown(array: Vector, used: int, size: int) -> Vector:
    """A longer copy of an array, its first `used` entries kept."""
    take(size * (array.nbytes // max(len(array), 1)) - array.nbytes)
    return longer(array[:used], size)


def longer(array: Vector, size: int, fill: Any = None) -> Vector:
    """A longer copy of an array; what is new in it is `fill`, or of any value."""
    wider = np.empty((size, *array.shape[1:]), array.dtype)
    wider[: len(array)] = array
    if fill is not None:
        wider[len(array) :] = fill
    return wider


def with_room(array: Vector, size: int) -> Vector:
    """The array, or a longer copy if it is not of this size."""
    return array if size <= len(array) else longer(array, max(size, 2 * len(array)))


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
    any value. A short array with other references is copied to become longer, and keeps its memory otherwise.
    When memory ends, or Ctrl-C comes, it is as before."""
    array: Vector = getattr(owner, name)
    shape, former, mapping = array.shape[1:], len(array), _mapping_of(array)
    size, entry = _size_of(length, shape), prod(shape) * _WORD
    is_reserved = size >= SETTINGS.map_from and _HAS_MAPPINGS
    has_room = mapping is not None and size <= len(mapping)
    if is_reserved:
        quota.take((length - former) * entry)
        if not has_room:  # both are there while one is copied
            quota.require(used * entry, quota.process_limit())
    else:  # NumPy touches all of it
        quota.ask((length - former) * entry)
    del array  # so that no reference is left here
    if mapping is not None and has_room:
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
        with suppress(ValueError):  # there is another reference to it
            array.resize(shape)
    finally:
        setattr(owner, name, array)


def words(length: int, shape: tuple[int, ...]) -> Vector:
    """An array of `length` entries, each of this shape, of any value."""
    size = _size_of(length, shape)
    if size < SETTINGS.map_from or not _HAS_MAPPINGS:
        return np.empty((length, *shape), np.int32)
    return _within(_reserved(size, _size_of(_MOST, shape)), length, shape)


def _reserved(least: int, most: int) -> mmap.mmap:
    """Address space of `most` bytes, or of fewer, but at least `least`, where the system or a limit leaves no more."""
    import resource

    is_unlimited = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    size = max(least, most) if is_unlimited else least
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


def _size_of(length: int, shape: tuple[int, ...]) -> int:
    return -(-length * prod(shape) * _WORD // _PAGE) * _PAGE


def _within(mapping: mmap.mmap, length: int, shape: tuple[int, ...]) -> Vector:
    """The first entries of a mapping."""
    number = length * prod(shape)
    return np.asarray(memoryview(mapping)[: number * _WORD].cast("i", (length, *shape)))


def _mapping_of(array: Vector) -> mmap.mmap | None:
    base: Any = array.base
    return base.obj if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap) else None


@record
class RelationDescriptor(Structure):
    """Where a relation is, kept as long as the relation lives: how far it goes, `used` rows and `touched_used` entries,
    stands here and nowhere else; the arrays that hold them are as written by `KernelRelation.lay_out`. `changed`: the
    entries that strata above hear of in the update under way. `given`: those of explicit facts that it changes in a
    relation with rules; first `going` of them that are deleted, then `coming` that are inserted. `number`: that of the
    relation in its program. The others: see `KernelRelation`."""

    rows: int
    width: int
    room: int
    table: int
    table_size: int
    shift: int
    level: int
    count: int
    touched: int
    touched_room: int
    is_annotated: int
    used: int
    touched_used: int
    changed: int
    changed_number: int
    given: int
    going: int
    coming: int
    number: int
    present: int
    lowest: int
    highest: int
    is_settled: int
    generation: int


@record
class IndexDescriptor(Structure):
    """Where an index is; `added` rows are in it, a number that is kept here and nowhere else."""

    columns: int
    columns_number: int
    kind: int
    keys: int
    keys_size: int
    shift: int
    slots: int
    slots_size: int
    pool: int
    pool_size: int
    state: int
    state_size: int
    added: int


relation_descriptor_at = record_at(RelationDescriptor)
index_descriptor_at = record_at(IndexDescriptor)


@operator(types.void, INT, MATRIX, INT, TABLE, INT, WORDS, WORDS, MATRIX)
def write_place(address, rows, full, table, shift, level, count, touched):
    """Writes down where a relation is; its table, if it has one, has room for `full` rows."""
    place = relation_descriptor_at(address, 0)
    place.rows = place_of(rows)
    place.width = rows.shape[1]
    place.room = min(rows.shape[0], full) if table.shape[0] > 0 else rows.shape[0]
    place.table = place_of(table)
    place.table_size = table.shape[0]
    place.shift = shift
    place.level = place_of(level)
    place.count = place_of(count)
    place.touched = place_of(touched)
    place.touched_room = touched.shape[0]


@operator(types.void, INT, COLUMNS, INT, KEYS, INT, MATRIX, WORDS, STATE)
def write_index(address, columns, kind, keys, shift, slots, pool, state):
    """Writes down where an index is."""
    place = index_descriptor_at(address, 0)
    place.columns = place_of(columns)
    place.columns_number = columns.shape[0]
    place.kind = kind
    place.keys = place_of(keys)
    place.keys_size = keys.shape[0]
    place.shift = shift
    place.slots = place_of(slots)
    place.slots_size = slots.shape[0]
    place.pool = place_of(pool)
    place.pool_size = pool.shape[0]
    place.state = place_of(state)
    place.state_size = state.shape[0]
