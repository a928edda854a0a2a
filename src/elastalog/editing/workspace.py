"""The files that an editor has open, and the programs that they belong to: a program is a file of the folder that
includes others and is not included itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from elastalog.analysis.graphs import reached
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.reading import Reading, read
from elastalog.editing.references import included_files
from elastalog.editing.scopes import Place, file_of
from elastalog.program import read_program_text
from elastalog.program.preprocessing import Preprocessing


class Workspace:
    """Keeps one reading per program until one of its files changes. Files that are not open are read from disk."""

    def __init__(self, folders: Iterable[str] = (), options: Preprocessing | None = None) -> None:
        self.folders = tuple(map(os.path.abspath, folders))
        self.options = options or Preprocessing()
        self._texts: dict[str, str] = {}
        self._readings: dict[str, Reading] = {}
        self._includes: dict[str, frozenset[str]] | None = None

    # --- what changes ----------------------------------------------------------------------------------------------

    def write(self, file: str, text: str) -> None:
        """Notes that a file is open, with this text."""
        self._texts[file] = text
        self._forget(file)

    def close(self, file: str) -> None:
        """Notes that a file is no longer open, so that its text on disk counts."""
        self._texts.pop(file, None)
        self._forget(file)

    def refresh(self) -> None:
        """Notes that files on disk have changed."""
        self._readings.clear()
        self._includes = None

    def _forget(self, file: str) -> None:
        # A program whose included file was missing may have it now.
        gone = [root for root, reading in self._readings.items() if file in reading.files or reading.program is None]
        for root in gone:
            del self._readings[root]
        if self._includes is not None:
            self._includes |= includes_in((), (file,), self._text_or_none, self.options.include)

    # --- what is there ---------------------------------------------------------------------------------------------

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are open."""
        return tuple(self._texts)

    def source(self, file: str) -> Source:
        """The present text of a file; empty where it cannot be read."""
        return Source(file, self._text_or_none(file) or "")

    def text(self, file: str) -> str:
        """The present text of a file. Raises ElastalogError where it cannot be read."""
        known = self._texts.get(os.path.abspath(file))
        return known if known is not None else read_program_text(file)

    def reading(self, file: str) -> Reading:
        """The first program that contains a file and could be read far enough to know that; otherwise the file by
        itself."""
        found = [reading for reading in self.readings(file) if file in reading.files]
        return found[0] if found else self._read(file)

    def readings(self, file: str) -> tuple[Reading, ...]:
        """All programs that contain a file."""
        if self._includes is None:
            self._includes = includes_in(self.folders, self._texts, self._text_or_none, self.options.include)
        return tuple(self._read(root) for root in roots_of(file, self._includes))

    def _read(self, root: str) -> Reading:
        known = self._readings.get(root)
        if known is None:
            known = self._readings[root] = read(root, self.text, self.options)
        return known

    def _text_or_none(self, file: str) -> str | None:
        try:
            return self.text(file)
        except ElastalogError:
            return None

    # --- findings --------------------------------------------------------------------------------------------------

    def findings(self, file: str) -> dict[str, list[tuple[Reading, Diagnostic]]]:
        """The findings about the programs that contain a file, by the files that they are about. Files without findings
        have empty lists."""
        found: dict[str, list[tuple[Reading, Diagnostic]]] = {}
        said: set[tuple[str, str, Place]] = set()
        for reading in self.readings(file):
            for each in reading.files:
                found.setdefault(each, [])
            for diagnostic in reading.diagnostics:
                place = place_of_finding(reading, diagnostic)
                if (diagnostic.code, diagnostic.message, place) not in said:
                    said.add((diagnostic.code, diagnostic.message, place))
                    found.setdefault(place.file, []).append((reading, diagnostic))
        found.setdefault(file, [])
        return found


def place_of_finding(reading: Reading, found: Diagnostic) -> Place:
    """The file and span that a diagnostic points at; the beginning of the program if it points at nothing."""
    label = next((label for label in found.labels if label.primary), None)
    if found.source is None or label is None:
        return Place(reading.file, Span(0, 0))
    origin = found.source.origin(label.span)
    return Place(file_of(origin.source), origin.span)


MOST_FILES: Final = 5_000
"""How many program files of a folder are looked at."""


def roots_of(file: str, includes: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The programs that a file belongs to, in order; the file itself if nothing includes it. Files that include each
    other in a circle are all roots."""
    including: dict[str, set[str]] = {}
    for each, included in includes.items():
        for name in included:
            including.setdefault(name, set()).add(each)
    above = reached([file], lambda each: including.get(each, ()))
    return tuple(sorted(each for each in above if not including.get(each))) or (file,)


def includes_in(
    folders: Iterable[str], open_files: Iterable[str], text_of: Callable[[str], str | None], search: Iterable[str]
) -> dict[str, frozenset[str]]:
    """For every program file in some folders, and every open one, the files that it includes."""
    found: dict[str, frozenset[str]] = {}
    for file in (*open_files, *islice(_program_files(folders), MOST_FILES)):
        if file not in found:
            text = text_of(file)
            included = included_files(Source(file, text), search) if text is not None else ()
            found[file] = frozenset(os.path.abspath(path) for _, path in included)
    return found


def _program_files(folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for path, inner, files in os.walk(folder):
            inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "node_modules")
            yield from (os.path.abspath(os.path.join(path, name)) for name in sorted(files) if name.endswith(".dl"))
