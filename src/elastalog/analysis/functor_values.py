"""What the functors of the dialect compute, on plain values; None where there is no value. `analysis.functors` says
which functor is which, and the reference what each means.

Every evaluator uses these: the kernel where it has no form of its own that works on whole columns, and proofs always,
so that what NumPy or compiled code has computed is checked against them. The reference evaluator of the tests has
functions of its own.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from elastalog.analysis.regular import NotRegular, groups_of
from elastalog.analysis.values import Branch
from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached

BITS: Final = 1 << 64
MOST_CHARACTERS: Final = 1 << 26
"""Of a text that a functor makes."""
_TOO_LARGE: Final = 1 << 65
"""An integer that fits no type."""
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"(-?)(?:0x0*([0-9a-fA-F]+)|0b0*([01]+)|0*([0-9]+))")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")

# --- numbers -------------------------------------------------------------------------------------------------------


def divide(a: Any, b: Any) -> Any:
    """Truncates integers towards zero."""
    if b == 0:
        return None
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def modulo(a: int, b: int) -> int | None:
    """With the sign of the dividend."""
    if b == 0:
        return None
    return a % abs(b) if a >= 0 else -(-a % abs(b))


def power(a: Any, b: Any) -> Any:
    """Of floats by the rules of IEEE 754; a power of integers that fits no type is some integer that does not."""
    if isinstance(a, float):
        return float_power(a, b)
    if b < 0:
        return None
    return a ** (b if b <= 64 else 64 + b % 2) if abs(a) <= 1 or b <= 64 else _TOO_LARGE


def float_power(a: float, b: float) -> float:
    """a to the b by the rules of IEEE 754: never an exception."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and math.fmod(b, 2) != 0 else math.inf
    except ValueError:
        return math.inf if a == 0 else math.nan


def least(*values: Any) -> Any:
    """NaN counts only where there is nothing else."""
    return min([value for value in values if value == value] or values)


def greatest(*values: Any) -> Any:
    """NaN counts only where there is nothing else."""
    return max([value for value in values if value == value] or values)


def to_integer(value: Any) -> int | None:
    """The integer that a text spells as literals do, or a number without its fraction; one that fits no type where it
    is too large."""
    if not isinstance(value, str):
        return int(value) if not isinstance(value, float) or math.isfinite(value) else _TOO_LARGE
    spelt = _INTEGER.fullmatch(value)
    if spelt is None:
        return None
    sign, hexadecimal, binary, decimal = spelt.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    magnitude = int(digits, base) if len(digits) <= 64 else _TOO_LARGE
    return -magnitude if sign else magnitude


def to_float(value: Any) -> float | None:
    """The float that a text spells, or a number is."""
    return None if isinstance(value, str) and _FLOAT.fullmatch(value) is None else float(value)


def _whole(rounded: Callable[[float], float]) -> Callable[[float], float]:
    """A float without a fraction; infinite ones and NaN stay as they are."""
    return lambda value: float(rounded(value)) if math.isfinite(value) else value


floor, ceil = _whole(math.floor), _whole(math.ceil)
nearest = _whole(lambda value: math.copysign(math.floor(abs(value)) + (abs(value) % 1 >= 0.5), value))
"""The nearest whole number, of two the one farther from zero."""


def square_root(value: float) -> float | None:
    """None of a negative number."""
    return math.sqrt(value) if not value < 0 else None


def logarithm(value: float) -> float | None:
    """The natural one; None of zero and of a negative number."""
    return math.log(value) if not value <= 0 else None


