"""What the compiled operators of the kernel share beyond `jit.operators`: types, and how rows are hashed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int32 as np_int32
from numba import int64, types, uint32, uint64
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from elastalog.jit.operators import (
    FINISH,
    GROUP,
    HALF,
    LOW,
    NONE,
    ONE,
    Operator,
    group_of_keys,
    group_of_numbers,
    inlined,
    mix,
    operator,
    prefetch,
)

MATRIX = types.Array(types.int32, 2, "C")
WORDS = types.Array(types.int32, 1, "C")
KEYS = types.Array(types.uint64, 1, "C")
COLUMNS = types.Array(types.int64, 1, "C")
STATE = COLUMNS
FLAG = types.boolean
INT = types.int64


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
def pack(high, low):  # type: ignore[no-untyped-def]
    return (uint64(uint32(high)) << HALF) | uint64(uint32(low))


@inlined
def hash_row(rows, row, width):  # type: ignore[no-untyped-def]
    """Of the first columns of a row; equal to `hash_columns` of the same words."""
    if width == 2:
        return mix(pack(rows[row, 0], rows[row, 1])) * FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, column])) + FINISH)
    return value * FINISH


@inlined
def hash_columns(rows, row, columns):  # type: ignore[no-untyped-def]
    width = columns.shape[0]
    if width == 2:
        return mix(pack(rows[row, columns[0]], rows[row, columns[1]])) * FINISH
    value = NONE
    for column in range(width):
        value = mix(value + uint64(uint32(rows[row, columns[column]])) + FINISH)
    return value * FINISH


__all__ = [
    "COLUMNS",
    "FINISH",
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
    "group_of_keys",
    "group_of_numbers",
    "hash_columns",
    "hash_row",
    "increment_atomically",
    "inlined",
    "int64",
    "mix",
    "np_int32",
    "operator",
    "pack",
    "prefetch",
    "types",
    "uint32",
    "uint64",
]  # fmt: skip
