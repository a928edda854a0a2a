"""What functors, comparisons and aggregates compute, on plain Python values, for the reference evaluator."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}
NAN = float("nan")  # one object, so that NaN equals itself as a value of a fact
TOO_LARGE = 2**65


class Overflow(ArithmeticError):
    """An integer left the range of its type."""


def as_value(value: Any, base: str) -> Any:
    if base == "float":
        return NAN if math.isnan(value) else float(value) + 0.0  # -0.0 becomes 0.0
    if base in BOUNDS and not BOUNDS[base][0] <= value <= BOUNDS[base][1]:
        raise Overflow(f"{value} is no {base}")
    return value


def apply(functor: str, arguments: tuple[Any, ...], base: str) -> list[Any]:
    """The values of a functor whose result has type `base`: none where it fails, several for `range`."""
    try:
        value = range_values(*arguments) if functor == "range" else FUNCTORS[functor](*arguments)
    except ZeroDivisionError:
        return []
    if functor.startswith("b"):  # the functors of bits
        value = (value - BOUNDS[base][0]) % 2**64 + BOUNDS[base][0]
    return value if functor == "range" else [] if value is None else [as_value(value, base)]


def aggregate(kind: str, values: list[Any], base: str) -> list[Any]:
    if kind in ("count", "sum"):
        return [len(values) if kind == "count" else as_value(sum(sorted(values)), base)]
    fold = {"min": min, "max": max, "mean": lambda v: sum(sorted(v)) / len(v)}[kind]
    return [fold(values)] if values else []


def range_values(start: Any, end: Any, step: Any = None) -> list[Any]:
    step = (1 if start <= end else -1) if step is None else step
    values: list[Any] = []
    while step and (start < end if step > 0 else start > end):
        values.append(start)
        start += step
    return values


def compare(name: str, left: Any, right: Any) -> bool:
    is_same = left is right or left == right
    return is_same == (name == "=") if name in ("=", "!=") else bool(COMPARISONS[name](left, right))


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return None if b < 0 else a**b if abs(a) < 2 or b < 65 else TOO_LARGE
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0 else NAN


def to_integer(a: Any) -> int | None:
    if isinstance(a, str):
        return int(a) if re.fullmatch("-?[0-9]+", a) else None
    return math.trunc(a) if math.isfinite(a) else TOO_LARGE


def to_float(a: Any) -> float | None:
    pattern = r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
    return float(a) if not isinstance(a, str) or re.fullmatch(pattern, a) else None


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "match": re.fullmatch},
    "contains": lambda part, text: part in text,
}
FUNCTORS: dict[str, Callable[..., Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "^": power, "neg": operator.neg, "min": min, "max": max},
    "/": lambda a, b: a / b if isinstance(a, float) else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    **{"band": operator.and_, "bor": operator.or_, "bxor": operator.xor, "bnot": operator.invert},
    "bshl": lambda a, b: a << b % 64,
    "bshr": lambda a, b: a >> b % 64,
    "bshru": lambda a, b: a % 2**64 >> b % 64,
    "land": lambda a, b: int(a != 0 and b != 0),
    "lor": lambda a, b: int(a != 0 or b != 0),
    "lxor": lambda a, b: int((a != 0) != (b != 0)),
    "lnot": lambda a: int(a == 0),
    "cat": lambda *texts: "".join(texts),
    "substr": lambda text, start, size: text[start : start + size] if start >= 0 and size >= 0 else "",
    **{"strlen": len, "to_string": str, "to_float": to_float, "itof": to_float, "utof": to_float},
    **dict.fromkeys(("to_number", "to_unsigned", "ftoi", "ftou", "itou", "utoi"), to_integer),
}
