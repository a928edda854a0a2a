"""Functors on columns of numbers, unsigned numbers and floats, all rows of a block at once.

The bounds of columns make exactness cheap: numbers mostly are small, and an operation that cannot overflow by the
bounds is not checked. Otherwise sign tests or estimates find suspicious rows, and only these are computed again with
unlimited integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from elastalog.analysis.functor_values import float_power
from elastalog.analysis.program import Base
from elastalog.backends.kernel.expressions.columns import FULL, RANGES, Column, Mask, Site, Values, both
from elastalog.relations.limits import LEAST_NUMBER, MOST_NUMBER, MOST_UNSIGNED

Unary: TypeAlias = Callable[[Site, Values, Mask | None, int], Column]
Binary: TypeAlias = Callable[[Site, Values, Values, Mask | None, int, int], Column]

# Products and powers are estimated in floats, with a relative error far below the distance of these from 2^63 and 2^64.
_SURELY_NUMBER = 9.2e18
_SURELY_UNSIGNED = 1.84e19


# --- arithmetic on integers ----------------------------------------------------------------------------------------


def _checked(
    operation: Callable[[Values, Values], Values], most: int, is_outside: Callable[[Values, Values, Values], Mask]
) -> Binary:
    """A sum or a difference, and which results run over, given both operands and the result."""

    def run(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
        result = operation(a, b)
        if x + y <= most:
            return result, valid, x + y
        site.check(is_outside(a, b, result), valid, a, b)
        return result, valid, FULL

    return run


def _product(most: int, surely: float) -> Binary:
    def run(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
        if x * y <= most:
            return a * b, valid, x * y
        estimate = np.abs(a.astype(np.float64) * b.astype(np.float64))
        site.check_exactly(operator.mul, estimate > surely, valid, a, b)
        return a * b, valid, FULL

    return run


def _subtract_unsigned(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    site.check(b > a, valid, a, b)
    return a - b, valid, x if valid is None and not site.may_wrap else FULL


def _without_zero(b: Values, valid: Mask | None) -> tuple[Values, Mask | None]:
    """Divisors with 1 in place of 0, and the rows that had none."""
    is_zero = b == 0
    if not is_zero.any():
        return b, valid
    return np.where(is_zero, b.dtype.type(1), b), both(valid, ~is_zero)


def _divide_numbers(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    b, valid = _without_zero(b, valid)
    if x > MOST_NUMBER:
        is_outside = (a == LEAST_NUMBER) & (b == -1)
        if is_outside.any():
            site.check(is_outside, valid, a, b)
            b = np.where(is_outside, np.int64(1), b)
    quotient = a // b
    # Rounded down so far; one up where that went away from zero.
    return quotient + ((quotient * b != a) & ((a ^ b) < 0)), valid, x


def _modulo_numbers(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    b, valid = _without_zero(b, valid)
    if x > MOST_NUMBER:
        b = np.where(b == -1, np.int64(1), b)  # the same remainder, 0, without an overflowing quotient
    return np.fmod(a, b), valid, x


def _unsigned_division(operation: Callable[[Values, Values], Values]) -> Binary:
    def run(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
        b, valid = _without_zero(b, valid)
        return operation(a, b), valid, x

    return run


def _power_integers(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    is_number = a.dtype == np.int64
    if is_number:
        is_negative = b < 0
        if is_negative.any():
            valid = both(valid, ~is_negative)
            b = np.where(is_negative, np.int64(0), b)
    # From 64 on, 2 and more overflow whatever the exponent, and for -1, 0, 1 only its parity matters.
    exponent = b if site.may_wrap else np.where(b > 64, (b & b.dtype.type(1)) + b.dtype.type(64), b)
    most = int(exponent.max()) if len(exponent) else 0
    bound = max(1, x) ** most if most <= 65 else FULL
    if bound > (MOST_NUMBER if is_number else MOST_UNSIGNED):
        bound = FULL
        with np.errstate(all="ignore"):
            estimate = np.power(np.abs(a.astype(np.float64)), exponent.astype(np.float64))
        is_suspicious = estimate > (_SURELY_NUMBER if is_number else _SURELY_UNSIGNED)
        site.check_exactly(_exact_power, is_suspicious, valid, a, b)
    result = np.ones(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    square = a
    for _ in range(most.bit_length()):
        result = np.where(exponent & exponent.dtype.type(1), result * square, result)
        square = square * square
        exponent = exponent >> exponent.dtype.type(1)
    return result, valid, bound


def _exact_power(a: int, b: int) -> int:
    return FULL if abs(a) > 1 and b > 64 else int(a**b)


def _negate_number(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    if x > MOST_NUMBER:
        site.check(a == LEAST_NUMBER, valid, a)
    return -a, valid, x


# --- floats --------------------------------------------------------------------------------------------------------
# There is one zero: where an operation can give -0.0, adding 0.0 makes it 0.0.


def _float_operation(operation: Callable[[Values, Values], Values]) -> Binary:
    def run(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
        with np.errstate(all="ignore"):
            return operation(a, b) + 0.0, valid, FULL

    return run


def _divide_floats(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    b, valid = _without_zero(b, valid)
    with np.errstate(all="ignore"):
        return a / b + 0.0, valid, FULL


def _power_floats(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
    # One by one: NumPy's vectorised power differs in the last bit from one processor to another.
    left, right = np.broadcast_arrays(a, b)
    result = np.array(list(map(float_power, left.tolist(), right.tolist())), np.float64)
    return result + 0.0, valid, FULL


# --- bits and truth ------------------------------------------------------------------------------------------------


def _unchecked(
    operation: Callable[[Values, Values], Values], bound: Callable[[int, int], int] = lambda x, y: FULL
) -> Binary:
    """An operation that has a value for all operands, of which a bound follows from theirs."""

    def run(site: Site, a: Values, b: Values, valid: Mask | None, x: int, y: int) -> Column:
        return operation(a, b), valid, bound(x, y)

    return run


def _plain(operation: Callable[[Values], Values], bound: int = FULL) -> Unary:
    """Likewise of one operand, with one bound for all."""
    return lambda site, a, valid, x: (operation(a), valid, bound)


def _shift(operation: Callable[[Values, Values], Values]) -> Binary:
    return _unchecked(lambda a, b: operation(a, b & b.dtype.type(63)))


def _shift_right_zeros(a: Values, b: Values) -> Values:
    return (a.view(np.uint64) >> (b.view(np.uint64) & np.uint64(63))).view(a.dtype)


def _logical(operation: Callable[[Mask, Mask], Mask]) -> Binary:
    return _unchecked(lambda a, b: operation(a != 0, b != 0).astype(a.dtype), lambda x, y: 1)


# --- conversions ---------------------------------------------------------------------------------------------------


def _same(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    return a, valid, x


def _as_float(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    with np.errstate(all="ignore"):  # the bits may be those of a signalling NaN
        return np.ascontiguousarray(a).view(np.float64) + 0.0, valid, FULL


def _number_to_unsigned(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    is_outside = a < 0
    site.check(is_outside, valid, a)
    return a.view(np.uint64), valid, x if valid is None else FULL


def _unsigned_to_number(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    if x > MOST_NUMBER:
        site.check(a > MOST_NUMBER, valid, a)
    return a.view(np.int64), valid, x


def _float_to_number(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    is_inside = (a >= -(2.0**63)) & (a < 2.0**63)
    return _cut_off(site, a, valid, is_inside, np.int64)


def _float_to_unsigned(site: Site, a: Values, valid: Mask | None, x: int) -> Column:
    is_inside = (a > -1.0) & (a < 2.0**64)
    return _cut_off(site, a, valid, is_inside, np.uint64)


def _cut_off(site: Site, a: Values, valid: Mask | None, is_inside: Mask, dtype: Any) -> Column:
    if not is_inside.all():
        site.check(~is_inside, valid, a)
        a = np.where(is_inside, a, 0.0)
    return np.trunc(a).astype(dtype), valid, FULL


_BITS: dict[str, Binary] = {
    "band": _unchecked(operator.and_),
    "bor": _unchecked(operator.or_),
    "bxor": _unchecked(operator.xor),
    "bshl": _shift(operator.lshift),
    "bshr": _shift(operator.rshift),
    "bshru": _unchecked(_shift_right_zeros),
    "land": _logical(operator.and_),
    "lor": _logical(operator.or_),
    "lxor": _logical(operator.xor),
    "^": _power_integers,
    # NaN counts only where there is nothing else, as in aggregates, whatever the order.
    "min": _unchecked(np.fmin, max),
    "max": _unchecked(np.fmax, max),
}

BINARY: Mapping[tuple[str, Base], Binary] = {
    **{(name, base): run for name, run in _BITS.items() for base in RANGES},
    ("+", Base.NUMBER): _checked(operator.add, MOST_NUMBER, lambda a, b, total: ((a ^ total) & (b ^ total)) < 0),
    ("-", Base.NUMBER): _checked(operator.sub, MOST_NUMBER, lambda a, b, rest: ((a ^ b) & (a ^ rest)) < 0),
    ("*", Base.NUMBER): _product(MOST_NUMBER, _SURELY_NUMBER),
    ("/", Base.NUMBER): _divide_numbers,
    ("%", Base.NUMBER): _modulo_numbers,
    ("+", Base.UNSIGNED): _checked(operator.add, MOST_UNSIGNED, lambda a, b, total: total < a),
    ("-", Base.UNSIGNED): _subtract_unsigned,
    ("*", Base.UNSIGNED): _product(MOST_UNSIGNED, _SURELY_UNSIGNED),
    ("/", Base.UNSIGNED): _unsigned_division(operator.floordiv),
    ("%", Base.UNSIGNED): _unsigned_division(operator.mod),
    ("+", Base.FLOAT): _float_operation(operator.add),
    ("-", Base.FLOAT): _float_operation(operator.sub),
    ("*", Base.FLOAT): _float_operation(operator.mul),
    ("/", Base.FLOAT): _divide_floats,
    ("^", Base.FLOAT): _power_floats,
    ("min", Base.FLOAT): _unchecked(np.fmin, max),
    ("max", Base.FLOAT): _unchecked(np.fmax, max),
}
"""Functors of two arguments by their name and type."""

_TO_FLOAT = _plain(lambda a: a.astype(np.float64))

UNARY: Mapping[tuple[str, Base], Unary] = {
    ("neg", Base.NUMBER): _negate_number,
    ("neg", Base.FLOAT): _plain(lambda a: 0.0 - a),
    **{("bnot", base): _plain(operator.invert) for base in RANGES},
    **{("lnot", base): _plain(lambda a: (a == 0).astype(a.dtype), 1) for base in RANGES},
    ("to_number", Base.NUMBER): _same,
    ("to_number", Base.UNSIGNED): _unsigned_to_number,
    ("to_number", Base.FLOAT): _float_to_number,
    ("to_unsigned", Base.NUMBER): _number_to_unsigned,
    ("to_unsigned", Base.UNSIGNED): _same,
    ("to_unsigned", Base.FLOAT): _float_to_unsigned,
    ("to_float", Base.NUMBER): _TO_FLOAT,
    ("to_float", Base.UNSIGNED): _TO_FLOAT,
    ("to_float", Base.FLOAT): _same,
    ("to_string", Base.SYMBOL): _same,
    ("as float", Base.NUMBER): _as_float,
    ("as float", Base.UNSIGNED): _as_float,
    ("as number", Base.FLOAT): _plain(lambda a: (a + 0.0).view(np.int64)),
    ("as unsigned", Base.FLOAT): _plain(lambda a: (a + 0.0).view(np.uint64)),
    ("itof", Base.NUMBER): _TO_FLOAT,
    ("itou", Base.NUMBER): _number_to_unsigned,
    ("ftoi", Base.FLOAT): _float_to_number,
    ("ftou", Base.FLOAT): _float_to_unsigned,
    ("utoi", Base.UNSIGNED): _unsigned_to_number,
    ("utof", Base.UNSIGNED): _TO_FLOAT,
}
"""Functors of one argument by their name and the type of the argument."""
