"""Makes text from programs safe to print: nothing in it moves the cursor or reorders the line. Also HTML tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

_TAB = "    "
_BLOCKS = {"\n": "\\n", "\r": "\\r", "\x00": "\\0", "\x1b": "\\x1b"}


def show_character(character: str) -> str:
    """The character itself, or an escape if it is invisible or controls the terminal."""
    if " " <= character <= "~":
        return character
    if character == "\t":
        return _TAB
    category = unicodedata.category(character)
    # Cc control, Cf format (bidirectional marks), Cs surrogate, Co private, Cn unassigned, Zl and Zp line separators
    if category[0] == "C" or category in ("Zl", "Zp"):
        return _BLOCKS.get(character) or f"\\u{{{ord(character):x}}}"
    return character


def show_text(text: str) -> str:
    """A text of one line, made safe to print."""
    return text if text.isascii() and text.isprintable() else "".join(map(show_character, text))


def show_lines(text: str) -> str:
    """A text of several lines, made safe to print."""
    return text if text.isascii() and "\x1b" not in text else "\n".join(map(show_text, text.split("\n")))


def width(shown: str) -> int:
    """The number of terminal columns of a text that is shown."""
    if shown.isascii():
        return len(shown)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in shown
    )


MOST_LINES = 10
"""Lines that the `repr` of an answer has."""


def cut(text: str) -> str:
    """The first lines of a text, for a `repr`; `print` shows all of it."""
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join((*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES:,} more lines; `print` shows them"))


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a caption. All values are escaped, and invisible characters in them are made visible."""
    from html import escape

    head = "".join(f"<th>{escape(show_text(name))}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(show_text(str(value)))}</td>" for value in row) + "</tr>" for row in rows
    )
    title = escape(show_text(caption))
    return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
