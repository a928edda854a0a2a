"""Program text and places in it: offsets, lines and columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field
from itertools import accumulate, count
from operator import add
from typing import NamedTuple

from elastalog.late import dataclass


class Span(NamedTuple):
    """A half-open range of character offsets into one source."""

    start: int
    end: int


NOWHERE = Span(0, 0)
"""The place of what nobody has written."""


@dataclass(frozen=True, slots=True)
class Label:
    """A place that matters. The primary labels are underlined with `^`, the others with `-`."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """A named text. Line numbers start at `first_line`, columns at 1.

    A text that was put together from several files (by `#include`, by macros) knows by its `pieces` where each stretch
    of it was written; `origin` leads back there."""

    name: str
    text: str
    pieces: tuple[Piece, ...] = field(default=(), repr=False, compare=False)
    first_line: int = field(default=1, compare=False)
    _line_starts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def line_starts(self) -> Sequence[int]:
        """Where each line begins. This is computed on first use, since few texts have anything to report."""
        if not self._line_starts:
            *lines, _ = self.text.split("\n")
            self._line_starts[:] = map(add, accumulate(map(len, lines), initial=0), count())
        return self._line_starts

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line + self.first_line - 1, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, without its line ending."""
        number -= self.first_line - 1
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def origin(self, span: Span) -> Origin:
        """Where a span was written."""
        if not self.pieces:
            return Origin(self, span, ())
        first = self._piece_at(span.start)
        last = self._piece_at(max(span.start, span.end - 1))
        start = first.written(span.start).start
        end = first.span.end
        if last.source is first.source:
            end = last.written(max(span.start, span.end - 1)).end
        return Origin(first.source, Span(start, max(start, end)), first.notes)

    def line_written(self, span: Span) -> tuple[str, int]:
        """The file in which a span was written, and the line on which it begins."""
        source, at, _ = self.origin(span)
        return source.name, source.locate(at.start)[0]

    def _piece_at(self, offset: int) -> Piece:
        return self.pieces[max(bisect_right(self.pieces, offset, key=lambda piece: piece.start) - 1, 0)]

    def place(self, offset: int) -> str:
        """`file:line:column` where the character at an offset was written."""
        source, span, _ = self.origin(Span(offset, offset))
        line, column = source.locate(span.start)
        return f"{source.name}:{line}:{column}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text put together from files, from `start` to the next piece, and the `span` of the file it comes
    from: character by character if `is_verbatim`, as a whole (the use of a macro) if not. `notes` say how it got
    there."""

    start: int
    source: Source
    span: Span
    is_verbatim: bool = True
    notes: tuple[str, ...] = ()

    def written(self, offset: int) -> Span:
        """What was written for the character at an offset of the whole text."""
        if not self.is_verbatim:
            return self.span
        at = min(self.span.start + offset - self.start, self.span.end)
        return Span(at, min(at + 1, self.span.end))


class Origin(NamedTuple):
    """A span of a file, and notes on how the text got into the program."""

    source: Source
    span: Span
    notes: tuple[str, ...]
