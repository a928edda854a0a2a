"""Records as text: `[1, [2, nil]]`, `$A(1, "x")`, as facts files hold them.

In text that is read a symbol may stand in quotes, with escapes as in JSON, or bare: then it ends at a comma or a
closing bracket. In text that is written it always stands in quotes inside a record, so that what is written can be
read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from elastalog.analysis.values import NIL, Branch

_TOKEN = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*")|([\[\](),])|([^\[\](),"\s][^\[\](),"]*))""", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+\.|[+-]?inf|nan", re.IGNORECASE)

MOST_NESTED = 200


class NotWritten(Exception):
    """A text does not spell a record; says why."""


MOST_DIGITS = 300
"""Longer whole numbers are none of any type."""


class Bare(str):
    """A text without quotes: a number, or a symbol, as the type of its place says."""

    __slots__ = ()


def read_value(text: str) -> Any:
    """The value that a text spells: tuples, `NIL`, branches; parts without quotes stay `Bare`."""
    reader = _Reader(text)
    value = reader.value(0)
    if reader.next() is not None:
        raise NotWritten("there is more text behind the value")
    if isinstance(value, str):
        raise NotWritten("not a record: write `[…]`, `nil` or `$A(…)`")
    return value


def number_in(text: str, is_float: bool) -> int | float | str:
    """A bare part as the number it spells, if it does; a whole one is a float where one is expected."""
    if _NUMBER.fullmatch(text):
        if len(text) > MOST_DIGITS:
            return text
        return float(text) if is_float else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def next(self) -> str | None:
        """The next token, gone over; None at the end."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            if self.text[self.position :].strip():
                raise NotWritten(f"unexpected {self.text[self.position :][:20]!r}")
            return None
        self.position = found.end()
        return found.group(1) or found.group(2) or found.group(3).rstrip()

    def value(self, depth: int) -> Any:
        if depth > MOST_NESTED:
            raise NotWritten(f"nested deeper than {MOST_NESTED}")
        token = self.next()
        if token is None:
            raise NotWritten("the text ends too early")
        if token == "[":
            return tuple(self.parts("]", depth))
        if token[0] == '"':
            try:
                return str(json.loads(token, strict=False))
            except ValueError:
                raise NotWritten(f"{token[:20]} is not a text in quotes") from None
        if token == "nil":
            return NIL
        if token[0] == "$":
            before = self.position
            if self.next() == "(":
                return Branch(token[1:], *self.parts(")", depth))
            self.position = before
            return Branch(token[1:])
        if token in "](),":
            raise NotWritten(f"unexpected `{token}`")
        return Bare(token)

    def parts(self, closing: str, depth: int) -> list[Any]:
        before = self.position
        if self.next() == closing:
            return []
        self.position = before
        found = []
        while True:
            found.append(self.value(depth + 1))
            token = self.next()
            if token == closing:
                return found
            if token != ",":
                raise NotWritten(f"expected `,` or `{closing}`")
