"""Pieces that write their own code: memory fetched ahead, arrays on the stack and at addresses, records.

They import numba when they are compiled, and are names to all other code. With `ELASTALOG_JIT=checked`, for tests,
operators look at every index of an array before they use it: one outside its array ends the process at once (SIGILL;
`faulthandler` says where), instead of reading or writing what happens to lie there. Compiled otherwise, operators have
no trace of this.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from elastalog.jit import types
from elastalog.jit.operators import GROUP, intrinsic


def code(signature: Any, write: Callable[..., Any]) -> Any:
    """What the function of an intrinsic returns: its signature, and what generates its code, which `write` does, given
    numba's target context, the builder and the arguments. What returns nothing is of type void."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = write(context, builder, *arguments)
        return context.get_dummy_value() if made is None else made

    return signature, generate


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Asks for the memory of an element of a one-dimensional array."""
    from llvmlite import ir
    from numba import types as numba_types
    from numba.core import cgutils

    def write(context: Any, builder: Any, given: Any, position: Any) -> None:
        pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, int32, int32, int32])
        called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(_parts(context, builder, array, given).data, [position]), pointer)
        builder.call(called, [address] + [ir.Constant(int32, value) for value in (0, 3, 1)])

    return code(numba_types.void(array, numba_types.int64), write)


@intrinsic
def require(typing_context: Any, condition: Any) -> Any:
    """Says what must hold; where operators are checked, the process ends if it does not."""
    from numba import types as numba_types

    return code(
        numba_types.void(numba_types.boolean), lambda context, builder, holds: end_if(builder, builder.not_(holds))
    )


@intrinsic
def eight_bytes(typing_context: Any, array: Any, position: Any) -> Any:
    """Eight elements of an array of bytes as one number, whatever their alignment."""
    from numba import types as numba_types

    def write(context: Any, builder: Any, given: Any, position: Any) -> Any:
        return builder.load(_eight_at(context, builder, array, given, position), align=1)

    return code(numba_types.uint64(array, numba_types.int64), write)


@intrinsic
def put_eight_bytes(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """Puts a number into eight elements of an array of bytes, whatever their alignment."""
    from numba import types as numba_types

    def write(context: Any, builder: Any, given: Any, position: Any, value: Any) -> None:
        builder.store(value, _eight_at(context, builder, array, given, position), align=1)

    return code(numba_types.void(array, numba_types.int64, numba_types.uint64), write)


def _eight_at(context: Any, builder: Any, array: Any, given: Any, position: Any) -> Any:
    from llvmlite import ir

    return builder.bitcast(element(context, builder, array, given, position), ir.IntType(64).as_pointer())


@intrinsic
def flattened(typing_context: Any, array: Any) -> Any:
    """The elements of an array as one of dimension 1. What numba makes of `reshape` calls a function of numba's, which
    is not there when operators run."""
    from numba import types as numba_types

    vector = numba_types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def write(context: Any, builder: Any, given: Any) -> Any:
        parts = _parts(context, builder, array, given)
        return array_of(context, builder, vector, parts.data, [parts.nitems])

    return code(vector(array), write)


@intrinsic
def behind(typing_context: Any, array: Any) -> Any:
    """The memory behind an array of 64-bit numbers, one for every sixteen of it, which must have been allocated with
    the array."""
    from numba import types as numba_types

    def write(context: Any, builder: Any, given: Any) -> Any:
        parts = _parts(context, builder, array, given)
        length = builder.lshr(parts.nitems, context.get_constant(numba_types.intp, 4))
        return array_of(context, builder, array, builder.gep(parts.data, [parts.nitems]), [length])

    return code(array(array), write)


def _parts(context: Any, builder: Any, array: Any, given: Any) -> Any:
    """The parts of numba's structure for an array of a type."""
    from numba.np.arrayobj import make_array

    return make_array(array)(context, builder, given)


