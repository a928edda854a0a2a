"""What the functors of the dialect compute on plain values; None where there is no value. `analysis.functors` lists the
functors, and the language reference explains each.

Every evaluator uses these functions. The kernel does so where it has no version that works on whole columns; proofs
always do, which checks what NumPy or compiled code has computed. The reference evaluator of the tests has functions of
its own.

The regular expressions of `match` and `capture` are the ones of ECMAScript that RE2 can match, in time linear in the
text, so that no expression and no text can keep an evaluation busy for ever. Back references and look-around, which RE2
lacks, are refused. `.` matches any character except the end of a line; `\\d`, `\\w` and `\\s` mean ASCII, as in
Soufflé; a repetition counts up to 1000.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Final

from elastalog.analysis.values import Branch
from elastalog.diagnostics.diagnostic import LimitReached, finding

BITS: Final = 1 << 64
MOST_CHARACTERS: Final = 1 << 26
"""The most characters of a text that a functor makes."""
_TOO_LARGE: Final = 1 << 65
"""An integer that fits no type."""
_FLOAT: Final = re.compile(r"(?i)[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|nan|inf(?:inity)?)")
_INTEGER: Final = re.compile(r"(-?)(?:0x0*([0-9a-fA-F]+)|0b0*([01]+)|0*([0-9]+))")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_OTHER_DATE: Final = re.compile(
    r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}\b|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}$"
    r"|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}\b|[0-9]{4}-(?:[0-9]-[0-9]{1,2}|[0-9]{2}-[0-9])\b"
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
    """The remainder, with the sign of the dividend."""
    if b == 0:
        return None
    return a % abs(b) if a >= 0 else -(-a % abs(b))


def power(a: Any, b: Any) -> Any:
    """A power. Floats follow IEEE 754; an integer result that fits no type is replaced by any integer that fits
    none."""
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


DATE, NUMBER = "date", "number"
INVALID_TEXTS: dict[str, str] = {}
"""Texts that functions were given, and that are not what they must be there, `DATE` or `NUMBER`, since they were last
reported."""
MOST_INVALID = 100
"""How many of them are remembered at most."""


def _note(text: str, wanted: str) -> None:
    if len(INVALID_TEXTS) < MOST_INVALID:
        INVALID_TEXTS[text] = wanted


def is_number(text: str, functor: str) -> bool:
    """Whether a conversion has a value for a text."""
    return (_FLOAT if functor == "to_float" else _INTEGER).fullmatch(text) is not None


def to_integer(value: Any) -> int | None:
    """The integer that a text spells in the form of a literal, or a number without its fraction. If it is too large,
    the result is an integer that fits no type."""
    if not isinstance(value, str):
        return int(value) if not isinstance(value, float) or math.isfinite(value) else _TOO_LARGE
    spelt = _INTEGER.fullmatch(value)
    if spelt is None:
        _note(value, NUMBER)
        return None
    sign, hexadecimal, binary, decimal = spelt.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    magnitude = int(digits, base) if len(digits) <= 64 else _TOO_LARGE
    return -magnitude if sign else magnitude


def to_float(value: Any) -> float | None:
    """The float that a text spells, in any form that fact files allow, or that a number equals."""
    if isinstance(value, str) and _FLOAT.fullmatch(value) is None:
        _note(value, NUMBER)
        return None
    return float(value)


def _whole(rounded: Callable[[float], float]) -> Callable[[float], float]:
    """Rounds a float by a function; infinities and NaN stay as they are."""
    return lambda value: float(rounded(value)) if math.isfinite(value) else value


floor, ceil = _whole(math.floor), _whole(math.ceil)
nearest = _whole(lambda value: math.copysign(math.floor(abs(value)) + (abs(value) % 1 >= 0.5), value))
"""The nearest whole number, of two the one farther from zero."""


def square_root(value: float) -> float | None:
    """The square root; None for a negative number."""
    return math.sqrt(value) if not value < 0 else None


def logarithm(value: float) -> float | None:
    """The natural logarithm; None for zero and negative numbers."""
    return math.log(value) if not value <= 0 else None


def exponential(value: float) -> float:
    """The exponential, which is infinite if it is too large for a float."""
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
    """The position of a branch among those of its type, ordered by name."""
    return names.split("|").index(branch.name)


def branch_with_number(number: int, names: str) -> Branch | None:
    """The branch at a position, the inverse of `branch_number`."""
    found = names.split("|")
    return Branch(found[number]) if 0 <= number < len(found) else None


# --- texts ---------------------------------------------------------------------------------------------------------


def joined(*texts: str) -> str:
    """The texts joined. A text that would grow without end is an error before memory runs out (E0622)."""
    return "".join(texts) if sum(map(len, texts)) <= MOST_CHARACTERS else _too_long("cat")


def part(text: str, start: int, size: int) -> str:
    """`substr`"""
    return text[start : start + size] if start >= 0 and size >= 0 else ""


def replaced(text: str, old: str, new: str) -> str:
    """Replaces every occurrence, from left to right; with an empty `old`, nothing changes."""
    if not old:
        return text
    size = len(text) + text.count(old) * (len(new) - len(old))
    return text.replace(old, new) if size <= MOST_CHARACTERS else _too_long("replace")


def number_of_parts(text: str, separator: str) -> int:
    """How many parts a text has between separators; characters where the separator is empty."""
    return text.count(separator) + 1 if separator else len(text)


def nth_part(text: str, separator: str, number: int) -> str | None:
    """The part with a given number, counted from 0."""
    found = text.split(separator) if separator else list(text)
    return found[number] if 0 <= number < len(found) else None


def captured(pattern: str, text: str, number: int) -> str | None:
    """The text matched by a group (0 is the whole match), if the pattern matches the whole text."""
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
    raise LimitReached([finding("E0622", functor=functor, most=MOST_CHARACTERS)])


# --- JSON ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _json(text: str) -> Any:
    """The value that a JSON text holds; None if the text is not valid JSON."""
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


def moment_of(text: str) -> datetime | None:
    """The date or time that a text in ISO 8601 form stands for."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    """Like `moment_of`, but remembers texts that are not dates."""
    moment = moment_of(text)
    if moment is None:
        _note(text, DATE)
    return moment


def is_other_date(text: str) -> bool:
    """Whether a text is a date in a form that does not sort correctly as a text: `3/4/2026`, `2026-3-4`."""
    return _OTHER_DATE.match(text) is not None


def note_other_date(text: str) -> bool:
    """Remembers such a text, to be reported later. Returns True, since results per text are cached and need a value."""
    if is_other_date(text):
        _note(text, DATE)
    return True


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
    """The date `days` days later, in the form that it was given."""
    moment = _moment(text)
    try:
        return None if moment is None else (moment + timedelta(days)).date().isoformat() + text[10:]
    except OverflowError:
        return None


def add_seconds(text: str, seconds: int) -> str | None:
    """A time some seconds later, with or without a fraction as it was given."""
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
    """By how many whole seconds the second time is later; None if only one of them has a time zone."""
    first, second = _moment(one), _moment(other)
    if first is None or second is None or (first.tzinfo is None) != (second.tzinfo is None):
        return None
    return math.trunc((second - first).total_seconds())


Matches = Callable[[str], bool]
"""Whether the whole of a text matches."""

# What ECMAScript writes in another way than RE2; a pair of backslashes is looked at first, and left as it is.
_OTHERWISE = re.compile(r"\\(?:\\|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|c([A-Za-z])|(0)(?![0-9])|([^\x00-\x7f]))")
_REFUSED = (
    (re.compile(r"\(\?<?[=!]"), "looking ahead or behind takes more than linear time"),
    (re.compile(r"\\(?:[1-9]|k<)"), "a back reference takes more than linear time"),
    (re.compile(r"\[\^?\]"), "a class of characters has one at least"),
)
# What the engine says of a text that no engine takes.
_MALFORMED = re.compile("missing|unexpected|no argument|trailing|invalid character class range")


class NotRegular(ValueError):
    """A text is not a supported regular expression; the message says why."""

    def __init__(self, reason: str, is_one_elsewhere: bool = False) -> None:
        super().__init__(reason)
        self.is_one_elsewhere = is_one_elsewhere
        """Whether other engines may take it, so that to match nothing would be another answer."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Matches:
    """A function that tests whether whole texts match a pattern. Raises NotRegular."""
    compiled = _compiled(pattern, False)
    # As bytes: for texts the engine reckons where in the text each match lies, which takes three times as long.
    return lambda text: compiled.fullmatch(text.encode()) is not None


