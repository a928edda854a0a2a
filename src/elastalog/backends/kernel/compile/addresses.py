"""Arrays by address, in compiled code: an operator that works on many relations takes tables of addresses instead of
arrays, because handing over an array costs more than a small join does.

Whoever writes an address into a table keeps the array alive for as long as the table is used.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from elastalog.jit.operators import OPTIONS, Operator


def address_of(array: npt.NDArray[Any]) -> int:
    """Where the elements of a contiguous array begin."""
    return int(array.__array_interface__["data"][0])


def piece(function: Any) -> Any:
    """A function that compiled code calls, compiled together with its callers; of an operator, what it does."""
    plain = function.function if isinstance(function, Operator) else function
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **OPTIONS}
    return nb.njit(**options)(plain)


def _array_at(element: Any, dimensions: int) -> Any:
    """An array that lies at an address and is kept by somebody else: the address, and its length in each dimension."""
    array = types.Array(element, dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_data_type(element)
        address, *shape = arguments
        size = context.get_constant(types.intp, context.get_abi_sizeof(kind))
        strides = [size]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        made = make_array(array)(context, builder)
        data = builder.inttoptr(address, kind.as_pointer())
        populate_array(made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return made._getvalue()

    if dimensions == 1:

        @intrinsic
        def vector_at(typing_context: Any, address: Any, length: Any) -> Any:
            return array(types.int64, types.int64), generate

        return vector_at

    @intrinsic
    def matrix_at(typing_context: Any, address: Any, height: Any, width: Any) -> Any:
        return array(types.int64, types.int64, types.int64), generate

    return matrix_at


matrix_at = _array_at(types.int32, 2)
words_at = _array_at(types.int32, 1)
numbers_at = _array_at(types.int64, 1)
keys_at = _array_at(types.uint64, 1)


__all__ = ["address_of", "keys_at", "matrix_at", "numbers_at", "piece", "words_at"]
