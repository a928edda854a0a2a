"""What the compiled operators of the kernel share beyond `jit.operators`: types, and how rows are hashed."""

from __future__ import annotations

from typing import Any

import numpy as np

from elastalog.jit import types
from elastalog.jit.intrinsics import flattened, group_of_keys, group_of_numbers, halves_of, prefetch
from elastalog.jit.operators import FINISH, GROUP, HALF, LOW, NONE, ONE, Operator, inlined, mix, operator

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
    "NUMBERS",
    "ONE",
    "STATE",
    "TABLE",
    "WORDS",
    "Operator",
    "flattened",
    "group_of_keys",
    "group_of_numbers",
    "halves_of",
    "hash_columns",
    "hash_row",
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
