"""What all compiled operators share: how they are compiled, how numbers are mixed, how memory is fetched ahead.

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
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from elastalog.jit.sources import DIGEST, remove_outdated

F = TypeVar("F", bound=Callable[..., Any])

GROUP = 32
"""Rows whose memory is fetched ahead together."""

OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False}
"""How operators are compiled. Without reference counts: arrays belong to the caller, and counting who looks at them,
row by row, took a tenth of the time of a join, and half of one that looks at levels."""

ONE = np.uint64(1)
NONE = np.uint64(0)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
FINISH = np.uint64(0xBF58476D1CE4E5B9)
_TAIL = np.uint64(29)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def operator(result: Any, *arguments: Any, makes_arrays: bool = False) -> Callable[[F], F]:
    """An operator with one fixed signature, compiled (or read from the cache) when it is first called: a program pays
    only for the operators that it uses. One that makes arrays must say so, and is slower (see `OPTIONS`)."""

    def decorate(function: F) -> F:
        return cast(F, Operator(function, result(*arguments), makes_arrays))

    return decorate


class Operator:
    """Stands for a compiled function until it is needed."""

    __slots__ = ("_compiled", "_options", "_signature", "function")

    def __init__(self, function: Callable[..., Any], signature: Any, makes_arrays: bool) -> None:
        self.function = function
        self._signature = signature
        self._options = {**OPTIONS, "_nrt": makes_arrays}
        self._compiled: Callable[..., Any] | None = None

    def compile(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._compiled is None:
            remove_outdated()
            name = self.function.__qualname__
            try:
                self.function.__qualname__ = f"{name}-{DIGEST}"  # numba names the file in its cache after it
                self._compiled = nb.njit(self._signature, cache=True, **self._options)(self.function)
            except RuntimeError as error:
                # The package is imported from an archive that numba does not know as one, such as a wheel.
                if "cannot cache" not in str(error):
                    raise
                self._compiled = nb.njit(self._signature, **self._options)(self.function)
            finally:
                self.function.__qualname__ = name
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


def _group_of(element: Any) -> Any:
    @intrinsic
    def group(typing_context: Any) -> Any:
        array = types.Array(element, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_data_type(element)
            place = cgutils.alloca_once(builder, ir.ArrayType(kind, GROUP))
            size = context.get_constant(types.intp, context.get_abi_sizeof(kind))
            made = make_array(array)(context, builder)
            populate_array(
                made,
                data=builder.bitcast(place, kind.as_pointer()),
                shape=[context.get_constant(types.intp, GROUP)],
                strides=[size],
                itemsize=size,
                meminfo=None,
            )
            return made._getvalue()

        return array(), generate

    return group


group_of_keys = _group_of(types.uint64)
"""GROUP unsigned numbers on the stack of an operator, which must not hand them on."""

group_of_numbers = _group_of(types.int64)
"""The same with signed numbers."""


@intrinsic
def eight_bytes(typing_context: Any, array: Any, position: Any) -> Any:
    """Eight elements of an array of bytes as one number, whatever their alignment."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(data.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(array, types.int64), generate


@inlined
def mix(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> HALF)) * _MULTIPLIER
    return value ^ (value >> _TAIL)


__all__ = [
    "FINISH",
    "GROUP",
    "HALF",
    "LOW",
    "NONE",
    "ONE",
    "OPTIONS",
    "Operator",
    "eight_bytes",
    "group_of_keys",
    "group_of_numbers",
    "inlined",
    "mix",
    "operator",
    "prefetch",
]  # fmt: skip
