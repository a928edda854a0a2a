"""Arrays by address, in compiled code: an operator that works on many relations takes tables of addresses instead of
arrays, because handing over an array costs more than a small join does.

Whoever writes an address into a table keeps the array alive for as long as the table is used.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from numba import carray, types
from numba.extending import intrinsic

from elastalog.backends.kernel.memory import Vector
from elastalog.native.operators import Operator


def address_of(array: Vector) -> int:
    """Where the elements of a contiguous array begin."""
    return int(array.__array_interface__["data"][0])


def piece(function: Any) -> Any:
    """A function that compiled code calls, compiled together with its callers; of an operator, what it does."""
    plain = function.function if isinstance(function, Operator) else function
    return nb.njit(nogil=True, boundscheck=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        plain
    )


def _pointer_to(element: Any) -> Any:
    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate

    return pointer


_words = _pointer_to(types.int32)
_numbers = _pointer_to(types.int64)
_keys = _pointer_to(types.uint64)


@piece
def matrix_at(address, height, width):  # type: ignore[no-untyped-def]
    """A matrix of words."""
    return carray(_words(address), (height, width))


@piece
def words_at(address, length):  # type: ignore[no-untyped-def]
    """A vector of words."""
    return carray(_words(address), (length,))


@piece
def numbers_at(address, length):  # type: ignore[no-untyped-def]
    """A vector of 64-bit integers."""
    return carray(_numbers(address), (length,))


@piece
def keys_at(address, length):  # type: ignore[no-untyped-def]
    """A vector of unsigned 64-bit integers."""
    return carray(_keys(address), (length,))


__all__ = ["address_of", "keys_at", "matrix_at", "numbers_at", "piece", "words_at"]
