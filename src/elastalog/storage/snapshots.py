"""Writing a snapshot: relations that have changed, and what the dictionary has gained.

The dictionary only grows, so its files are parts of it, merged when the last have become as large as the one before
them: their number stays logarithmic, and every entry is rewritten a logarithmic number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage.checked_files import FileEntry, write_checked
from elastalog.storage.columns import facts_bytes, patterns_bytes, texts_bytes
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.manifest import Segment

FACTS = "facts"
DICTIONARY = "dictionary"


def write_relations(
    files: FileSystem,
    root: Path,
    names: Iterable[str],
    fetch: Callable[[str], FactWords],
    epoch: int,
    unchanged: Mapping[str, FileEntry],
) -> dict[str, FileEntry]:
    """Writes the relations that are not in `unchanged`, whose files are used again."""
    written = {}
    for number, name in enumerate(names):
        if name in unchanged:
            written[name] = unchanged[name]
            continue
        readable = re.sub(r"[^A-Za-z0-9_]", "", name)[:60]
        path = f"{FACTS}/{number}-{readable}-{epoch}.parquet"
        written[name] = write_checked(files, root, path, facts_bytes(fetch(name)), "relation")
    return written


def write_dictionary(
    files: FileSystem, root: Path, dictionary: Dictionary, symbols: tuple[Segment, ...], patterns: tuple[Segment, ...]
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Writes what the dictionary holds beyond the parts already stored; returns all its parts."""
    texts, wide = dictionary.symbols, dictionary.wide
    known = len(texts), len(wide)
    return (
        _grown(files, root, "symbols", symbols, known[0], lambda a, b: texts_bytes(texts.strings_from(a)[: b - a])),
        _grown(
            files, root, "patterns", patterns, known[1], lambda a, b: patterns_bytes(wide.patterns_from(a)[: b - a])
        ),
    )


def _grown(
    files: FileSystem,
    root: Path,
    kind: str,
    segments: tuple[Segment, ...],
    total: int,
    content: Callable[[int, int], bytes],
) -> tuple[Segment, ...]:
    kept = list(segments)
    first = kept[-1].last if kept else 0
    if first == total:
        return segments
    while kept and kept[-1].last - kept[-1].first <= total - first:
        first = kept.pop().first
    name = f"{DICTIONARY}/{kind}-{first}-{total}.parquet"
    return (*kept, Segment(first, total, write_checked(files, root, name, content(first, total), "dictionary")))


def file_entry(root: Path, name: str) -> FileEntry:
    """The entry of a file as it is."""
    data: Any = (root / name).read_bytes()
    return FileEntry(name, len(data), sha256(data).hexdigest())
