"""What is typed, taken apart: commands between semicolons, facts between commas, comments left out."""

from __future__ import annotations

from collections.abc import Iterator

from elastalog.cli.shell_commands.command import Piece


def split(piece: Piece, separator: str) -> Iterator[Piece]:
    """The parts of a text between separators that stand outside strings and parentheses."""
    text = piece.text
    start = position = depth = 0
    while position < len(text):
        character = text[position]
        if character == '"':
            position = _end_of_string(text, position)
            continue
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == separator and (depth <= 0 or separator == ";"):
            yield Piece(piece.source, piece.start + start, piece.start + position)
            start = position + 1
        position += 1
    yield Piece(piece.source, piece.start + start, piece.end)


def without_comment(piece: Piece) -> Piece:
    """The text up to `//` or `#` outside strings."""
    text = piece.text
    position = 0
    while position < len(text):
        if text[position] == '"':
            position = _end_of_string(text, position)
            continue
        if text[position] == "#" or text.startswith("//", position):
            return Piece(piece.source, piece.start, piece.start + position)
        position += 1
    return piece


def statements(line: Piece) -> Iterator[Piece]:
    """The commands of a line."""
    for part in split(without_comment(line), ";"):
        trimmed = part.trimmed()
        if trimmed.text:
            yield trimmed


def _end_of_string(text: str, start: int) -> int:
    """The position after the string that starts here, or the end of the text if it is not closed."""
    position = start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == '"':
            return position + 1
        position += 1
    return len(text)
