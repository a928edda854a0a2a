"""One line of a diff file: `+edge(1, 2).`, `-rule: path(x, y) :- edge(x, y).`"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from elastalog.analysis.program import Base
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.relations import faults
from elastalog.relations.faults import shown
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema
from elastalog.syntax.keywords import read_integer, read_string

LINES = "diff"
"""What bad lines are gathered under that do not tell their relation."""

_CHANGE = re.compile(r"\s*([+-])\s*([A-Za-z_?][\w?.]*)\s*\(", re.ASCII)
_RULE = re.compile(r"\s*([+-])\s*rule\s*:(.*)", re.DOTALL)
_CONSTANT = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<sign>-?)\s*(?:(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?(?![\w.])|[0-9]+[eE][+-]?[0-9]+(?![\w.])|nan\b|inf\b)
    |(?P<integer>(?:0x[0-9a-fA-F]+|0b[01]+|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9]+)u?(?![\w.]))))""",
    re.ASCII | re.VERBOSE,
)
_END = re.compile(r"\s*\)\s*\.?\s*(?://.*)?", re.DOTALL)
_BLANK = re.compile(r"\s*(?://.*)?", re.DOTALL)
_COMMA = re.compile(r"\s*,")


class BadLineError(Exception):
    """A line is no change: why, and what to do about it."""

    def __init__(self, reason: str, code: str = faults.CHANGE, advice: str | None = None) -> None:
        self.reason, self.code = reason, code
        self.advice = advice or faults.helps(faults.CHANGE)


def is_blank(line: str) -> bool:
    """Whether a line says nothing, a comment aside."""
    return _BLANK.fullmatch(line) is not None


def rule_in(line: str) -> tuple[str, str] | None:
    """The sign and the text of a rule that comes or goes; None for any other line."""
    found = _RULE.fullmatch(line)
    return None if found is None or is_blank(found[2]) else (found[1], found[2].strip())


def change(line: str, schemas: Mapping[str, Schema]) -> tuple[str, str, list[Any]]:
    """The sign, the relation and the values of a change. Raises BadLineError."""
    start = _CHANGE.match(line)
    if _RULE.match(line):
        raise BadLineError("no rule stands behind `rule:`")
    if start is None:
        raise BadLineError("a change begins with `+` or `-`, a relation and `(`")
    sign, relation = start[1], start[2]
    if relation not in schemas:
        raise unknown_relation(relation, schemas)
    schema = schemas[relation]
    row: list[Any] = []
    position = start.end()
    while not (end := _END.fullmatch(line, position)) or row:
        found = _CONSTANT.match(line, position)
        if found is None:
            raise BadLineError(f"no constant at column {_column(line, position)}")
        if len(row) < schema.arity:
            row.append(_value(schema.columns[len(row)], found))
        else:
            row.append(None)  # too many: counted below
        position = found.end()
        comma = _COMMA.match(line, position)
        if comma is None:
            end = _END.fullmatch(line, position)
            break
        position = comma.end()
    if end is None:
        raise BadLineError(f"expected `)` and the end of the line at column {_column(line, position)}")
    if len(row) != schema.arity:
        raise BadLineError(f"`{schema.name}` has {schema.arity} columns, the change has {len(row)}", "E0501")
    return sign, relation, row


def relation_of(line: str, schemas: Mapping[str, Schema]) -> str:
    """The relation that a bad line is about, if it tells."""
    start = _CHANGE.match(line)
    return start[2] if start is not None and start[2] in schemas else LINES


def _column(line: str, position: int) -> int:
    """The column, from 1, of the first character at or after a position that is not blank."""
    rest = line[position:].rstrip()
    return position + len(rest) - len(rest.lstrip()) + 1


def _value(column: Column, found: re.Match[str]) -> Any:
    value: int | float | str
    if found["string"] is not None:
        unknown: list[int] = []
        value = read_string(found["string"], lambda first, last: unknown.append(first))
        if unknown:
            raise BadLineError(f"unknown escape in {shown(found['string'])}")
    elif found["float"] is not None:
        value = float(found["sign"] + found["float"])
    else:
        integer = read_integer(found["integer"])
        if integer is None:
            raise BadLineError(f"{shown(found[0].strip())} does not fit {column.base.value} `{column.name}`", "E0503")
        value = -integer[0] if found["sign"] else integer[0]
    fault = value_fault(column, value)
    if fault is not None:
        raise BadLineError(fault.reason, fault.code, "use a constant of the declared type")
    return float(value) if column.base is Base.FLOAT else value


def unknown_relation(relation: str, schemas: Mapping[str, Schema]) -> BadLineError:
    """That a change is one of no relation."""
    advice = did_you_mean(relation, schemas) or f"the relations are {', '.join(schemas) or 'none'}"
    return BadLineError(f"no relation `{relation}`", faults.UNKNOWN, advice)
