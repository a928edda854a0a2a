"""Where a name is declared, and where else it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from elastalog.diagnostics.source import Source, Span
from elastalog.editing.places import Place, place_of
from elastalog.editing.reading import Reading
from elastalog.editing.rooms import Symbol

_INCLUDE: Final = re.compile(r'^[ \t]*(?:\#[ \t]*include|\.include)[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def definition(reading: Reading, file: str, offset: int) -> Place | None:
    """Where the name at a place is declared: a variable where its clause first has it, an included file at its
    beginning."""
    found = reading.at(file, offset)
    return found.symbol.place if found is not None else None


def references(readings: Iterable[Reading], symbol: Symbol, *, with_definition: bool = True) -> tuple[Place, ...]:
    """All places of a symbol in some programs that may share files, in order."""
    places = {
        place_of(reading.source, each.span)
        for reading in readings
        for each in reading.occurrences
        if each.symbol == symbol
    }
    return tuple(sorted(places if with_definition else places - {symbol.place}))


def included_files(source: Source) -> tuple[tuple[Span, str], ...]:
    """The files that a text includes, as they are named, with the spans of the names."""
    return tuple((Span(*found.span(1)), found[1]) for found in _INCLUDE.finditer(source.text))


def included_at(source: Source, offset: int, folders: Iterable[str]) -> Place | None:
    """The file that is named at a place, looked for beside the text and in folders."""
    for span, name in included_files(source):
        if span.start <= offset <= span.end:
            for folder in (str(Path(source.name).parent), *folders):
                path = Path(folder) / name
                if path.is_file():
                    return Place(str(path.resolve()), Span(0, 0))
    return None
