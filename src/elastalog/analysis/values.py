"""Base types, and values that are made of values: records, `nil`, and the branches of algebraic data types.

A record is a tuple that knows the base types of its parts, since `(1, 2)` alone does not say whether it holds numbers
or unsigned numbers. `NIL` is a value of its own and not `None`, which means everywhere that a value is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias


class Base(Enum):
    """The base types. `number` and `unsigned` have 64 bits. A record stands for the values of all record types and
    algebraic data types; which one it is, `Attribute.type_name` and the constructors of expressions say."""

    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    SYMBOL = "symbol"
    RECORD = "record"

    @property
    def article(self) -> str:
        """`a number`, `an unsigned`."""
        return f"an {self.value}" if self is Base.UNSIGNED else f"a {self.value}"


class Nil(Enum):
    """The record that has no parts; it belongs to every record type."""

    NIL = "nil"

    def __repr__(self) -> str:
        return "nil"

    def __str__(self) -> str:
        return "nil"

    def __bool__(self) -> bool:
        return False


NIL: Final = Nil.NIL


class Record(tuple[Any, ...]):
    """A record: equal to the plain tuple of its parts. `bases`: the base types of the parts."""

    bases: tuple[Base, ...]

    def __new__(cls, parts: Any, bases: tuple[Base, ...]) -> Record:
        made = super().__new__(cls, parts)
        made.bases = bases
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.bases

    def __repr__(self) -> str:
        return written(self)


class Branch:
    """A value of an algebraic data type: the name of its branch, without `$`, and its parts."""

    __slots__ = ("name", "parts")

    def __init__(self, name: str, *parts: Any) -> None:
        self.name = name
        self.parts: tuple[Any, ...] = parts

    @staticmethod
    def of(name: str, parts: Record) -> Branch:
        """A branch whose parts know their types."""
        made = Branch(name)
        made.parts = parts
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Branch) and self.name == other.name and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.name, self.parts))

    def __repr__(self) -> str:
        return written(self)


Structured: TypeAlias = Nil | Record | Branch


def written(value: Any) -> str:
    """A value as the language writes it: `[1, ["a b", nil]]`, texts in quotes."""
    return _spelled(value, lambda text: json.dumps(text, ensure_ascii=False))


def plain_text(value: Any) -> str:
    """A value as files hold it: texts without quotes where they can be read back so."""
    return _spelled(
        value, lambda text: text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False), number_text
    )


def bare_text(value: Any) -> str:
    """A value as Soufflé prints it: texts as they are, whether they can be read back or not."""
    return _spelled(value, str, number_text)


def number_text(value: float) -> str:
    """A number as files hold it: the shortest text that is read back as the same, laid out as C++ does, without a
    fraction that is 0 and without an exponent below 17."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    return str(int(value)) if text.endswith("e+16") else text


def _spelled(value: Any, text: Callable[[str], str], number: Callable[[Any], str] = repr) -> str:
    """Works without recursion: a list made of records is as deep as it is long."""
    done: list[str] = []
    pending: list[Any] = [value]
    while pending:
        top = pending.pop()
        if isinstance(top, list):  # what stands between parts
            done += top
        elif isinstance(top, str):
            done.append(text(top))
        elif isinstance(top, tuple | Branch):
            opening, parts, closing = ("[", top, "]") if isinstance(top, tuple) else (f"${top.name}(", top.parts, ")")
            if isinstance(top, Branch) and not parts:
                done.append(f"${top.name}")
                continue
            done.append(opening)
            inner: list[Any] = [[", "]] * (2 * len(parts) - 1)
            inner[::2] = parts
            pending.append([closing])
            pending.extend(reversed(inner))
        else:
            done.append("nil" if top is None else number(top))
    return "".join(done)


_BARE: Final = re.compile(r"""(?!nil$|\$)[^\[\](),"\s](?:[^\[\](),"\n\r\t]*[^\[\](),"\s])?""")


def sort_key(value: Any) -> Any:
    """A key that orders values of one type: numbers and texts as usual, with NaN, which has no order, first; branches
    by name and then by parts; records part by part, `nil` first."""
    if isinstance(value, float):
        return (True, value) if value == value else (False, 0.0)
    if isinstance(value, tuple):
        return 1, tuple(map(sort_key, value))
    if isinstance(value, Branch):
        return value.name, tuple(map(sort_key, value.parts))
    return (0, ()) if value is NIL or value is None else value


def public_value(value: Any) -> Any:
    """A value in the form that users see: records are plain tuples, nil is `None`."""
    return _with_nil(value, NIL, None)


def private_value(value: Any) -> Any:
    """A value from a user in the form that proofs use: nil is `NIL`."""
    return _with_nil(value, None, NIL)


def _with_nil(value: Any, before: Nil | None, after: Nil | None) -> Any:
    if value is before:
        return after
    if isinstance(value, Branch):
        return Branch(value.name, *(_with_nil(part, before, after) for part in value.parts))
    return tuple([_with_nil(part, before, after) for part in value]) if isinstance(value, tuple) else value
