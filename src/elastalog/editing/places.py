"""Places in files: from the text that a program stands for to the files that it was written in, and back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from elastalog.diagnostics.source import Source, Span


class Place(NamedTuple):
    """A span of a file, which is named by its whole path."""

    file: str
    span: Span


def file_of(source: Source) -> str:
    """The path of a source, in one form for each file."""
    return os.path.abspath(source.name)


def place_of(source: Source, span: Span) -> Place:
    """Where a span of the text that a program stands for was written."""
    origin = source.origin(span)
    return Place(file_of(origin.source), origin.span)


def verbatim_place(source: Source, span: Span) -> Place | None:
    """Where a span was written, character by character; None where a macro stands for it, or lines are renumbered."""
    origin = source.origin(span)
    if origin.source.first_line != 1 or origin.source.text[slice(*origin.span)] != source.text[slice(*span)]:
        return None
    return Place(file_of(origin.source), origin.span)


def offset_in(source: Source, file: str, offset: int) -> int | None:
    """Where a character of a file stands in the text of the program; None where it does not: a branch not taken, a
    macro, a comment of another file."""
    if not source.pieces:
        return min(offset, len(source.text)) if file_of(source) == file else None
    for piece in source.pieces:
        is_inside = piece.is_verbatim and piece.span.start <= offset <= piece.span.end
        if is_inside and piece.source.first_line == 1 and file_of(piece.source) == file:
            return piece.start + offset - piece.span.start
    return None


# --- lines and columns, as editors count them ----------------------------------------------------------------------

_UNITS: Final[dict[str, Callable[[str], int]]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(character > "\uffff" for character in text),
    "utf-32": len,
}


def position(source: Source, offset: int, encoding: str = "utf-16") -> tuple[int, int]:
    """Line and column of a character, both from 0, columns in units of an encoding."""
    line, column = source.locate(min(offset, len(source.text)))
    return line - 1, _UNITS[encoding](source.line(line)[: column - 1])


def offset(source: Source, line: int, column: int, encoding: str = "utf-16") -> int:
    """The character at a line and column, both from 0; the nearest one where there is none."""
    if line >= len(source.line_starts):
        return len(source.text)
    text = source.line(line + source.first_line)
    start = source.line_starts[line]
    if text.isascii() or encoding == "utf-32":
        return start + min(column, len(text))
    units = _UNITS[encoding]
    taken = 0
    for index, character in enumerate(text):
        if taken >= column:
            return start + index
        taken += units(character)
    return start + len(text)
