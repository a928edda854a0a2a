"""Pieces that write their own code: memory fetched ahead, arrays on the stack and at addresses, records.

They import numba when they are compiled, and are names to all other code. With `ELASTALOG_JIT=checked`, for tests,
operators look at every index of an array before they use it: one outside its array ends the process at once (SIGILL;
`faulthandler` says where), instead of reading or writing what happens to lie there. Compiled otherwise, operators have
no trace of this.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from elastalog.jit import types
from elastalog.jit.operators import GROUP, intrinsic


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of an element: the first two arguments are an array and a position."""
    return element(context, builder, signature.args[0], arguments[0], arguments[1])


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Asks for the memory of an element of a one-dimensional array."""
    from llvmlite import ir
    from numba import types as numba_types
    from numba.core import cgutils
    from numba.np.arrayobj import make_array

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

    return numba_types.void(array, numba_types.int64), generate


@intrinsic
def require(typing_context: Any, condition: Any) -> Any:
    """Says what must hold; where operators are checked, the process ends if it does not."""
    from numba import types as numba_types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        end_if(builder, builder.not_(context.cast(builder, arguments[0], signature.args[0], numba_types.boolean)))
        return context.get_dummy_value()

    return numba_types.void(numba_types.boolean), generate


@intrinsic
def eight_bytes(typing_context: Any, array: Any, position: Any) -> Any:
    """Eight elements of an array of bytes as one number, whatever their alignment."""
    from llvmlite import ir
    from numba import types as numba_types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(_element(context, builder, signature, arguments), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return numba_types.uint64(array, numba_types.int64), generate


@intrinsic
def put_eight_bytes(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """Puts a number into eight elements of an array of bytes, whatever their alignment."""
    from llvmlite import ir
    from numba import types as numba_types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(_element(context, builder, signature, arguments), ir.IntType(64).as_pointer())
        builder.store(arguments[2], address, align=1)
        return context.get_dummy_value()

    return numba_types.void(array, numba_types.int64, numba_types.uint64), generate


@intrinsic
def flattened(typing_context: Any, array: Any) -> Any:
    """The elements of an array as one of dimension 1. What numba makes of `reshape` calls a function of numba's, which
    is not there when operators run."""
    from numba import types as numba_types
    from numba.np.arrayobj import make_array, populate_array

    vector = numba_types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = make_array(signature.args[0])(context, builder, arguments[0])
        made = make_array(vector)(context, builder)
        populate_array(
            made, data=given.data, shape=[given.nitems], strides=[given.itemsize], itemsize=given.itemsize, meminfo=None
        )
        return made._getvalue()

    return vector(array), generate


@intrinsic
def behind(typing_context: Any, array: Any) -> Any:
    """The memory behind an array of 64-bit numbers, one for every sixteen of it: whoever made the array has seen to it
    that there is some."""
    from numba import types as numba_types
    from numba.np.arrayobj import make_array, populate_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = make_array(signature.args[0])(context, builder, arguments[0])
        made = make_array(array)(context, builder)
        length = builder.lshr(given.nitems, context.get_constant(numba_types.intp, 4))
        data = builder.gep(given.data, [given.nitems])
        populate_array(made, data=data, shape=[length], strides=[given.itemsize], itemsize=given.itemsize, meminfo=None)
        return made._getvalue()

    return array(array), generate


def _group_of(element: types.Scalar) -> Any:
    @intrinsic
    def group(typing_context: Any) -> Any:
        from llvmlite import ir
        from numba import types as numba_types
        from numba.np.arrayobj import make_array, populate_array

        from elastalog.jit.lowering import numba_type

        array = numba_types.Array(numba_type(element), 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_data_type(array.dtype)
            with builder.goto_entry_block():  # as `alloca_once`, which would fill it with zeros too, at every call
                place = builder.alloca(ir.ArrayType(kind, GROUP))
            size = context.get_constant(numba_types.intp, context.get_abi_sizeof(kind))
            made = make_array(array)(context, builder)
            populate_array(
                made,
                data=builder.bitcast(place, kind.as_pointer()),
                shape=[context.get_constant(numba_types.intp, GROUP)],
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
"""GROUP signed numbers on the stack of an operator."""


def array_at(element: types.Scalar | types.Record, dimensions: int) -> Any:
    """A piece that makes an array which lies at an address and is kept by somebody else, of the address and the length
    in each dimension."""

    def generator(lengths: int) -> Any:
        from numba import types as numba_types
        from numba.np.arrayobj import make_array, populate_array

        from elastalog.jit.lowering import numba_type

        array = numba_types.Array(numba_type(element), dimensions, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_data_type(array.dtype)
            address, *shape = arguments
            size = context.get_constant(numba_types.intp, context.get_abi_sizeof(kind))
            strides = [size]
            for length in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            made = make_array(array)(context, builder)
            data = builder.inttoptr(address, kind.as_pointer())
            populate_array(made, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
            return made._getvalue()

        return array(*[numba_types.int64] * (lengths + 1)), generate

    if dimensions == 1:

        @intrinsic
        def vector_at(typing_context: Any, address: Any, length: Any) -> Any:
            return generator(1)

        return vector_at

    @intrinsic
    def matrix_at(typing_context: Any, address: Any, height: Any, width: Any) -> Any:
        return generator(2)

    return matrix_at


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


def element(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    """The address of an element of a one-dimensional array."""
    from numba.np.arrayobj import make_array

    found = make_array(array_type)(context, builder, array)
    check_index(builder, position, found.nitems)
    return builder.gep(found.data, [position])


@intrinsic
def place_of(typing_context: Any, array: Any) -> Any:
    """The address of the elements of an array."""
    from numba import types as numba_types
    from numba.np.arrayobj import make_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(given.data, context.get_value_type(numba_types.int64))

    return numba_types.int64(array), generate


def record_at(dtype: npt.DTypeLike) -> Any:
    """A piece: the record with a number in the table at an address. The dtype may be a ctypes structure."""
    described = types.Record(np.dtype(dtype))

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


def record_of(dtype: npt.DTypeLike) -> Any:
    """A piece: a row of a matrix as a record."""
    described = types.Record(np.dtype(dtype))

    @intrinsic
    def of(typing_context: Any, matrix: Any, number: Any) -> Any:
        from numba import types as numba_types
        from numba.np.arrayobj import make_array

        from elastalog.jit.lowering import numba_type

        made = numba_type(described)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = make_array(signature.args[0])(context, builder, arguments[0])
            check_index(builder, arguments[1], builder.extract_value(given.shape, 0))
            size = context.get_constant(numba_types.intp, made.size)
            start = builder.ptrtoint(given.data, context.get_value_type(numba_types.intp))
            place = builder.add(start, builder.mul(arguments[1], size))
            return builder.inttoptr(place, context.get_value_type(made))

        return made(matrix, numba_types.int64), generate

    return of


__all__ = [
    "are_checked",
    "array_at",
    "behind",
    "check_index",
    "eight_bytes",
    "element",
    "end_if",
    "flattened",
    "group_of_keys",
    "group_of_numbers",
    "place_of",
    "prefetch",
    "put_eight_bytes",
    "record_at",
    "record_of",
    "require",
]
