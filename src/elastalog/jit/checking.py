"""Operators that look at every index of an array before they use it, for tests: `ELASTALOG_JIT=checked`.

An index outside its array ends the process at once (SIGILL; `faulthandler` says where), instead of reading or writing
what happens to lie there. Compiled otherwise, operators have no trace of this.
"""

from __future__ import annotations

import os
from typing import Any


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


__all__ = ["are_checked", "check_index", "element", "end_if"]
