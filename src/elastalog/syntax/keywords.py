"""The words and operators of the dialect, and the conversion of constants between text and value."""

from __future__ import annotations

import re
from collections.abc import Callable

# fmt: off
FUNCTORS = frozenset([
    "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "land", "lor", "lnot",
    "lxor", "min", "max", "cat", "strlen", "substr", "ord", "to_number", "to_string", "to_unsigned",
    "to_float", "itof", "itou", "ftoi", "ftou", "utoi", "utof", "range",
])
# fmt: on
AGGREGATES = frozenset({"count", "sum", "min", "max", "mean"})
CONSTRAINTS = frozenset({"match", "contains"})
ENDS = frozenset({"starts_with", "ends_with"})
"""Constraints, unless a relation has the name."""
TEXT_TESTS = CONSTRAINTS | ENDS
"""The comparisons of texts, which are written like atoms."""
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
NOT = "not "
"""What the operator of a negated comparison begins with, `not <`; programs write `!(x < y)`."""
AUTOINC = "autoinc"
"""The functor that numbers the derivations of a rule."""
RESERVED = FUNCTORS | AGGREGATES | CONSTRAINTS | {"true", "false", "nil", "as", AUTOINC}
"""Words that cannot name a relation or a variable."""

_LEVELS = ("lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %", "", "^")
PRECEDENCE = {name: level for level, names in enumerate(_LEVELS, 1) for name in names.split()}
"""Binding power of the infix operators; all associate to the left except `^`."""

PREFIX_PRECEDENCE = 10
"""Binding power of unary minus, `bnot` and `lnot`: weaker than `^`, so that `-2^2` is `-(2^2)`."""

PREFIXES = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}

DIRECTIVES = (
    "decl",
    "type",
    "number_type",
    "symbol_type",
    "input",
    "output",
    "printsize",
    "limitsize",
    "plan",
    "strict",
    "pragma",
    "functor",
    "comp",
    "init",
    "override",
    "lattice",
)
LATTICE_OPERATORS = ("Bottom", "Top", "Lub", "Glb", "Leq")

IO_QUALIFIERS = frozenset({"input", "output", "printsize"})
"""Qualifiers of the old style that stand for a directive."""

REPRESENTATIONS = frozenset({"btree", "btree_delete", "brie", "eqrel"})
QUALIFIERS = IO_QUALIFIERS | REPRESENTATIONS | {"magic", "no_magic", "inline", "no_inline", "overridable"}

LARGEST_UNSIGNED = 2**64 - 1
SMALLEST_NUMBER = -(2**63)


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_ESCAPES |= {"a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNPRINTABLE = re.compile(r'[\x00-\x1f"\\\x7f-\x9f]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def read_integer(text: str) -> tuple[int, bool] | None:
    """The value of an integer literal, and whether it has the suffix `u`; None if it does not fit 64 bits."""
    if len(text) < 19 and text.isdecimal():  # nearly always
        return int(text), False
    is_unsigned = text.endswith("u")
    digits = text[:-1] if is_unsigned else text
    if "." in digits:
        first, second, third, fourth = map(int, digits.split("."))
        return first << 24 | second << 16 | third << 8 | fourth, is_unsigned
    prefix = digits[:2]
    base = 16 if prefix == "0x" else 2 if prefix == "0b" else 10
    significant = (digits if base == 10 else digits[2:]).lstrip("0") or "0"
    # The length goes first: converting a million digits would take minutes.
    if len(significant) > 64:
        return None
    value = int(significant, base)
    return (value, is_unsigned) if value <= LARGEST_UNSIGNED else None


def read_string(text: str, report_unknown: Callable[[int, int], None]) -> str:
    """The value of a string with its quotes. Unknown escapes are reported by their offsets and stand for the character
    itself."""
    inside = text[1:-1]
    if "\\" not in inside:
        return inside

    def resolve(escape: re.Match[str]) -> str:
        name = escape[1]
        if name in _ESCAPES:
            return _ESCAPES[name]
        if len(name) == 3:
            return chr(int(name[1:], 16))
        report_unknown(escape.start() + 1, escape.end() + 1)
        return name

    return _ESCAPE.sub(resolve, inside)


def write_string(value: str) -> str:
    """The string as it is written in a program."""
    return '"' + _UNPRINTABLE.sub(lambda found: _SHORT.get(found[0]) or f"\\x{ord(found[0]):02x}", value) + '"'
