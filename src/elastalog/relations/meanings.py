"""The part of a dictionary that some facts need, where the dictionary lies elsewhere, mostly in files: a task that
reads a share of the facts needs no room for all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.relations.limits import WIDE, Integers, Words
from elastalog.relations.words import Dictionary


class Entries(NamedTuple):
    """The entries of a dictionary with ids from `first` to `last`, that one excluded; `read` gives texts as an Arrow
    array, patterns as numbers."""

    first: int
    last: int
    read: Callable[[], Any]


def own_words(
    bases: Sequence[Base], words: Words, texts: Iterable[Entries], patterns: Iterable[Entries]
) -> tuple[Dictionary, Words]:
    """A dictionary of what some facts need, and the facts in its words."""
    made = Dictionary()
    if Base.RECORD in bases:  # chains of entries, which only following them would tell
        for part in texts:
            made.symbols.extend(part.read())
        for part in patterns:
            made.wide.extend(part.read())
        return made, words
    own = words.copy()
    is_text = np.broadcast_to(np.array([base is Base.SYMBOL for base in bases], np.bool_), words.shape)
    is_wide = ~is_text & (words >= WIDE)
    own[is_text] = _numbered(words[is_text], texts, made.symbols.extend)
    own[is_wide] = _numbered(words[is_wide] - WIDE, patterns, made.wide.extend) + WIDE
    return made, own


def _numbered(ids: Words, parts: Iterable[Entries], keep: Callable[[Any], None]) -> Integers:
    """Ids in the order in which the entries that they are of are kept."""
    is_needed = np.zeros(int(ids.max(initial=-1)) + 1, np.bool_)
    is_needed[ids] = True
    needed = np.flatnonzero(is_needed)
    kept = 0
    for first, last, read in parts:
        low, high = np.searchsorted(needed, (first, last))
        if low < high:
            keep(read().take(needed[low:high] - first))
            kept += high - low
    if kept < len(needed):
        raise InternalError("meanings", "a word is not in the dictionary")
    places: Integers = np.cumsum(is_needed) - 1
    return places[ids]
