"""Source lines with their labels underlined, in colours if wanted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from elastalog.diagnostics.display import show_character, show_text, width
from elastalog.diagnostics.source import Label, Source

_WIDEST = 120
"""Longer lines are cropped to this many characters around a label."""
_BEFORE = 40
"""How many of them are shown before the label."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The part of a label on one line, as character indexes of the line."""

    start: int
    end: int
    text: str
    primary: bool


def excerpt(source: Source, labels: list[Label], gutter: int, palette: Palette, style: str) -> list[str]:
    """Each line that has a label, in order, with its underlines. `gutter` is the width of the line numbers."""
    margin = f"{' ' * gutter} {palette.paint('|', GUTTER)}"
    output: list[str] = []
    for number, marks in sorted(_marks_by_line(source, labels).items()):
        line = source.line(number)
        # Marks that do not fit into one window of a long line get a window each.
        for first, last, inside in _windows(line, marks):
            shown = _ShownLine(line, first, last, palette)
            heading = palette.paint(f"{number:>{gutter}} |", GUTTER)
            output.append(f"{heading} {shown.text}".rstrip())
            output.extend(
                f"{margin} {row}".rstrip() for layer in _layers(inside) for row in shown.underline(layer, style)
            )
    return output


def _marks_by_line(source: Source, labels: list[Label]) -> dict[int, list[_Mark]]:
    """The marks of each line. A label of several lines is marked on its first and last line, with the text on the
    last."""
    marks: dict[int, list[_Mark]] = {}
    for label in labels:
        start_line, start_column = source.locate(label.span.start)
        end_line, end_column = source.locate(max(label.span.start, label.span.end - 1))
        start, end = start_column - 1, end_column
        if start_line == end_line:
            marks.setdefault(start_line, []).append(_Mark(start, max(end, start + 1), label.text, label.primary))
            continue
        first = source.line(start_line)
        marks.setdefault(start_line, []).append(_Mark(start, max(len(first), start + 1), "", label.primary))
        last = source.line(end_line)
        indent = len(last) - len(last.lstrip())
        marks.setdefault(end_line, []).append(_Mark(min(indent, end - 1), end, label.text, label.primary))
    return {number: sorted(found, key=lambda mark: (mark.start, mark.end)) for number, found in marks.items()}


def _windows(line: str, marks: list[_Mark]) -> list[tuple[int, int, list[_Mark]]]:
    if len(line) <= _WIDEST:
        return [(0, len(line), marks)]
    windows: list[tuple[int, int, list[_Mark]]] = []
    for mark in marks:
        if windows and mark.start < windows[-1][1]:
            windows[-1][2].append(mark)
        else:
            first = 0 if mark.start < _WIDEST - _BEFORE else mark.start - _BEFORE
            windows.append((first, min(first + _WIDEST, len(line)), [mark]))
    return windows


def _layers(marks: list[_Mark]) -> list[list[_Mark]]:
    """The marks in rows such that none overlap within a row."""
    layers: list[list[_Mark]] = []
    for mark in marks:
        for layer in layers:
            if layer[-1].end < mark.start:
                layer.append(mark)
                break
        else:
            layers.append([mark])
    return layers


