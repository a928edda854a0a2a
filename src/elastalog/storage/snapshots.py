"""Writing a snapshot: relations that have changed, and what the dictionary has gained.

The dictionary only grows, so its files are parts of it, merged when the last have become as large as the one before
them: their number stays logarithmic, and every entry is rewritten a logarithmic number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

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
        path = relation_file(number, name, epoch)
        written[name] = write_checked(files, root, path, facts_bytes(fetch(name)), "relation")
    return written


def relation_file(number: int, name: str, epoch: int) -> str:
    """Where in a store the facts of a relation at an epoch are written; `number`: its place in the layout."""
    readable = re.sub(r"[^A-Za-z0-9_]", "", name)[:60]
    return f"{FACTS}/{number}-{readable}-{epoch}.parquet"


def write_dictionary(
    files: FileSystem,
    root: Path,
    dictionary: Dictionary,
    symbols: tuple[Segment, ...],
    patterns: tuple[Segment, ...],
    symbol_count: int,
    pattern_count: int,
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Writes what the dictionary holds beyond the parts already stored, up to some numbers; returns all its parts."""
    texts, wide = dictionary.symbols, dictionary.wide

    def patterns_between(first: int, last: int) -> bytes:
        return patterns_bytes(wide.patterns_from(first)[: last - first])

    return (
        _grown(files, root, "symbols", symbols, symbol_count, lambda a, b: texts_bytes(texts.array(a, b))),
        _grown(files, root, "patterns", patterns, pattern_count, patterns_between),
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
