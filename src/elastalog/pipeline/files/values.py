"""Values written as text: exactly what each base type accepts, and why not otherwise.

Numbers are decimal, hexadecimal (`0x1f`) or binary (`0b101`) with an optional sign; blanks around a number do not
count. A symbol is the text itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from elastalog.analysis.program import Base, Value
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import LEAST_NUMBER, MOST_NUMBER, MOST_UNSIGNED
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column

INTEGER = re.compile(r"[ \t]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))[ \t]*", re.ASCII)
FLOAT = re.compile(
    r"[ \t]*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|(inf(?:inity)?))[ \t]*",
    re.ASCII | re.IGNORECASE,
)
# Text of more digits is out of range whatever it says; converting it could take very long.
MOST_DIGITS = 400


def parser_of(column: Column) -> Callable[[str], Value | Fault]:
    """The function that reads the text of one column."""
    match column.base:
        case Base.SYMBOL:
            return str
        case Base.NUMBER:
            return lambda text: _integer(column, text, LEAST_NUMBER, MOST_NUMBER)
        case Base.UNSIGNED:
            return lambda text: _integer(column, text, 0, MOST_UNSIGNED)
        case Base.FLOAT:
            return lambda text: _float(column, text)
        case Base.RECORD:
            return lambda text: value_fault(column, text) or text


def _integer(column: Column, text: str, least: int, most: int) -> int | Fault:
    found = INTEGER.fullmatch(text)
    if found is None:
        return _not_of_type(column, text)
    sign, hexadecimal, binary, decimal = found.groups()
    digits = hexadecimal or binary or decimal
    if len(digits.lstrip("0")) > MOST_DIGITS:
        return _out_of_range(column, text)
    value = int(digits, 16 if hexadecimal else 2 if binary else 10)
    if sign == "-":
        value = -value
    return value if least <= value <= most else _out_of_range(column, text)


def _float(column: Column, text: str) -> float | Fault:
    found = FLOAT.fullmatch(text)
    if found is None:
        return _not_of_type(column, text)
    value = float(text)
    return _out_of_range(column, text) if math.isinf(value) and found.group(1) is None else value


def _not_of_type(column: Column, text: str) -> Fault:
    article = "an" if column.base is Base.UNSIGNED else "a"
    return Fault(faults.TYPE, f"{shown(text)} is not {article} {column.base.value} (`{column.name}`)")


def _out_of_range(column: Column, text: str) -> Fault:
    return Fault(faults.RANGE, f"{shown(text)} does not fit {column.base.value} `{column.name}`")
