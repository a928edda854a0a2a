"""The generator `range`: its values row by row, and whether a value is one of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from elastalog.analysis.program import Apply, Base, Expression, Value
from elastalog.backends.kernel.expressions.columns import (
    Evaluate,
    Mask,
    Matrix,
    Scope,
    Values,
    both,
    evaluated,
    shown_value,
)
from elastalog.backends.kernel.expressions.terms import compile_column
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source

MOST_VALUES = 1 << 26
"""The values that the ranges of one block of rows may have together."""

Counts: TypeAlias = NDArray[np.int64]
Limits: TypeAlias = tuple[Values, Values, Values | None, Mask | None]


def compile_range(apply: Apply, scope: Scope) -> Callable[[Matrix, int], tuple[Counts, Values]]:
    """A closure that gives how many values the range of each row has, and all values, row after row."""
    limits = _compile_limits(apply, scope)

    def integers(block: Matrix, used: int) -> tuple[Counts, Values]:
        start, end, step, valid = limits(block, used)
        is_upward, magnitude, is_stepping = _direction(start, end, step)
        count = np.where(is_upward, _count(start, end, magnitude), _count(end, start, magnitude))
        # A range against its direction is empty; one without step has its start only, unless that is the end.
        count[~np.where(is_upward, start < end, start > end)] = 0
        count[~is_stepping] = (start != end)[~is_stepping]
        if valid is not None:
            count[~valid] = 0
        # Counts have 64 bits, their sum may have more.
        if float(count.astype(np.float64).sum()) > MOST_VALUES:
            row = int(count.argmax())
            raise too_many(apply, scope.source, start.item(row), end.item(row))
        counts = count.astype(np.int64)
        total = int(counts.sum())
        position = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        offset = position.astype(np.uint64) * np.repeat(magnitude, counts)
        first = np.repeat(start, counts).view(np.uint64)
        values = np.where(np.repeat(is_upward, counts), first + offset, first - offset).view(start.dtype)
        return counts, values

    def floats(block: Matrix, used: int) -> tuple[Counts, Values]:
        start, end, step, valid = limits(block, used)
        pieces = [
            values if valid is None or valid[row] else values[:0]
            for row, values in enumerate(_float_ranges(apply, scope.source, start, end, step, valid))
        ]
        counts = np.array([len(piece) for piece in pieces], np.int64)
        if int(counts.sum()) > MOST_VALUES:
            row = int(counts.argmax())
            raise too_many(apply, scope.source, start.item(row), end.item(row))
        return counts, np.concatenate([np.empty(0, np.float64), *pieces])

    return floats if apply.base is Base.FLOAT else integers


def compile_membership(apply: Apply, other: Expression, scope: Scope) -> Callable[[Matrix, int], Mask]:
    """A closure that gives the rows where the value of `other` is among those of the range."""
    limits = _compile_limits(apply, scope)
    column = compile_column(other, scope)

    def integers(block: Matrix, used: int) -> Mask:
        start, end, step, valid = limits(block, used)
        value, has_value, _ = column(block, used)
        valid = both(valid, has_value)
        is_upward, magnitude, is_stepping = _direction(start, end, step)
        is_between = np.where(is_upward, (start <= value) & (value < end), (end < value) & (value <= start))
        distance = np.where(is_upward, _distance(start, value), _distance(value, start))
        is_start = (value == start) & (start != end)
        is_member: Mask = np.where(is_stepping, is_between & (distance % magnitude == 0), is_start)
        return is_member if valid is None else is_member & valid

    def floats(block: Matrix, used: int) -> Mask:
        start, end, step, valid = limits(block, used)
        value, has_value, _ = column(block, used)
        valid = both(valid, has_value)
        value = np.broadcast_to(value, used)
        is_member = np.zeros(used, np.bool_)
        for row, values in enumerate(_float_ranges(apply, scope.source, start, end, step, valid)):
            is_member[row] = bool((values == value[row]).any())
        return is_member if valid is None else is_member & valid

    return floats if apply.base is Base.FLOAT else integers


def _compile_limits(apply: Apply, scope: Scope) -> Callable[[Matrix, int], Limits]:
    """A closure that gives start, end and step (None: not written) of the range of each row."""
    columns: list[Evaluate] = [compile_column(a, scope) for a in apply.arguments]

    def limits(block: Matrix, used: int) -> Limits:
        values, valid = evaluated(columns, block, used)
        start, end, *step = (np.broadcast_to(own, used) for own in values)
        return start, end, step[0] if step else None, None if valid is None else np.broadcast_to(valid, used)

    return limits


def _direction(start: Values, end: Values, step: Values | None) -> tuple[Mask, Values, Mask]:
    """Whether the range goes upward, the magnitude of its step (1 for 0), and whether it has a step."""
    if step is None:
        return start <= end, np.ones(len(start), np.uint64), np.ones(len(start), np.bool_)
    is_upward = step > 0
    is_stepping = step != 0
    bits = step.astype(np.uint64)
    magnitude = np.where(is_upward, bits, np.uint64(0) - bits)
    return is_upward, np.where(is_stepping, magnitude, np.uint64(1)), is_stepping


def _distance(low: Values, high: Values) -> Values:
    return high.astype(np.uint64) - low.astype(np.uint64)


def _count(low: Values, high: Values, magnitude: Values) -> Values:
    return (_distance(low, high) - np.uint64(1)) // magnitude + np.uint64(1)


def _float_ranges(
    apply: Apply, source: Source, start: Values, end: Values, step: Values | None, valid: Mask | None
) -> list[Values]:
    """The values of the range of each row; of rows without a value, none."""
    known: dict[tuple[float, ...], Values] = {}
    ranges = []
    steps = np.where(start <= end, 1.0, -1.0) if step is None else step
    for row, key in enumerate(zip(start.tolist(), end.tolist(), steps.tolist(), strict=True)):
        if valid is not None and not valid[row]:
            ranges.append(np.empty(0, np.float64))
            continue
        if key not in known:
            found = float_range(*key)
            if found is None:
                raise too_many(apply, source, key[0], key[1])
            known[key] = found
        ranges.append(known[key])
    return ranges


def float_range(start: float, end: float, step: float) -> Values | None:
    """The floats start, start + step, (start + step) + step, … before end; None if they are too many or never end."""
    if step == 0 and start != end:
        return np.array([start]) + 0.0
    if step == 0 or not (start < end if step > 0 else start > end):
        return np.empty(0, np.float64)
    expected = (end - start) / step
    size = 2 if math.isnan(expected) else min(expected, MOST_VALUES) + 2
    while size < MOST_VALUES:
        values = np.full(int(size), step)
        values[0] = start
        with np.errstate(all="ignore"):
            values = np.add.accumulate(values)
        is_before = values < end if step > 0 else values > end
        if not is_before[-1]:
            return values[: int(is_before.argmin())] + 0.0
        if values[-1] == values[-2]:
            return None
        size *= 2
    return None


def too_many(apply: Apply, source: Source, start: Value, end: Value) -> ElastalogError:
    """The error that a range has more values than can be held."""
    ends = {"start": shown_value(start), "end": shown_value(end)}
    return ElastalogError.of("E0614", apply.span, source=source, most=MOST_VALUES, **ends)