def groups_of(pattern: str, text: str) -> tuple[str | None, ...] | None:
    """The whole text and what every group matched, None for a group that did not; None if the text does not match.
    Raises NotRegular."""
    found = _compiled(pattern, True).fullmatch(text)
    return None if found is None else (found.group(), *found.groups())


@lru_cache(maxsize=1024)
def _compiled(pattern: str, captures: bool) -> Any:
    engine, options = _engine(captures)
    try:
        return engine.compile(_OTHERWISE.sub(_as_engine_writes, pattern), options)
    except engine.error as fault:
        raise _not_regular(pattern, fault) from None
    except UnicodeEncodeError:
        raise NotRegular("it is no text") from None


def _not_regular(pattern: str, fault: Exception) -> NotRegular:
    for found, reason in _REFUSED:
        if found.search(pattern.replace("\\\\", "")):
            return NotRegular(reason, is_one_elsewhere=True)
    told = fault.args[0] if fault.args else str(fault)
    told = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    return NotRegular(told, is_one_elsewhere=_MALFORMED.match(told) is None)


def _as_engine_writes(found: re.Match[str]) -> str:
    braced, code, control, zero, other = found.groups()
    if braced or code:
        return rf"\x{{{braced or code}}}"
    if control:
        return rf"\x{ord(control.upper()) - 64:02x}"
    if zero:
        return r"\x00"
    return other or found[0]


