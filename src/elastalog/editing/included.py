"""Which programs hold a file: those of a folder that include it and are included by none themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from elastalog.diagnostics.source import Source
from elastalog.editing.references import included_files

MOST_FILES: Final = 5_000
"""How many program files of a folder are looked at."""


def roots_of(file: str, includes: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The programs that a file is part of, in order; itself where nothing includes it. Files that include each other in
    a circle are roots all."""
    including: dict[str, set[str]] = {}
    for each, included in includes.items():
        for name in included:
            including.setdefault(name, set()).add(each)
    seen, waiting = {file}, [file]
    while waiting:
        for each in including.get(waiting.pop(), ()):
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return tuple(sorted(each for each in seen if not including.get(each))) or (file,)


def includes_in(
    folders: Iterable[str], open_files: Iterable[str], text_of: Callable[[str], str | None], search: Iterable[str]
) -> dict[str, frozenset[str]]:
    """For every program file of some folders, and every one that is open, the files that it includes."""
    found: dict[str, frozenset[str]] = {}
    for file in (*open_files, *_program_files(folders)):
        if file not in found:
            text = text_of(file)
            found[file] = frozenset(_resolved(Source(file, text), search)) if text is not None else frozenset()
    return found


def _resolved(source: Source, search: Iterable[str]) -> Iterable[str]:
    for _, name in included_files(source):
        for folder in (str(Path(source.name).parent), *search):
            path = os.path.abspath(os.path.join(folder, name))
            if os.path.isfile(path):
                yield path
                break


def _program_files(folders: Iterable[str]) -> Iterable[str]:
    left = MOST_FILES
    for folder in folders:
        for path, inner, files in os.walk(folder):
            inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "node_modules")
            for name in sorted(files):
                if name.endswith(".dl"):
                    yield os.path.abspath(os.path.join(path, name))
                    left -= 1
                    if not left:
                        return
