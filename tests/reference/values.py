"""What functors, comparisons and aggregates compute, on plain Python values, for the reference evaluator."""

import math
import operator as op
import re
from itertools import count, takewhile
from typing import Any

from elastalog import Branch

BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}
NAN, TOO_LARGE = float("nan"), 2**65  # one NaN, so that it equals itself in facts; an integer beyond all bounds
FLOAT = r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"


class Overflow(ArithmeticError):
    """An integer left the range of its type."""


class Unsigned(int):
    """A value of type unsigned, told from a number."""


class Made(tuple[Any, ...]):
    """A record or branch: its constructor (`[]`, `nil` or `$A`), then its parts."""


def made(value: Any) -> Any:
    """A value that a session gives, or takes, as the judge has it."""
    if value is None:
        return Made(("nil",))
    if isinstance(value, Branch):
        return Made((f"${value.name}", *map(made, value.parts)))
    return Made(("[]", *map(made, value))) if type(value) is tuple else value


def as_value(value: Any, base: str) -> Any:
    value = made(value)
    if base in BOUNDS and not BOUNDS[base][0] <= value <= BOUNDS[base][1]:
        raise Overflow(f"{value} is no {base}")
    if base == "float":
        return NAN if math.isnan(value) else float(value) + 0.0  # -0.0 becomes 0.0
    return Unsigned(value) if base == "unsigned" else value


def apply(functor: str, arguments: tuple[Any, ...], base: str) -> list[Any]:
    """The values of a functor whose result has type `base`: none where it fails, several for `range`."""
    if functor == "range":
        return range_values(*arguments)
    value: Any = None if functor in ("/", "%") and not arguments[1] else FUNCTORS[functor](*arguments)
    if functor.startswith("b"):  # the functors of bits
        value = (value - BOUNDS[base][0]) % 2**64 + BOUNDS[base][0]
    return [] if value is None else [as_value(value, base)]


def range_values(start: Any, end: Any, step: Any = None) -> list[Any]:
    step = (1 if start <= end else -1) if step is None else step
    return (
        list(takewhile(lambda v: v < end if step > 0 else v > end, count(start, step)))
        if step
        else [start][start == end :]
    )


def compare(name: str, left: Any, right: Any) -> bool:
    is_same = left is right or left == right
    return is_same == (name == "=") if name in ("=", "!=") else bool(COMPARISONS[name](left, right))


def aggregate(operator: str, values: list[Any], want: str | None) -> list[Any]:
    """The result where the type `want` is wanted: none for an operator that says nothing about no values."""
    base = RESULTS.get(operator) or want or BASES.get(type((*values, 0)[0]), "number")
    return [as_value(AGGREGATES[operator](values), base)] if values or operator in ("count", "sum") else []


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return None if b < 0 else a**b if abs(a) < 2 or b < 65 else TOO_LARGE
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError) as error:  # what IEEE 754 says instead
        return -math.inf if a < 0 and b % 2 == 1 else NAN if a and isinstance(error, ValueError) else math.inf


def to_integer(a: Any) -> int | None:
    if isinstance(a, str):
        return (
            int(a, 0 if "x" in a or "b" in a else 10) if re.fullmatch("-?([0-9]+|0x[0-9a-fA-F]+|0b[01]+)", a) else None
        )
    return math.trunc(a) if math.isfinite(a) else TOO_LARGE


def to_float(a: Any) -> float | None:
    return float(a) if not isinstance(a, str) or re.fullmatch(FLOAT, a) else None


def numbers_of(values: Any) -> Any:
    """NaN counts only where there is nothing else."""
    return [value for value in values if value == value] or values


def least(values: Any) -> Any:
    return min(numbers_of(values))


def greatest(values: Any) -> Any:
    return max(numbers_of(values))


def matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return False


BASES = {float: "float", Unsigned: "unsigned", str: "symbol"}
AGGREGATES: dict[str, Any] = {"count": len, "sum": lambda v: sum(sorted(v)), "min": least, "max": greatest}
AGGREGATES |= {"mean": lambda v: sum(sorted(v)) / len(v)}
COMPARISONS: dict[str, Any] = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "match": matches}
COMPARISONS |= {"contains": lambda part, text: part in text}
FUNCTORS: dict[str, Any] = {"+": op.add, "-": op.sub, "*": op.mul, "^": power, "neg": op.neg}
FUNCTORS |= {"min": lambda *values: least(values), "max": lambda *values: greatest(values)}
FUNCTORS |= {"/": lambda a, b: a / b if isinstance(a, float) else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)}
FUNCTORS |= {"%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1), "cat": lambda *texts: "".join(texts)}
FUNCTORS |= {"band": op.and_, "bor": op.or_, "bxor": op.xor, "bnot": op.invert, "bshl": lambda a, b: a << b % 64}
FUNCTORS |= {"bshr": lambda a, b: a >> b % 64, "bshru": lambda a, b: a % 2**64 >> b % 64, "lnot": lambda a: int(a == 0)}
FUNCTORS |= {"land": lambda a, b: int(a != 0 and b != 0), "lor": lambda a, b: int(a != 0 or b != 0)}
FUNCTORS |= {"lxor": lambda a, b: int((a != 0) != (b != 0)), "strlen": len, "to_string": str}
FUNCTORS |= {"substr": lambda text, i, n: text[i : i + n] if i >= 0 and n >= 0 else ""}
FUNCTORS |= {"to_float": to_float, "itof": to_float, "utof": to_float, "to_number": to_integer, "ftoi": to_integer}
FUNCTORS |= {"utoi": to_integer, "to_unsigned": to_integer, "ftou": to_integer, "itou": to_integer}
# The functors whose result has a type of its own; that of the others is the type of their arguments.
RESULTS = {"strlen": "number", "to_number": "number", "ftoi": "number", "utoi": "number", "to_unsigned": "unsigned"}
RESULTS |= {"ftou": "unsigned", "itou": "unsigned", "to_float": "float", "itof": "float", "utof": "float"}
RESULTS |= {"to_string": "symbol", "substr": "symbol", "count": "number", "mean": "float"}
