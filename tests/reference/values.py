"""What functors, comparisons and aggregates compute, on plain Python values, for the reference evaluator."""

import json
import math
import operator as op
import re
import struct
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from itertools import count, takewhile
from typing import Any

from elastalog import Branch

BOUNDS = {"number": (-(2**63), 2**63 - 1), "unsigned": (0, 2**64 - 1)}
NAN, TOO_LARGE = float("nan"), 2**65  # one NaN, so that it equals itself in facts; an integer beyond all bounds
FLOAT = r"(?i)[-+]?([0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?|nan|inf|infinity)"


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
    if functor == "split":
        return list(dict.fromkeys(parts(*arguments)))
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


def parts(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [*text]


def element(values: Any, place: int) -> Any:
    return dict(enumerate(values or ())).get(place)


def whole(a: float, rounding: str) -> float:
    return float(Decimal(a).to_integral_value(rounding)) if math.isfinite(a) else a


def field(text: str, path: str) -> Any:
    """What JSON has at a path; nothing but `name`, `.name` and `[number]` leads on."""
    try:
        value = json.loads(text)
        while path:
            if found := re.match(r"\[([0-9]+)\]", path):
                value = dict(enumerate(value if isinstance(value, list) else []))[int(found[1])]
            elif found := re.match(r"\.?([^][.]+)", path):
                value = value[found[1]] if isinstance(value, dict) else {}[0]
            path = path[found.end() :] if found else {}[0]
    except (ValueError, KeyError):
        return None
    return value


def moment(text: str) -> datetime | None:
    """A time of ISO 8601; one with a zone as it is in UTC, so that only the time itself counts here."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,6})?)?Z?)?", text, re.ASCII)
    try:
        return found and datetime(*(int(part or 0) for part in found.groups()[:6]))
    except ValueError:
        return None


def of_time(name: str) -> Any:
    return lambda text: (found := moment(text)) and getattr(found, name)


def date_text(year: int, month: int, day: int) -> str | None:
    try:
        return f"{date(year, month, day)}"
    except (ValueError, OverflowError):
        return None


def day_later(text: str, days: int) -> str | None:
    last = (found := moment(text)) and found.toordinal() + days
    return None if last is None or not 0 < last <= date.max.toordinal() else f"{date.fromordinal(last)}{text[10:]}"


def second_later(text: str, seconds: int) -> str | None:
    try:
        later = (found := moment(text)) and found + timedelta(0, seconds)
    except OverflowError:
        return None
    return later and later.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + text[19:]


def between(one: str, other: str, *, in_days: bool) -> int | None:
    first, second = moment(one), moment(other)
    if first is None or second is None or ((one[-1] == "Z") != (other[-1] == "Z") and not in_days):
        return None
    days = second.toordinal() - first.toordinal()
    return days if in_days else int((second - first).total_seconds())


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


def literal(term: str) -> tuple[str, str] | None:
    """What stands between the quotes of a literal of RDF, and what follows them."""
    end = 1
    while end < len(term) and term[end] != '"':
        end += 2 if term[end] == "\\" else 1
    after = term[end + 1 :]
    is_typed = after[:3] == "^^<" and after[-1:] == ">" and not {"<", ">"} & set(after[3:-1])
    is_tagged = after[:1] == "@" and after[1:].replace("-", "").isalnum() and after.isascii()
    if term[:1] != '"' or end >= len(term) or not (not after or is_typed or is_tagged):
        return None
    return term[1:end], after


def rdf_value(term: str) -> str | None:
    """Of an IRI, or a literal without a datatype and without escapes: those with are judged in `tests/rdf`."""
    if term[:1] == "<" and term[-1:] == ">":
        return term[1:-1]
    found = literal(term)
    return found and found[0]


def rdf_lang(term: str) -> str | None:
    found = literal(term)
    return found and (found[1][1:].lower() if found[1][:1] == "@" else "")


def rdf_datatype(term: str) -> str | None:
    found = literal(term)
    own = {"": "<http://www.w3.org/2001/XMLSchema#string>"}
    own["@"] = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"
    return found and (own.get(found[1][:1]) or found[1][2:])


BASES = {float: "float", Unsigned: "unsigned", str: "symbol"}
AGGREGATES: dict[str, Any] = {"count": len, "sum": lambda v: sum(sorted(v)), "min": least, "max": greatest}
AGGREGATES |= {"mean": lambda v: sum(sorted(v)) / len(v)}
COMPARISONS: dict[str, Any] = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "match": matches}
COMPARISONS |= {"contains": lambda part, text: part in text}
COMPARISONS |= {"starts_with": lambda part, text: text[: len(part)] == part}
COMPARISONS |= {"ends_with": lambda part, text: text[len(text) - len(part) :] == part and len(part) <= len(text)}
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
FUNCTORS |= {"abs": abs, "round": lambda a: whole(a, ROUND_HALF_UP), "floor": lambda a: whole(a, ROUND_FLOOR)}
FUNCTORS |= {"ceil": lambda a: whole(a, ROUND_CEILING), "sqrt": lambda a: None if a < 0 else math.sqrt(a)}
FUNCTORS |= {"log": lambda a: math.log(a) if a > 0 else None, "exp": lambda a: math.inf if a > 709.78 else math.exp(a)}
FUNCTORS |= {"upper": str.upper, "lower": str.lower, "trim": str.strip, "index_of": str.find, "format": str.format}
FUNCTORS |= {"replace": lambda text, old, new: new.join(text.split(old)) if old else text}
FUNCTORS |= {"capture": lambda p, t, n: (m := re.fullmatch(p, t)) and element([m[0], *m.groups()], n)}
FUNCTORS |= {"split_part": lambda t, s, n: element(parts(t, s), n), "split_count": lambda t, s: len(parts(t, s))}
FUNCTORS |= {
    "json": lambda t, p: v if isinstance(v := field(t, p), str | None) else json.dumps(v, separators=(",", ":"))
}
FUNCTORS |= {"json_size": lambda t, p: len(v) if isinstance(v := field(t, p), dict | list) else None}
FUNCTORS |= {name: of_time(name) for name in ("year", "month", "day", "hour", "minute", "second")}
FUNCTORS |= {"weekday": lambda text: (t := moment(text)) and (t.toordinal() + 6) % 7 + 1, "date": date_text}
FUNCTORS |= {"date_of": lambda text: moment(text) and text[:10], "add_days": day_later, "add_seconds": second_later}
FUNCTORS |= {"days_between": lambda a, b: between(a, b, in_days=True)}
FUNCTORS |= {"seconds_between": lambda a, b: between(a, b, in_days=False)}
FUNCTORS |= {"as float": lambda a: struct.unpack("d", struct.pack("Q" if a >= 2**63 else "q", a))[0]}
FUNCTORS |= {"as number": lambda a: struct.unpack("q", struct.pack("d", a))[0]}
FUNCTORS |= {"as unsigned": lambda a: struct.unpack("Q", struct.pack("d", a))[0]}
FUNCTORS |= {"rdf_value": rdf_value, "rdf_lang": rdf_lang, "rdf_datatype": rdf_datatype}
# The functors whose result has a type of its own; that of the others is the type of their arguments.
RESULTS = {"strlen": "number", "to_number": "number", "ftoi": "number", "utoi": "number", "to_unsigned": "unsigned"}
RESULTS |= {"ftou": "unsigned", "itou": "unsigned", "to_float": "float", "itof": "float", "utof": "float"}
RESULTS |= {"as float": "float", "as number": "number", "as unsigned": "unsigned"}
RESULTS |= {"to_string": "symbol", "substr": "symbol", "count": "number", "mean": "float"}
RESULTS |= dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "weekday", "index_of"), "number")
RESULTS |= dict.fromkeys(("split_count", "json_size", "days_between", "seconds_between"), "number")
RESULTS |= dict.fromkeys(("split", "split_part", "format", "capture", "json", "date", "date_of"), "symbol")
RESULTS |= dict.fromkeys(("add_days", "add_seconds", "upper", "lower", "trim", "replace", "cat"), "symbol")
RESULTS |= dict.fromkeys(("rdf_value", "rdf_lang", "rdf_datatype"), "symbol")
