"""Operators of no use, for tests."""

from __future__ import annotations

import numpy as np

from elastalog.jit import types
from elastalog.jit.atomics import (
    PASSED,
    add_unordered,
    arrive,
    atomic_add,
    atomic_load,
    atomic_store,
    compare_and_swap,
    let_pass,
    look,
    sleep,
)
from elastalog.jit.intrinsics import flattened, record_at
from elastalog.jit.operators import inlined, operator, piece

PAIR = np.dtype([("left", "i8"), ("right", "i4"), ("rest", "i4")])
STEP = 3


@inlined
def doubled(value):
    return value * 2


@piece
def stepped(value):
    return doubled(value) + STEP


@operator(types.int64, types.Array(types.int64, 1), types.int64)
def element(values, position):
    return values[position]


@operator(types.int64, types.Array(types.int32, 2), types.int64, types.boolean)
def total(rows, start, is_stepped):
    """The sum of a number and all elements."""
    flat = flattened(rows)
    result = start
    for i in range(flat.shape[0]):
        result += flat[i]
    return stepped(result) if is_stepped else result


@operator(types.void, types.record(PAIR), types.Array(types.uint8, 1, readonly=True))
def swap(pairs, given):
    """Swaps the two sides of pairs, and adds bytes to the rest."""
    for i in range(pairs.shape[0]):
        pair = pairs[i]
        left = pair.left
        pair.left = pair.right
        pair.right = left
        pair.rest += given[i]


at = record_at(PAIR)
row_of = record_at([("first", "i4"), ("second", "i4")])


@operator(types.int64, types.int64, types.int64, types.Array(types.int32, 2))
def moved(address, size, rows):
    """Adds the rest of pairs at an address to the second column of rows; returns the sum of the first."""
    result = 0
    for i in range(size):
        row = row_of(rows, i)
        row.second += at(address, i).rest
        result += row.first
    return result


@operator(types.boolean, types.int64)
def is_odd(number):
    return number % 2 == 1


@operator(types.void, types.Array(types.int32, 2))
def reshaping(rows):
    """Needs a function of numba's."""
    rows.reshape(rows.size)[0] = 1


@operator(types.void, types.Array(types.int64, 1), types.Array(types.uint32, 1), types.Array(types.int64, 1))
def stepped_atomically(numbers, words, found):
    """One step of each kind; what was there before goes to `found`."""
    found[0] = atomic_load(numbers, 0)
    atomic_store(numbers, 0, 5)
    found[1] = atomic_add(numbers, 0, -2)
    found[2] = compare_and_swap(numbers, 0, 3, 9)
    found[3] = compare_and_swap(numbers, 0, 8, 1)
    found[4] = compare_and_swap(numbers, 0, 9, 2)
    found[5] = add_unordered(words, 1, 3)
    found[6] = compare_and_swap(words, 1, 4294967295, 7)
    found[7] = compare_and_swap(words, 1, 2, 8)


@operator(types.void, types.Array(types.int64, 1), types.int64)
def add_up(numbers, times):
    """Adds 1 to a number, in order and without, and to another as a lock would, so many times."""
    for _ in range(times):
        atomic_add(numbers, 0, 1)
        add_unordered(numbers, 16, 1)
        while compare_and_swap(numbers, 32, 0, 1) != 0:
            pass
        numbers[48] += 1
        atomic_store(numbers, 32, 0)


@operator(types.int64, types.Array(types.uint32, 1), types.Array(types.int64, 1), types.int64, types.int64, types.int64)
def meet(gate, rounds, thread, times, looks):
    """Meets other threads so many times, each of which writes how often, and the last one, alone, also in the place
    behind. Returns how often another was seen to be further or less far."""
    threads = rounds.shape[0] - 1
    wrong = 0
    for time in range(times):
        rounds[thread] = time
        before = atomic_load(gate, PASSED)
        if arrive(gate, threads):
            for other in range(threads):
                wrong += rounds[other] != time
            rounds[threads] = time
            let_pass(gate)
        elif not look(gate, before, looks):
            sleep(gate, before, 0)
        wrong += rounds[threads] != time
        before = atomic_load(gate, PASSED)
        if arrive(gate, threads):
            let_pass(gate)
        elif not look(gate, before, looks):
            sleep(gate, before, 0)
    return wrong
