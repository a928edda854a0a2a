"""Notes that say where an error came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError


@contextmanager
def noted(note: str) -> Iterator[None]:
    """Errors that pass say so in a note, except those that name a file or have the note already."""
    try:
        yield
    except ElastalogError as error:
        found = [d if d.location or note in d.notes else replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
        raise type(error)(found) from None


def origin(found: Diagnostic) -> str | None:
    """The file that a diagnostic names, as its location or in such a note."""
    return found.location or next((note[3:] for note in found.notes if note.startswith("in ")), None)
