"""Pieces by which threads in compiled code wait for each other: what one has written before it counts is seen by
whoever sees the number after that."""

from __future__ import annotations

from typing import Any

from elastalog.jit.operators import intrinsic


@intrinsic
def count_up(typing_context: Any, array: Any, position: Any) -> Any:
    """Adds 1 to an element of an int64 array; returns what it was."""
    from llvmlite import ir
    from numba import types as numba_types
    from numba.np.arrayobj import make_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(data.data, [arguments[1]])
        return builder.atomic_rmw("add", address, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return numba_types.int64(array, numba_types.int64), generate


@intrinsic
def number_now(typing_context: Any, array: Any, position: Any) -> Any:
    """An element of an int64 array that another thread counts up."""
    from numba import types as numba_types
    from numba.np.arrayobj import make_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(data.data, [arguments[1]]), "acquire", 8)

    return numba_types.int64(array, numba_types.int64), generate
