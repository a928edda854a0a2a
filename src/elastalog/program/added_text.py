"""Program text that is added to a program, and errors in it: they are told with places in what was added."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass

ADDED = "<added rules>"
"""What stands for the file name."""


@dataclass(frozen=True, slots=True)
class AddedText:
    """A text, and where it begins in the program that it has been added to."""

    text: str
    offset: int

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Errors of the program that pass and are about the added text point into that."""
        try:
            yield
        except ElastalogError as error:
            raise type(error)([self.placed(found) for found in error.diagnostics]) from None

    def placed(self, found: Diagnostic) -> Diagnostic:
        """A diagnostic about the added text points into that, and quotes what it says of the rest of the program."""
        if found.source is None or found.source.name == ADDED:
            return found
        own: list[Label] = []
        quoted: list[str] = []
        for label in found.labels:
            start, end = label.span.start - self.offset, label.span.end - self.offset
            if start >= 0 and end <= len(self.text):
                own.append(replace(label, span=Span(start, end)))
            else:
                line = found.source.line(found.source.locate(label.span.start)[0]).strip()
                quoted.append(f"{label.text or 'see also'}: `{line[:200]}`")
        if not any(label.primary for label in own):
            return found
        return replace(found, source=Source(ADDED, self.text), labels=tuple(own), notes=(*quoted, *found.notes))
