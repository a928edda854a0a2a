"""What built-in functors give for plain values, following `analysis.functors` to the letter. Shares nothing with the
backends, as `ground` does not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from elastalog.analysis.program import Base

BITS = 1 << 64


class NoValue(Exception):
    """An expression has no value here: the instantiation fails."""


def apply(functor: str, arguments: list[Any], base: Base) -> Any:
    """What a functor gives; may be outside its type. Raises NoValue where it fails."""
    if functor in _ANY_NUMBER:
        return _ANY_NUMBER[functor](arguments)
    if base is Base.FLOAT and functor in _FLOATS:
        return _FLOATS[functor](*arguments)
    if functor in _BITWISE:
        bits = _BITWISE[functor](*arguments) % BITS
        return bits - BITS if base is Base.NUMBER and bits >= BITS // 2 else bits
    return _PLAIN[functor](*arguments)


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise NoValue("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _modulo(a: int, b: int) -> int:
    return a - b * _divide(a, b)


def _power(a: int, b: int) -> int:
    if b < 0:
        raise NoValue("negative exponent")
    if abs(a) > 1 and b > 64:
        raise NoValue("the power does not fit its type")
    return int(a**b) if abs(a) > 1 else (a if a == 0 and b else 1) if a >= 0 else 1 - 2 * (b % 2)


def _float_power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0 else math.nan


def _float_divide(a: float, b: float) -> float:
    if b == 0:
        raise NoValue("division by zero")
    return a / b


def _to_integer(value: Any) -> int:
    if isinstance(value, str):
        spelt = re.fullmatch(r"(-?)(?:0x([0-9a-fA-F]+)|0b([01]+)|([0-9]+))", value)
        if spelt is None or len(value) > 200:
            raise NoValue(f"{value!r} does not spell an integer of 64 bits")
        sign, hexadecimal, binary, decimal = spelt.groups()
        magnitude = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(decimal)
        return -magnitude if sign else magnitude
    if isinstance(value, float) and not math.isfinite(value):
        raise NoValue(f"{value} is no integer")
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", value) is None:
        raise NoValue(f"{value!r} does not spell a float")
    return float(value)


def _substr(text: str, start: int, size: int) -> str:
    return text[start : start + size] if start >= 0 and size >= 0 else ""


def least(values: list[Any]) -> Any:
    """NaN counts only where there is nothing else."""
    return min([value for value in values if value == value] or values)


def greatest(values: list[Any]) -> Any:
    """NaN counts only where there is nothing else."""
    return max([value for value in values if value == value] or values)


_ANY_NUMBER: dict[str, Callable[[list[Any]], Any]] = {"min": least, "max": greatest, "cat": "".join}

_FLOATS: dict[str, Callable[..., float]] = {"/": _float_divide, "^": _float_power}

_BITWISE: dict[str, Callable[..., int]] = {
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
    "bnot": lambda a: ~a,
    "bshl": lambda a, b: a << b % 64,
    "bshr": lambda a, b: a >> b % 64,
    "bshru": lambda a, b: (a % BITS) >> b % 64,
}

_PLAIN: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _modulo,
    "^": _power,
    "neg": lambda a: -a,
    "land": lambda a, b: int(bool(a) and bool(b)),
    "lor": lambda a, b: int(bool(a) or bool(b)),
    "lxor": lambda a, b: int(bool(a) != bool(b)),
    "lnot": lambda a: int(not a),
    "strlen": len,
    "substr": _substr,
    "to_string": str,
    **dict.fromkeys(("to_number", "to_unsigned", "ftoi", "ftou", "itou", "utoi"), _to_integer),
    **dict.fromkeys(("to_float", "itof", "utof"), _to_float),
}
