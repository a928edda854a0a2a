"""Records: rows of a table whose fields have names, the same in Python and in compiled code.

A record is a class of annotated fields under a decorator; `row.used = 3` writes where compiled code reads `row.used`.
Compiled code finds a record by the address of its table and its number in it. Whoever hands out an address keeps the
table alive for as long as it is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

import numpy as np

from elastalog.jit.records import record_at, record_of

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

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __getitem__(self, number: int) -> R:
        return self._rows[number]


__all__ = ["Table", "dtype_of", "record", "record_at", "record_of", "record_of_words"]
