"""A program text being put together from files, each stretch with the place it comes from."""

from __future__ import annotations

from elastalog.diagnostics.source import Piece, Source, Span


class Expansion:
    """Collects stretches of text in order."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0

    def copy(self, source: Source, start: int, end: int, notes: tuple[str, ...]) -> None:
        """Takes over a stretch of a file as it is."""
        if start < end:
            self._add(source.text[start:end], Piece(self._length, source, Span(start, end), True, notes))

    def replace(self, source: Source, span: Span, text: str, notes: tuple[str, ...]) -> None:
        """Puts a text in the place of what was written in a file."""
        if text:
            self._add(text, Piece(self._length, source, span, False, notes))

    def end_line(self, source: Source, offset: int, notes: tuple[str, ...]) -> None:
        """A line break, unless the text so far ends in one: files need not."""
        if self._texts and not self._texts[-1].endswith("\n"):
            self.replace(source, Span(offset, offset), "\n", notes)

    def _add(self, text: str, piece: Piece) -> None:
        self._texts.append(text)
        self._pieces.append(piece)
        self._length += len(text)

    def source(self, name: str) -> Source:
        """All of it, as one text that knows where its parts were written."""
        return Source(name, "".join(self._texts), tuple(self._pieces))
