"""Pieces that find records, rows of a table whose fields have names, without making arrays of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from elastalog.jit import types
from elastalog.jit.checking import check_index
from elastalog.jit.operators import intrinsic


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
