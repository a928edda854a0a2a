"""What the compiled operators of the kernel share beyond `jit.operators`: types, how rows are hashed, arrays by
address, and records.

An operator that works on many relations takes tables of addresses instead of arrays, because handing over an array
costs more than a small join does. A record is a class of annotated fields under a decorator; `row.used = 3` writes
where compiled code reads `row.used`. Compiled code finds a record by the address of its table and its number in it. A
caller that hands out an address keeps the array or the table alive for as long as the address is used.
"""

from __future__ import annotations

import array as arrays
import ctypes
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from elastalog.jit import types as types
from elastalog.jit.intrinsics import array_at
from elastalog.jit.intrinsics import flattened as flattened
from elastalog.jit.intrinsics import group_of_keys as group_of_keys
from elastalog.jit.intrinsics import group_of_numbers as group_of_numbers
from elastalog.jit.intrinsics import place_of as place_of
from elastalog.jit.intrinsics import prefetch as prefetch
from elastalog.jit.intrinsics import record_at as record_at
from elastalog.jit.operators import FINISH as FINISH
from elastalog.jit.operators import GROUP as GROUP
from elastalog.jit.operators import HALF as HALF
from elastalog.jit.operators import LOW as LOW
from elastalog.jit.operators import NONE as NONE
from elastalog.jit.operators import ONE as ONE
from elastalog.jit.operators import inlined as inlined
from elastalog.jit.operators import mix as mix
from elastalog.jit.operators import operator as operator
from elastalog.jit.operators import piece as piece

# As operators convert numbers. In Python they would warn of what is meant: numbers that run over.
np_int32: Any = np.int32
int64: Any = np.int64
uint32: Any = np.uint32
uint64: Any = np.uint64

MATRIX = types.Array(types.int32, 2)
WORDS = types.Array(types.int32, 1)
KEYS = types.Array(types.uint64, 1)
TABLE = types.Array(types.uint32, 1)
COLUMNS = types.Array(types.int64, 1)
STATE = COLUMNS
NUMBERS = types.Array(types.int64, 2)
FLAG = types.boolean
INT = types.int64


@inlined
def pack(high, low):
    return (uint64(uint32(high)) << HALF) | uint64(uint32(low))


@inlined
def hash_row(rows, row, width):
    """The hash of the first columns of a row; equal to `hash_columns` of the same words."""
    if width == 2:
        return mix(pack(rows[row, 0], rows[row, 1])) * FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, column])) + FINISH)
    return value * FINISH


@inlined
def hash_columns(rows, row, columns):
    width = columns.shape[0]
    if width == 2:
        return mix(pack(rows[row, columns[0]], rows[row, columns[1]])) * FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, columns[column]])) + FINISH)
    return value * FINISH


_addressof, _first_byte = ctypes.addressof, ctypes.c_char.from_buffer


def address_of(array: npt.NDArray[Any] | arrays.array[int]) -> int:
    """Where the elements of a contiguous array begin."""
    try:
        return _addressof(_first_byte(array))  # type: ignore[arg-type]  # quicker
    except (TypeError, ValueError):  # it may not be written to, or is empty
        return int(np.asarray(array).__array_interface__["data"][0])


matrix_at = array_at(types.int32, 2)
words_at = array_at(types.int32, 1)
numbers_at = array_at(types.int64, 1)
keys_at = array_at(types.uint64, 1)
table_at = array_at(types.uint32, 1)


R = TypeVar("R", bound=ctypes.Structure)


def record(kind: type[R]) -> type[R]:
    """A record of 64-bit numbers."""
    return _made(kind, ctypes.c_int64)


def record_of_words(kind: type[R]) -> type[R]:
    """A record of words, as a row of a matrix is."""
    return _made(kind, ctypes.c_int32)


def _made(kind: type[R], number: type) -> type[R]:
    """The record of a class. What one inherits from another comes first, so that it begins like it; as fields of its
    own, since numpy sees no others."""
    names = [name for base in reversed(kind.__mro__) for name in vars(base).get("__annotations__", ())]
    content: dict[str, Any] = {
        name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")
    }
    content["_fields_"] = [(name, number) for name in names]
    kinds: Any = type(ctypes.Structure)
    return cast(type[R], kinds(kind.__name__, (ctypes.Structure,), content))


def dtype_of(kind: type[ctypes.Structure]) -> np.dtype[Any]:
    """What an array of records of a class is made of, for a name of a module. Not `np.dtype(kind)`: where Ctrl-C comes
    in that, NumPy takes the class for one that it does not know, and makes an array of objects."""
    fields: Any = kind._fields_
    return np.dtype([(name, f"i{ctypes.sizeof(number)}") for name, number in fields])


class Table(Generic[R]):
    """Records that lie next to each other, from `address` on, all fields 0 at first."""

    def __init__(self, kind: type[R], size: int) -> None:
        self._array = (kind * size)()
        self._rows: list[R] = list(self._array)
        self.address = ctypes.addressof(self._array)

    def copied(self) -> Table[R]:
        """Records with the same fields, elsewhere."""
        other: Table[R] = Table(self._array._type_, len(self._rows))
        ctypes.memmove(other.address, self.address, ctypes.sizeof(self._array))
        return other

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __getitem__(self, number: int) -> R:
        return self._rows[number]
