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
    """The commands of a line. Within the parentheses of a rule, semicolons are between alternatives."""
    started: Piece | None = None
    for part in split(without_comment(line), ";"):
        piece = part if started is None else Piece(line.source, started.start, part.end)
        trimmed = piece.trimmed()
        is_rule = trimmed.after_word()[0] in _TAKING_RULES
        started = piece if is_rule and _is_open(trimmed.text) else None
        if trimmed.text and started is None:
            yield trimmed
    if started is not None:
        yield started.trimmed()


_TAKING_RULES = ("addrule", "removerule")


def _is_open(text: str) -> bool:
    """Whether more parentheses or braces are opened than closed, outside strings."""
    depth = position = 0
    while position < len(text):
        if text[position] == '"':
            position = _end_of_string(text, position)
            continue
        depth += (text[position] in "({") - (text[position] in ")}")
        position += 1
    return depth > 0


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