def exponential(value: float) -> float:
    """Infinite where it is too large."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def as_float(bits: int) -> float:
    """The float that 64 bits are."""
    value: float = struct.unpack("<d", (bits % BITS).to_bytes(8, "little"))[0]
    return value


def as_bits(value: float) -> int:
    """The 64 bits of a float, as an unsigned number."""
    return int.from_bytes(struct.pack("<d", value + 0.0), "little")


def as_number(value: float) -> int:
    """The 64 bits of a float, as a number."""
    bits = as_bits(value)
    return bits - BITS if bits >= BITS // 2 else bits


def branch_number(branch: Branch, names: str) -> int:
    """The place of a branch among those of its type, which have no fields, by their names."""
    return names.split("|").index(branch.name)


def branch_with_number(number: int, names: str) -> Branch | None:
    """The branch at a place."""
    found = names.split("|")
    return Branch(found[number]) if 0 <= number < len(found) else None


# --- texts ---------------------------------------------------------------------------------------------------------


def joined(*texts: str) -> str:
    """A text that grows without end must not end with the memory: E0622."""
    return "".join(texts) if sum(map(len, texts)) <= MOST_CHARACTERS else _too_long("cat")


def part(text: str, start: int, size: int) -> str:
    """`substr`"""
    return text[start : start + size] if start >= 0 and size >= 0 else ""


def replaced(text: str, old: str, new: str) -> str:
    """Every occurrence, from left to right; nothing is replaced where `old` is empty."""
    if not old:
        return text
    size = len(text) + text.count(old) * (len(new) - len(old))
    return text.replace(old, new) if size <= MOST_CHARACTERS else _too_long("replace")


def parts(text: str, separator: str) -> list[str]:
    """The parts of a text between separators; its characters where the separator is empty."""
    return text.split(separator) if separator else list(text)


def number_of_parts(text: str, separator: str) -> int:
    """How many parts there are."""
    return text.count(separator) + 1 if separator else len(text)


def nth_part(text: str, separator: str, number: int) -> str | None:
    """The part with a number, from 0."""
    found = parts(text, separator)
    return found[number] if 0 <= number < len(found) else None


def captured(pattern: str, text: str, number: int) -> str | None:
    """What the group with a number matched, 0 for the whole, where the pattern matches the whole text."""
    try:
        groups = groups_of(pattern, text)
    except NotRegular:
        return None
    return groups[number] if groups is not None and 0 <= number < len(groups) else None


TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": lambda part, text: part in text,
    "starts_with": lambda part, text: text.startswith(part),
    "ends_with": lambda part, text: text.endswith(part),
}
"""The comparisons of texts that are written like atoms, but for `match`."""


def _too_long(functor: str) -> str:
    raise LimitReached(
        [
            Diagnostic(
                "E0622",
                f"`{functor}` would make a text of more than {MOST_CHARACTERS:,} characters",
                help=f"see that recursion through `{functor}` ends: bound it with `strlen`",
            )
        ]
    )


# --- JSON ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _json(text: str) -> Any:
    """The value that a text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_at(text: str, path: str) -> Any:
    """The value at a path like `a.b[0]`; None if there is none."""
    value, at = _json(text), 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        name, index = step.groups()
        if isinstance(value, dict) and name is not None:
            value = value.get(name)
        elif isinstance(value, list) and index is not None and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
        at = step.end()
    return value


def json_field(text: str, path: str) -> str | None:
    """A text as it is; any other value as JSON writes it."""
    value = _json_at(text, path)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_size(text: str, path: str) -> int | None:
    """The number of elements of a list, or of fields of an object."""
    value = _json_at(text, path)
    return len(value) if isinstance(value, list | dict) else None


# --- dates and times -----------------------------------------------------------------------------------------------


def _moment(text: str) -> datetime | None:
    """What a text in the form of ISO 8601 says."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def date(year: Any, month: int = 0, day: int = 0) -> str | None:
    """The date of three numbers, or of a time."""
    if isinstance(year, str):
        moment = _moment(year)
        return None if moment is None else moment.date().isoformat()
    try:
        return datetime(year, month, day).date().isoformat()
    except (ValueError, OverflowError):
        return None


def _field(name: str) -> Callable[[str], int | None]:
    return lambda text: None if (moment := _moment(text)) is None else getattr(moment, name)


year, month, day, hour, minute, second = map(_field, ("year", "month", "day", "hour", "minute", "second"))


def weekday(text: str) -> int | None:
    """1 on Monday, 7 on Sunday."""
    return None if (moment := _moment(text)) is None else moment.isoweekday()


def add_days(text: str, days: int) -> str | None:
    """A date so many days later, in the form that it was given."""
    moment = _moment(text)
    try:
        return None if moment is None else (moment + timedelta(days)).date().isoformat() + text[10:]
    except OverflowError:
        return None


def add_seconds(text: str, seconds: int) -> str | None:
    """A time so many seconds later, to the second or with the fraction that it was given."""
    moment = _moment(text)
    try:
        later = None if moment is None else (moment + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return None
    return later if later is None or not text.endswith("Z") else later.removesuffix("+00:00") + "Z"


def days_between(one: str, other: str) -> int | None:
    """How many days the second date is later."""
    first, second = _moment(one), _moment(other)
    return None if first is None or second is None else (second.date() - first.date()).days


def seconds_between(one: str, other: str) -> int | None:
    """How many whole seconds the second time is later; None if only one of them has a time zone."""
    first, second = _moment(one), _moment(other)
    if first is None or second is None or (first.tzinfo is None) != (second.tzinfo is None):
        return None
    return math.trunc((second - first).total_seconds())
