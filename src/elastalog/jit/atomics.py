"""Atomic steps on elements of arrays that several threads write to, and how threads wait for each other.

All steps but `add_unordered` are in one order that every thread sees alike (sequential consistency), which costs what
acquiring and releasing cost on the processors that we compile for, and is what the model of the tests assumes. Threads
that have nothing to do sleep in the system (`sleep_while`, a futex); where that is not Linux they give their turn away.
"""

from __future__ import annotations

from typing import Any

from elastalog.jit.intrinsics import code, element
from elastalog.jit.operators import intrinsic, piece

_ORDER = "seq_cst"
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT, FUTEX_WAKE, in this process only
_ALL = (1 << 31) - 1

FUTEX = {"x86_64": 202, "aarch64": 98}
"""The number of the system call by which threads wait for each other, by kind of processor."""


def _step(array: Any, numbers: int, write: Any, *, is_void: bool = False) -> Any:
    """The code of an intrinsic that does something with an element of an array: it takes the array, a position and
    `numbers` numbers. `write` writes it, given the place of the element, its bytes, and these."""
    from numba import types

    def step(context: Any, builder: Any, given: Any, position: Any, *values: Any) -> Any:
        place = element(context, builder, array, given, position)
        made = write(builder, place, array.dtype.bitwidth // 8, *values)
        return None if is_void else made

    return code((types.void if is_void else array.dtype)(array, types.int64, *[array.dtype] * numbers), step)


@intrinsic
def atomic_load(typing_context: Any, array: Any, position: Any) -> Any:
    """An element that other threads write to."""
    return _step(array, 0, lambda builder, place, size: builder.load_atomic(place, _ORDER, size))


@intrinsic
def atomic_store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """Writes an element: a thread that sees it also sees what this thread has written before."""
    return _step(
        array, 1, lambda builder, place, size, value: builder.store_atomic(value, place, _ORDER, size), is_void=True
    )


@intrinsic
def compare_and_swap(typing_context: Any, array: Any, position: Any, expected: Any, value: Any) -> Any:
    """Writes an element if it is as expected; returns what it was."""

    def write(builder: Any, place: Any, size: int, expected: Any, value: Any) -> Any:
        return builder.extract_value(builder.cmpxchg(place, expected, value, _ORDER, _ORDER), 0)

    return _step(array, 2, write)


def _changing(operation: str, order: str) -> Any:
    @intrinsic
    def change(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
        return _step(array, 1, lambda builder, place, size, value: builder.atomic_rmw(operation, place, value, order))

    return change


atomic_add = _changing("add", _ORDER)
"""Adds a number to an element; returns what it was."""

add_unordered = _changing("add", "monotonic")
"""Adds without order, for counters that say nothing of anything else that was written."""

or_unordered = _changing("or", "monotonic")
"""Sets bits of an element, in the same way."""


@intrinsic
def relax(typing_context: Any) -> Any:
    """Tells the processor that this thread looks again and again for what another is to write."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def write(context: Any, builder: Any) -> None:
        triple = _triple(context)
        if triple.startswith("x86"):
            name, given = "llvm.x86.sse2.pause", []
        elif triple.startswith(("aarch64", "arm64")):
            name, given = "llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)]
        else:
            return
        kind = ir.FunctionType(ir.VoidType(), [each.type for each in given])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)

    return code(types.void(), write)


@intrinsic
def _ask_system(typing_context: Any, array: Any, position: Any, operation: Any, value: Any, patience: Any) -> Any:
    """The system's `futex` on an element of a uint32 array."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def write(context: Any, builder: Any, given: Any, position: Any, *asked: Any) -> None:
        int64 = ir.IntType(64)
        triple = _triple(context)
        number = next((FUTEX[start] for start in FUTEX if triple.startswith(start) and "linux" in triple), None)
        if number is None:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
            return
        kind = ir.FunctionType(int64, [int64], var_arg=True)
        called = cgutils.get_or_insert_function(builder.module, kind, "syscall")
        place = builder.ptrtoint(element(context, builder, array, given, position), int64)
        nothing = ir.Constant(int64, 0)
        builder.call(called, [ir.Constant(int64, number), place, *asked, nothing, nothing])

    return code(types.void(array, *[types.int64] * 4), write)


def _triple(context: Any) -> str:
    """What code is made for."""
    triple: str = context.codegen()._create_empty_module("").triple
    return triple


@piece
def sleep_while(array, position, value, patience):
    """Sleeps if an element of a uint32 array has a value, until it is woken, or time is over; it may wake without a
    reason. `patience`: the address of two int64 numbers, seconds and nanoseconds; 0 for any time."""
    _ask_system(array, position, _WAIT, value, patience)


@piece
def wake_all(array, position):
    """Wakes the threads that sleep at an element."""
    _ask_system(array, position, _WAKE, _ALL, 0)


# --- a barrier -----------------------------------------------------------------------------------------------------

ARRIVED, PASSED, SLEEPING = 0, 16, 32
GATE = 48
"""A barrier, a uint32 array: where it counts the threads that have come, how often all have, and how many sleep, each
in memory of its own; and how long it is."""


@piece
def arrive(gate, threads):
    """A thread comes to a barrier of `threads` threads. Returns whether it is the last, which calls `let_pass`; the
    others, with what `atomic_load(gate, PASSED)` was before, call `look`, and then `sleep`."""
    return atomic_add(gate, ARRIVED, 1) + 1 == threads


@piece
def let_pass(gate):
    """All have come, and what one was to do meanwhile is done."""
    atomic_store(gate, ARRIVED, 0)
    atomic_add(gate, PASSED, 1)
    if atomic_load(gate, SLEEPING) > 0:
        wake_all(gate, PASSED)


@piece
def look(gate, before, looks):
    """Looks up to `looks` times, some ten nanoseconds each, whether all have come. Returns whether they have."""
    for _ in range(looks):
        if atomic_load(gate, PASSED) != before:
            return True
        relax()
    return atomic_load(gate, PASSED) != before


@piece
def sleep(gate, before, patience):
    """Sleeps until all have come, which frees the core; with `patience`, until it is woken or that time is over.
    Returns whether all have come."""
    atomic_add(gate, SLEEPING, 1)
    while atomic_load(gate, PASSED) == before:
        sleep_while(gate, PASSED, before, patience)
        if patience != 0:
            break
    atomic_add(gate, SLEEPING, -1)
    return atomic_load(gate, PASSED) != before
