"""What all compiled operators share: how they are compiled, how words are hashed, how memory is fetched ahead.

Operators are compiled once, for every program alike, with fixed signatures, and cached on disk. They release the
interpreter's lock, take arrays only, and are resumable: when an output block or a table is full they return, the caller
makes room and calls again. State that outlives a call is in a small vector of int64 (`state`), whose fields are named
where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb
import numpy as np
from llvmlite import ir
from numba import int32 as np_int32
from numba import int64, types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

F = TypeVar("F", bound=Callable[..., Any])

MATRIX = types.Array(types.int32, 2, "C")
WORDS = types.Array(types.int32, 1, "C")
KEYS = types.Array(types.uint64, 1, "C")
COLUMNS = types.Array(types.int64, 1, "C")
STATE = COLUMNS
FLAG = types.boolean
INT = types.int64

GROUP = 32
"""Rows whose memory is fetched ahead together."""

ONE = np.uint64(1)
NONE = np.uint64(0)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
_TAIL = np.uint64(29)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINISH = np.uint64(0xBF58476D1CE4E5B9)


def operator(result: Any, *arguments: Any) -> Callable[[F], F]:
    """An operator with one fixed signature, compiled (or read from the cache) when it is first called: a program pays
    only for the operators that it uses."""

    def decorate(function: F) -> F:
        return cast(F, Operator(function, result(*arguments)))

    return decorate


class Operator:
    """Stands for a compiled function until it is needed."""

    __slots__ = ("_compiled", "_function", "_signature")

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None

    def compile(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._compiled is None:
            options = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
            try:
                self._compiled = nb.njit(self._signature, cache=True, **options)(self._function)
            except RuntimeError as error:
                # The package is imported from an archive that numba does not know as one, such as a wheel.
                if "cannot cache" not in str(error):
                    raise
                self._compiled = nb.njit(self._signature, **options)(self._function)
        assert self._compiled is not None
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)


def inlined(function: F) -> F:
    """A piece of operators, compiled into each of them."""
    result: F = nb.njit(inline="always")(function)
    return result


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Asks for the memory of an element of a one-dimensional array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0])
        pointer = ir.IntType(8).as_pointer()
        int32 = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer, int32, int32, int32]), "llvm.prefetch.p0"
        )
        address = builder.bitcast(builder.gep(data.data, [arguments[1]]), pointer)
        builder.call(function, [address] + [ir.Constant(int32, value) for value in (0, 3, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def increment_atomically(typing_context: Any, array: Any, position: Any) -> Any:
    """Adds 1 to an element of an int32 array that several threads count in."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(data.data, [arguments[1]])
        builder.atomic_rmw("add", address, ir.Constant(ir.IntType(32), 1), "monotonic")
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@inlined
def mix(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> HALF)) * _MULTIPLIER
    return value ^ (value >> _TAIL)


@inlined
def pack(high, low):  # type: ignore[no-untyped-def]
    return (uint64(uint32(high)) << HALF) | uint64(uint32(low))


@inlined
def hash_row(rows, row, width):  # type: ignore[no-untyped-def]
    """Of the first columns of a row; equal to `hash_columns` of the same words."""
    if width == 2:
        return mix(pack(rows[row, 0], rows[row, 1])) * _FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, column])) + _FINISH)
    return value * _FINISH


@inlined
def hash_columns(rows, row, columns):  # type: ignore[no-untyped-def]
    width = columns.shape[0]
    if width == 2:
        return mix(pack(rows[row, columns[0]], rows[row, columns[1]])) * _FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, columns[column]])) + _FINISH)
    return value * _FINISH


@inlined
def index_key(rows, row, columns):  # type: ignore[no-untyped-def]
    """The key of some columns, never 0: exact for up to two columns, a hash for more."""
    width = columns.shape[0]
    if width == 1:
        return uint64(uint32(rows[row, columns[0]])) + ONE
    if width == 2:
        return pack(rows[row, columns[0]], rows[row, columns[1]]) + ONE
    return hash_columns(rows, row, columns) | ONE


@inlined
def hash_key(key):  # type: ignore[no-untyped-def]
    return mix(key) * _FINISH


__all__ = [
    "COLUMNS",
    "FLAG",
    "GROUP",
    "HALF",
    "INT",
    "KEYS",
    "LOW",
    "MATRIX",
    "NONE",
    "ONE",
    "STATE",
    "WORDS",
    "Operator",
    "hash_columns",
    "hash_key",
    "hash_row",
    "increment_atomically",
    "index_key",
    "inlined",
    "int64",
    "np_int32",
    "operator",
    "pack",
    "prefetch",
    "types",
    "uint32",
    "uint64",
]  # fmt: skip