@cache
def _engine(captures: bool) -> tuple[Any, Any]:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    return re2, options


# --- terms of RDF, as texts in the form of N-Triples ------------------------------------------------------------------

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^<>]*)>)?', re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CONTROLS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {
    **{code: f"\\u{code:04X}" for code in (*range(32), 127)},
    **{ord(plain): f"\\{letter}" for letter, plain in (*_CONTROLS.items(), ("\\", "\\"), ('"', '"'))},
}
"""What stands for characters in literals of N-Triples, as its canonical form has it."""
_INTEGER_TYPES = frozenset((
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
))  # fmt: skip


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    if code is None:
        return _CONTROLS.get(found[3], found[3])
    number = int(code, 16)
    # What is no character stays as it is written: a number beyond all of them, or half of a surrogate pair.
    return found[0] if number > sys.maxunicode or 0xD800 <= number < 0xE000 else chr(number)


def rdf_value(term: str) -> str | None:
    """The text of a literal, the IRI of an IRI. Literals of numbers, truth values and times that mean the same have the
    same text."""
    if term[:1] == "<" and term[-1:] == ">":
        return term[1:-1]
    found = _LITERAL.fullmatch(term)
    if found is None:
        return None
    text = _ESCAPED.sub(_unescaped, found[1])
    kind = (found[3] or "").removeprefix(_XSD)
    if kind == "boolean":
        return {"1": "true", "0": "false"}.get(text, text)
    try:
        if kind in _INTEGER_TYPES or kind == "decimal":
            return _without_zeros(Decimal(text)) if _DECIMAL.fullmatch(text) else text
        if kind in ("double", "float"):
            return repr(float(text) + 0.0) if _DOUBLE.fullmatch(text) else text
        if kind == "dateTime" and (moment := datetime.fromisoformat(text.replace("Z", "+00:00"))).tzinfo is not None:
            return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    except (ValueError, ArithmeticError):  # one that no number or time here can have
        pass
    return text


def _without_zeros(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def rdf_language(term: str) -> str | None:
    """The language of a literal in lower case; an empty text if it has none."""
    found = _LITERAL.fullmatch(term)
    return None if found is None else (found[2] or "").lower()


def rdf_datatype(term: str) -> str | None:
    """The datatype of a literal, as an IRI in angle brackets."""
    found = _LITERAL.fullmatch(term)
    if found is None:
        return None
    own = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString" if found[2] else f"{_XSD}string"
    return f"<{found[3] or own}>"


def literal_of(term: str) -> tuple[str, str, str] | None:
    """The text of a literal as it is written, its language and the IRI of its datatype, each empty if it has none."""
    found = _LITERAL.fullmatch(term)
    return None if found is None else (_ESCAPED.sub(_unescaped, found[1]), found[2] or "", found[3] or "")


def literal_text(text: str, language: str = "", datatype: str = "") -> str:
    """A literal in the form of N-Triples."""
    kind = f"@{language}" if language else f"^^<{datatype}>" if datatype and datatype != f"{_XSD}string" else ""
    return f'"{text.translate(_WRITTEN)}"{kind}'