class _ShownLine:
    """A window of a source line as it is printed, with the terminal column of each character."""

    def __init__(self, line: str, first: int, last: int, palette: Palette) -> None:
        self.palette = palette
        self.first = first
        visible = line[first:last]
        lead = "…" if first > 0 else ""
        self.columns = [len(lead)]
        parts = [lead]
        for character, style in zip(visible, palette.styles_of_line(visible), strict=True):
            shown = show_character(character)
            parts.append(palette.paint(shown, style))
            self.columns.append(self.columns[-1] + width(shown))
        parts.append("…" if last < len(line) else "")
        self.text = "".join(parts)

    def column(self, index: int) -> int:
        """The terminal column where a character of the line starts; beyond the window, its end."""
        index = max(index - self.first, 0)
        beyond = index - (len(self.columns) - 1)
        return self.columns[index] if beyond <= 0 else self.columns[-1] + min(beyond, 1)

    def underline(self, marks: list[_Mark], style: str) -> list[str]:
        """A row of underlines that ends in the text of the last one, and more rows for the other texts."""
        row, column = "", 0
        for mark in marks:
            start = self.column(mark.start)
            length = max(self.column(mark.end) - start, 1)
            row += " " * (start - column) + self.paint(mark, ("^" if mark.primary else "-") * length, style)
            column = start + length
        if marks[-1].text:
            row += " " + self.paint(marks[-1], show_text(marks[-1].text), style)
        rows = [row]
        waiting = [mark for mark in marks[:-1] if mark.text]
        if waiting:
            rows.append(self.connectors(waiting, style)[0])
        while waiting:
            mark = waiting.pop()
            before, column = self.connectors(waiting, style)
            rows.append(
                before + " " * (self.column(mark.start) - column) + self.paint(mark, show_text(mark.text), style)
            )
        return rows

    def connectors(self, marks: list[_Mark], style: str) -> tuple[str, int]:
        """A `|` under each mark, and the column after the last."""
        row, column = "", 0
        for mark in marks:
            start = self.column(mark.start)
            row += " " * (start - column) + self.paint(mark, "|", style)
            column = start + 1
        return row, column

    def paint(self, mark: _Mark, text: str, style: str) -> str:
        return self.palette.paint(text, style if mark.primary else SECONDARY)


def arrow(palette: Palette, gutter: int, place: str) -> str:
    """The line that says where an excerpt is from."""
    return f"{' ' * gutter}{palette.paint('-->', GUTTER)} {show_text(place)}"


def remark(palette: Palette, gutter: int, word: str, text: str) -> list[str]:
    """A note or help below an excerpt."""
    first, *rest = (show_text(line) for line in text.split("\n"))
    margin = " " * (gutter + 1)
    lines = [f"{margin}{palette.paint('=', GUTTER)} {palette.paint(word, BOLD)}: {first}"]
    return lines + [f"{margin}  {' ' * (len(word) + 2)}{line}" for line in rest]


# --- colours ---------------------------------------------------------------------------------------------------------

_RESET = "\x1b[0m"
SEVERITIES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
GUTTER = "\x1b[1;34m"
SECONDARY = "\x1b[1;34m"
BOLD = "\x1b[1m"

_TOKEN_STYLES = (
    ("Token.Comment", "\x1b[90m"),
    ("Token.Keyword", "\x1b[35m"),
    ("Token.Literal.String", "\x1b[32m"),
    ("Token.Literal.Number", "\x1b[36m"),
    ("Token.Name.Function", "\x1b[33m"),
    ("Token.Name.Builtin", "\x1b[35m"),
)


@dataclass(frozen=True, slots=True)
class Palette:
    """How parts of the output are coloured: with colours for terminals, where source lines use the Pygments lexer named
    `elastalog`; or not at all."""

    has_colours: bool

    def paint(self, text: str, style: str) -> str:
        """The text with the style around it."""
        return f"{style}{text}{_RESET}" if self.has_colours and text and style else text

    def styles_of_line(self, line: str) -> list[str]:
        """A style for each character of a source line; empty for none."""
        lexer = find_lexer() if self.has_colours else None
        styles: list[str] = []
        for token, text in lexer.get_tokens(line) if lexer is not None else ():
            name = str(token)
            style = next((style for prefix, style in _TOKEN_STYLES if name.startswith(prefix)), "")
            styles.extend([style] * len(text))
        return (styles + [""] * len(line))[: len(line)]


@cache
def find_lexer() -> Any | None:
    """The lexer registered with Pygments, by name since it belongs to a higher layer; None when there is none."""
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError:
        return None
    try:
        return get_lexer_by_name("elastalog", stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