def array_of(context: Any, builder: Any, array: Any, data: Any, shape: list[Any]) -> Any:
    """Writes code that makes an array of memory that it does not own."""
    from numba import types as numba_types
    from numba.np.arrayobj import make_array, populate_array

    size = context.get_constant(numba_types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = make_array(array)(context, builder)
    populate_array(made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return made._getvalue()


def _group_of(element: types.Scalar) -> Any:
    @intrinsic
    def group(typing_context: Any) -> Any:
        from llvmlite import ir
        from numba import types as numba_types

        from elastalog.jit.lowering import numba_type

        array = numba_types.Array(numba_type(element), 1, "C")

        def write(context: Any, builder: Any) -> Any:
            kind = context.get_data_type(array.dtype)
            with builder.goto_entry_block():  # as `alloca_once`, which would fill it with zeros too, at every call
                place = builder.alloca(ir.ArrayType(kind, GROUP))
            data = builder.bitcast(place, kind.as_pointer())
            return array_of(context, builder, array, data, [context.get_constant(numba_types.intp, GROUP)])

        return code(array(), write)

    return group


group_of_keys = _group_of(types.uint64)
"""GROUP unsigned numbers on the stack of an operator, which must not hand them on."""

group_of_numbers = _group_of(types.int64)
"""GROUP signed numbers on the stack of an operator."""


def array_at(element: types.Scalar | types.Record, dimensions: int) -> Any:
    """A piece that makes an array of memory that it does not own, given the address and the length in each
    dimension."""

    def generator() -> Any:
        from numba import types as numba_types

        from elastalog.jit.lowering import numba_type

        array = numba_types.Array(numba_type(element), dimensions, "C")

        def write(context: Any, builder: Any, address: Any, *shape: Any) -> Any:
            data = builder.inttoptr(address, context.get_data_type(array.dtype).as_pointer())
            return array_of(context, builder, array, data, list(shape))

        return code(array(*[numba_types.int64] * (dimensions + 1)), write)

    @intrinsic
    def vector_at(typing_context: Any, address: Any, length: Any) -> Any:
        return generator()

    @intrinsic
    def matrix_at(typing_context: Any, address: Any, height: Any, width: Any) -> Any:
        return generator()

    return vector_at if dimensions == 1 else matrix_at


def are_checked() -> bool:
    """Whether operators are compiled with checks."""
    return os.environ.get("ELASTALOG_JIT") == "checked"


def check_index(builder: Any, index: Any, length: Any) -> None:
    """Writes code that ends the process if an index is not below a length, or below 0, where that is wanted."""
    if are_checked():
        end_if(builder, builder.icmp_unsigned(">=", index, length))


def end_if(builder: Any, is_wrong: Any) -> None:
    """Writes code that ends the process if something is so, where that is wanted."""
    if not are_checked():
        return
    from llvmlite import ir
    from numba.core import cgutils

    with builder.if_then(is_wrong, likely=False):
        trap = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.trap")
        builder.call(trap, [])


def element(context: Any, builder: Any, array: Any, given: Any, position: Any) -> Any:
    """The address of an element of an array of a type."""
    parts = _parts(context, builder, array, given)
    check_index(builder, position, parts.nitems)
    return builder.gep(parts.data, [position])


@intrinsic
def place_of(typing_context: Any, array: Any) -> Any:
    """The address of the elements of an array."""
    from numba import types as numba_types

    def write(context: Any, builder: Any, given: Any) -> Any:
        return builder.ptrtoint(_parts(context, builder, array, given).data, context.get_value_type(numba_types.int64))

    return code(numba_types.int64(array), write)


def record_at(dtype: npt.DTypeLike) -> Any:
    """A piece: the record with a number in the table at an address, or a row of a matrix as a record. The dtype may be
    a ctypes structure."""
    described = types.Record(np.dtype(dtype))

    @intrinsic
    def at(typing_context: Any, table: Any, number: Any) -> Any:
        from numba import types as numba_types

        from elastalog.jit.lowering import numba_type

        made = numba_type(described)
        is_matrix = isinstance(table, numba_types.Array)

        def write(context: Any, builder: Any, start: Any, at: Any) -> Any:
            if is_matrix:
                given = _parts(context, builder, table, start)
                check_index(builder, at, builder.extract_value(given.shape, 0))
                start = builder.ptrtoint(given.data, context.get_value_type(numba_types.intp))
            place = builder.add(start, builder.mul(at, context.get_constant(numba_types.intp, made.size)))
            return builder.inttoptr(place, context.get_value_type(made))

        return code(made(table if is_matrix else numba_types.int64, numba_types.int64), write)

    return at
