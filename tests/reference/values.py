"""What functors, comparisons and aggregates compute, on plain Python values, for the reference evaluator.

A functor gives a list: empty where the instantiation fails, several values for `range`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}
NAN = float("nan")  # one object, so that NaN equals itself as a value of a fact

# Argument and result types; the other functors have one type for all arguments and the result.
SIGNATURES: dict[str, tuple[tuple[str | None, ...], str]] = {
    "strlen": (("symbol",), "number"),
    "ord": (("symbol",), "number"),
    "substr": (("symbol", "number", "number"), "symbol"),
    "to_number": ((None,), "number"),
    "to_unsigned": ((None,), "unsigned"),
    "to_float": ((None,), "float"),
    "to_string": ((None,), "symbol"),
    "itof": (("number",), "float"),
    "itou": (("number",), "unsigned"),
    "ftoi": (("float",), "number"),
    "ftou": (("float",), "unsigned"),
    "utoi": (("unsigned",), "number"),
    "utof": (("unsigned",), "float"),
}


class Overflow(ArithmeticError):
    """An integer left the range of its type."""


def as_value(value: Any, base: str) -> Any:
    if base == "float":
        return NAN if math.isnan(value) else float(value) + 0.0  # -0.0 becomes 0.0
    if base in BOUNDS and not BOUNDS[base][0] <= value <= BOUNDS[base][1]:
        raise Overflow(f"{value} is no {base}")
    return value


def compare(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "match":
            return re.fullmatch(left, right) is not None
        case "contains":
            return left in right
        case "=" | "!=" if left is right:
            return operator == "="
    return bool({"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}[operator](left, right))


def apply(functor: str, arguments: tuple[Any, ...], base: str) -> list[Any]:
    """The values of a functor whose result has type `base`."""
    if functor == "range":
        return range_values(*arguments)
    value = value_of(functor, arguments, base)
    return [] if value is None else [as_value(value, base)]


def aggregate(operator: str, values: list[Any], base: str) -> list[Any]:
    match operator:
        case "count":
            return [len(values)]
        case "sum":
            return [as_value(sum(sorted(values)), base)]
        case "mean":
            return [sum(sorted(values)) / len(values)] if values else []
    return [min(values) if operator == "min" else max(values)] if values else []


def range_values(start: Any, end: Any, step: Any = None) -> list[Any]:
    step = (1 if start <= end else -1) if step is None else step
    if step == 0:
        return []
    values = []
    while start < end if step > 0 else start > end:
        values.append(start)
        start += step
    return values


def value_of(functor: str, arguments: tuple[Any, ...], base: str) -> Any:
    """The value of a functor, None where it fails."""
    a, b = (*arguments, None)[:2]
    if functor == "ord":
        raise NotImplementedError("the number of a symbol is up to the implementation")
    if functor in ("/", "%") and b == 0:
        return None
    if base == "float" and functor in FLOAT_FUNCTORS:
        return FLOAT_FUNCTORS[functor](a, b)
    if functor in ("to_number", "to_unsigned", "to_float") and isinstance(a, str):
        pattern = r"-?[0-9]+" if functor != "to_float" else r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
        return None if not re.fullmatch(pattern, a) else float(a) if functor == "to_float" else int(a)
    if isinstance(a, float) and not math.isfinite(a) and functor in ("to_number", "to_unsigned", "ftoi", "ftou"):
        raise Overflow(f"{a} is no integer")
    return FUNCTORS[functor](*arguments) if functor not in BITWISE else wrap(BITWISE[functor](*arguments), base)


def wrap(value: int, base: str) -> int:
    """The 64 bits of a value, read as `base`."""
    bits = value % 2**64
    return bits - 2**64 if base == "number" and bits >= 2**63 else bits


def power(a: int, b: int) -> int | None:
    return None if b < 0 else a**b if abs(a) < 2 or b < 65 else 2**65  # anything that overflows


def float_power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0 else NAN


FLOAT_FUNCTORS: dict[str, Callable[..., float]] = {"/": lambda a, b: a / b, "^": float_power}

BITWISE: dict[str, Callable[..., int]] = {
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
    "bnot": lambda a: ~a,
    "bshl": lambda a, b: a << b % 64,
    "bshr": lambda a, b: a >> b % 64,
    "bshru": lambda a, b: a % 2**64 >> b % 64,
}

FUNCTORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "^": power,
    "land": lambda a, b: int(a != 0 and b != 0),
    "lor": lambda a, b: int(a != 0 or b != 0),
    "lxor": lambda a, b: int((a != 0) != (b != 0)),
    "lnot": lambda a: int(a == 0),
    "min": min,
    "max": max,
    "cat": lambda *texts: "".join(texts),
    "strlen": len,
    "substr": lambda text, start, size: text[start : start + size] if start >= 0 and size >= 0 else "",
    "to_string": str,
    "to_float": float,
    "itof": float,
    "utof": float,
    **dict.fromkeys(("to_number", "to_unsigned", "ftoi", "ftou", "itou", "utoi"), math.trunc),
}
