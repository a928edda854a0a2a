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

from elastalog.jit import types
from elastalog.jit.operators import intrinsic

R = TypeVar("R", bound=ctypes.Structure)


def record(kind: type[R]) -> type[R]:
    """A record of 64-bit numbers."""
    kind._fields_ = [(name, ctypes.c_int64) for name in kind.__annotations__]
    return kind


def record_of_words(kind: type[R]) -> type[R]:
    """A record of words, as a row of a matrix is."""
    kind._fields_ = [(name, ctypes.c_int32) for name in kind.__annotations__]
    return kind


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


def record_at(kind: type[ctypes.Structure]) -> Any:
    """A piece of compiled code: the record with a number in the table at an address."""
    described = types.Record(cast("np.dtype[np.void]", np.dtype(kind)))

    @intrinsic
    def at(typing_context: Any, address: Any, number: Any) -> Any:
        from numba import types as numba_types

        from elastalog.jit.lowering import numba_type

        made = numba_type(described)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size = context.get_constant(numba_types.intp, made.size)
            place = builder.add(arguments[0], builder.mul(arguments[1], size))
            return builder.inttoptr(place, context.get_value_type(made))

        return made(numba_types.int64, numba_types.int64), generate

    return at


def record_of(kind: type[ctypes.Structure]) -> Any:
    """A piece of compiled code: a row of a matrix as a record."""
    described = types.Record(cast("np.dtype[np.void]", np.dtype(kind)))

    @intrinsic
    def of(typing_context: Any, matrix: Any, number: Any) -> Any:
        from numba import types as numba_types
        from numba.np.arrayobj import make_array

        from elastalog.jit.lowering import numba_type

        made = numba_type(described)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = make_array(signature.args[0])(context, builder, arguments[0]).data
            size = context.get_constant(numba_types.intp, made.size)
            start = builder.ptrtoint(data, context.get_value_type(numba_types.intp))
            place = builder.add(start, builder.mul(arguments[1], size))
            return builder.inttoptr(place, context.get_value_type(made))

        return made(matrix, numba_types.int64), generate

    return of
