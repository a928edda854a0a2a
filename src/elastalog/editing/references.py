"""Where a name is declared, where else it occurs, and renaming: everywhere, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.reading import Occurrence, Reading
from elastalog.editing.scopes import Kind, Place, Scope, Symbol, place_of, verbatim_place
from elastalog.syntax.keywords import RESERVED

_INCLUDE: Final = re.compile(r'^[ \t]*(?:\#[ \t]*include|\.include)[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def definition(reading: Reading, file: str, offset: int) -> Place | None:
    """Where the name at a place is declared. For a variable, that is its first place in the clause."""
    found = reading.at(file, offset)
    return found.symbol.place if found is not None else None


def references(readings: Iterable[Reading], symbol: Symbol, *, with_definition: bool = True) -> tuple[Place, ...]:
    """All places of a symbol in programs that may share files, in order."""
    places = {
        place_of(reading.source, each.span)
        for reading in readings
        for each in reading.occurrences
        if each.symbol == symbol
    }
    return tuple(sorted(places if with_definition else places - {symbol.place}))


def included_files(source: Source, folders: Iterable[str]) -> Iterator[tuple[Span, Path]]:
    """The files that a text includes, searched for next to it and then in folders, with the places of their names."""
    for found in _INCLUDE.finditer(source.text):
        paths = (Path(folder) / found[1] for folder in (str(Path(source.name).parent), *folders))
        path = next(filter(Path.is_file, paths), None)
        if path is not None:
            yield Span(*found.span(1)), path


def included_at(source: Source, offset: int, folders: Iterable[str]) -> Place | None:
    """The file that is named at a place."""
    for span, path in included_files(source, folders):
        if span.start <= offset <= span.end:
            return Place(str(path.resolve()), Span(0, 0))
    return None


_NAME: Final = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_BASES: Final = frozenset({"number", "unsigned", "float", "symbol"})


def rename(readings: Sequence[Reading], file: str, offset: int, name: str) -> tuple[Place, ...]:
    """The places where a new name has to be written. `readings`: all programs that contain the file. Raises
    ElastalogError if the place is not a name, if the new name is invalid or taken, or if a macro writes the name."""
    found = next((each for reading in readings if (each := reading.at(file, offset)) is not None), None)
    if found is None:
        raise _refused("there is nothing here that has a name of its own", "put the cursor on a name")
    symbol = found.symbol
    if not _NAME.fullmatch(name) or name == "_" or name in RESERVED or (symbol.kind is Kind.TYPE and name in _BASES):
        raise _refused(f"`{name[:60]}` cannot name a {symbol.kind.value}", "names are letters, digits, `_` and `?`")
    if name == symbol.name:
        return ()
    places: set[Place] = set()
    for reading in readings:
        same = [each for each in reading.occurrences if each.symbol == symbol]
        if same:
            _require_free(reading, symbol, same, name)
            places.update(_place(reading, each) for each in same)
    return tuple(sorted(places))


def _place(reading: Reading, occurrence: Occurrence) -> Place:
    place = verbatim_place(reading.source, occurrence.span)
    name = occurrence.symbol.name
    if place is None or reading.source.text[slice(*occurrence.span)] != name:
        raise error("E0907.place", occurrence.span, source=reading.source, name=name)
    return place


def _require_free(reading: Reading, symbol: Symbol, same: list[Occurrence], name: str) -> None:
    """Checks that the new name means nothing yet where the old one stands."""
    if symbol.kind is Kind.VARIABLE:
        clause = same[0].clause
        taken = any(
            each.symbol.kind is Kind.VARIABLE and each.symbol.name == name and each.clause is clause
            for each in reading.occurrences
        )
    else:
        kinds = (symbol.kind, Kind.PARAMETER) if symbol.kind in (Kind.TYPE, Kind.COMPONENT) else (symbol.kind,)
        taken = any(each.find(kind, name) is not None for each in _scopes(reading.top) for kind in kinds)
    if taken:
        raise _refused(f"`{name}` is the name of another {symbol.kind.value}", "choose a name that is free")


def _scopes(scope: Scope) -> list[Scope]:
    return [scope, *(each for inner in scope.nested.values() for each in _scopes(inner))]


def _refused(reason: str, advice: str) -> ElastalogError:
    return error("E0907", reason=reason, advice=advice)
