"""What diagnostics say. The texts stand in `errors/`, in the section of their code, below `Messages:`; a code has one,
or several by keys, as `E0224.outside`.

    [outside] `.override` stands outside of a component
    ^ overrides nothing
    ? write it into the component that inherits the relation

The first line is the message. `^` and `-` are the labels, primary and not, of the places that are given, in order; `=`
are notes and `?` is the help. `{name}` is a value that is given, `{name!q}` the value in quotes, `{number:argument}` a
number of arguments. A note or help that names a value which is None, or not given, is left out, and of several lines
of help the first that is left counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / "errors"
MESSAGES = "\nMessages:\n"
"""What stands before the messages of a code, at the end of its section."""


class Message(NamedTuple):
    """The texts of a diagnostic, with fields for values. `labels`: for each, whether it is a primary one, and its
    text."""

    text: str
    labels: tuple[tuple[bool, str], ...]
    notes: tuple[str, ...]
    helps: tuple[str, ...]


def quoted(name: object) -> str:
    """A name in the form that messages show; a very long one is cut."""
    text = str(name)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"


def counted(number: int, noun: str) -> str:
    """`1 argument`, `2 arguments`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


class _Texts(Formatter):
    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return quoted(value) if conversion == "q" else super().convert_field(value, conversion)

    def format_field(self, value: Any, spec: str) -> str:
        return counted(value, spec) if len(spec) > 1 and spec[0].isalpha() else str(super().format_field(value, spec))


_TEXTS = _Texts()


def filled(text: str, values: dict[str, object]) -> str:
    """A text with values for its fields."""
    return _TEXTS.vformat(text, (), values)


def filled_if_known(texts: Iterable[str], values: dict[str, object]) -> list[str]:
    """The texts whose values are all known, with these values in their fields."""
    return [filled(text, values) for text in texts if all(values.get(name) is not None for name in fields_in(text))]


def fields_in(text: str) -> set[str]:
    """The names of the fields in a text."""
    return {re.split(r"[.\[]", field)[0] for _, field, _, _ in _TEXTS.parse(text) if field is not None}


def message(key: str) -> Message:
    """The message with a key, such as `E0224.outside`."""
    return _messages_of(key[:5])[key]


@cache
def messages() -> dict[str, Message]:
    """Every message, by code and key."""
    return {key: found for code in _texts_by_code() for key, found in _messages_of(code).items()}


@cache
def _messages_of(code: str) -> dict[str, Message]:
    blocks = _texts_by_code()[code].strip("\n").split("\n\n")
    return dict(_read(code, block) for block in blocks if block)


@cache
def _texts_by_code() -> dict[str, str]:
    """The text with the messages of each code. All of it is read as soon as there is a warning, but only the codes that
    occur are parsed."""
    texts = [path.read_text(encoding="utf-8") for path in (FOLDER.glob("*.md") if FOLDER.is_dir() else _archived())]
    sections = (section for text in texts for section in text.split("\n## ")[1:])
    return {section[:5]: section.partition(MESSAGES)[2] for section in sections}


def _archived() -> Iterable[Any]:
    """The files, if the package is inside an archive."""
    from importlib.resources import files  # which imports much else

    return files(__package__).joinpath("errors").iterdir()


def _read(code: str, block: str) -> tuple[str, Message]:
    """A message and its key. A line that is indented further continues the one before it."""
    lines = re.sub(r"\n {6,}", " ", block).split("\n")
    first, *rest = (line[4:] for line in lines)
    key = re.match(r"\[(\w+)\] ", first)
    texts: dict[str, list[str]] = {"^": [], "-": [], "=": [], "?": []}
    labels = []
    for line in rest:
        texts[line[0]].append(line[2:])
        if line[0] in "^-":
            labels.append((line[0] == "^", line[2:]))
    message = Message(first[key.end() :] if key else first, tuple(labels), tuple(texts["="]), tuple(texts["?"]))
    return (f"{code}.{key[1]}" if key else code), message
