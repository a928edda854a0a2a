"""What a command of the shell is, and the text it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Source, Span

if TYPE_CHECKING:
    from elastalog.cli.shell_commands.state import ShellState


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what was typed, which knows its place, so that errors can point at it."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def trimmed(self) -> Piece:
        """Without the white space around it."""
        text = self.text
        start = self.start + len(text) - len(text.lstrip())
        return Piece(self.source, start, max(start, self.start + len(text.rstrip())))

    def after_word(self) -> tuple[str, Piece]:
        """The first word and what follows it."""
        first = self.trimmed()
        length = 0
        while length < len(first.text) and (first.text[length].isalnum() or first.text[length] in "_?"):
            length += 1
        # A piece that starts with no letter has its first character for a word: commands start with letters.
        length = length or min(1, len(first.text))
        return first.text[:length], Piece(self.source, first.start + length, first.end).trimmed()

    def error(self, code: str, message: str, label: str = "", *, advice: str) -> ElastalogError:
        """An error about this piece."""
        span = Span(self.start, max(self.end, self.start + 1))
        return ElastalogError([Diagnostic(code, message, (Label(span, label),), help=advice, source=self.source)])

    def place(self, error: ElastalogError) -> ElastalogError:
        """An error about the text of this piece as one about its place in what was typed."""
        placed = []
        for found in error.diagnostics:
            if found.source is not None and found.source.name == "<query>":
                labels = tuple(replace(label, span=self._span(label.span)) for label in found.labels)
                found = replace(found, source=self.source, labels=labels)
            elif found.source is None and found.location is None:
                span = Span(self.start, self.end)
                found = replace(found, source=self.source, labels=(Label(span),))
            placed.append(found)
        return type(error)(placed)

    def _span(self, span: Span) -> Span:
        start = min(self.start + span.start, max(self.end - 1, self.start))
        return Span(start, max(min(self.start + span.end, self.end), start + 1))


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `run` gets the state of the shell and what follows the command's name; it raises ElastalogError for
    what the user can mend. `completes` says what its arguments are, for completion."""

    name: str
    usage: str
    help: str
    run: Callable[[ShellState, Piece], None]
    aliases: tuple[str, ...] = ()
    completes: Literal["relations", "files", "strategies", "commands"] | None = None


def require_nothing(command: str, piece: Piece) -> None:
    """An error if a command that takes no arguments was given some."""
    if piece.text:
        raise piece.error("E0652", f"`{command}` takes no arguments", advice=f"write `{command}` alone")
