"""The pairs of equivalence classes, written out only when somebody wants them: a class of a million members has a
million million."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.late import dataclass
from elastalog.relations.limits import Words

BLOCK = 1 << 20
"""Pairs that are written out at a time, or those of one member if they are more."""

MOST_PAIRS = 1 << 30
"""Pairs that are written out together."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Each of `members` with the members at some places: from `start` up to `stop`, but not from `left_out` up to
    `resumed`. Members of one class stand together."""

    members: Words
    start: np.ndarray
    left_out: np.ndarray
    resumed: np.ndarray
    stop: np.ndarray

    @staticmethod
    def of(classes: Words) -> Pairs:
        """All pairs of classes, given as rows of a member and what names its class."""
        return Pairs.between(classes, classes[:0])

    @staticmethod
    def between(these: Words, those: Words) -> Pairs:
        """The pairs of classes that are none of others."""
        members, names = these[:, 0], these[:, 1]
        others = _names_in(those, members)
        order = np.lexsort((others, names))
        members, names, others = members[order], names[order], others[order]
        start, stop = _runs(names[1:] != names[:-1], len(names))
        left_out, resumed = _runs((names[1:] != names[:-1]) | (others[1:] != others[:-1]), len(names))
        is_nowhere = others == _NOWHERE
        left_out[is_nowhere] = resumed[is_nowhere] = stop[is_nowhere]
        return Pairs(members, start, left_out, resumed, stop)

    def __len__(self) -> int:
        return int(self._sizes.sum())

    @property
    def _sizes(self) -> np.ndarray:
        sizes: np.ndarray = (self.left_out - self.start) + (self.stop - self.resumed)
        return sizes

    def blocks(self) -> Iterator[Words]:
        """The pairs, a part at a time."""
        ends = np.cumsum(self._sizes)
        first = 0
        while first < len(self.members):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + BLOCK, side="right")))
            yield self._written(first, last)
            first = last

    def words(self) -> Words:
        """The pairs all together. Raises LimitReached if they are more than can be."""
        size = len(self)
        if size > MOST_PAIRS:
            advice = "read it in parts: iterate over it, or ask for the members of one class, as `same(1, X)`"
            raise LimitReached([Diagnostic("E0660", f"{size:,} pairs are too many to write out together", help=advice)])
        return self._written(0, len(self.members))

    def has(self, row: tuple[int, ...]) -> bool:
        """Whether a pair is among them."""
        places = np.flatnonzero(self.members == row[0])
        others = np.flatnonzero(self.members == row[1])
        return any(
            self.start[i] <= j < self.left_out[i] or self.resumed[i] <= j < self.stop[i]
            for i in places.tolist()
            for j in others.tolist()
        )

    def _written(self, first: int, last: int) -> Words:
        """The pairs of some members."""
        part = slice(first, last)
        before = self.left_out[part] - self.start[part]
        lengths = np.stack((before, self.stop[part] - self.resumed[part]), axis=1).reshape(-1)
        begins = np.stack((self.start[part], self.resumed[part]), axis=1).reshape(-1)
        ends = np.cumsum(lengths)
        size = int(ends[-1]) if len(ends) else 0
        places = np.arange(size) + np.repeat(begins - (ends - lengths), lengths)
        words = np.empty((size, 2), np.int32)
        words[:, 0] = np.repeat(self.members[part], self._sizes[part])
        words[:, 1] = self.members[places]
        return words


Rows: TypeAlias = Words | Pairs
"""Facts, written out or not yet."""


def written_out(rows: Rows) -> Words:
    """Facts as words."""
    return rows.words() if isinstance(rows, Pairs) else rows


_NOWHERE = -(1 << 40)


def _names_in(classes: Words, members: Words) -> np.ndarray:
    """What names the class of each member; no word where it is in none."""
    found = np.full(len(members), _NOWHERE, np.int64)
    if not len(classes) or not len(members):
        return found
    least, most = int(classes[:, 0].min()), int(classes[:, 0].max())
    if most - least < 8 * len(classes):
        # Where words lie close together a table is much faster than a search.
        names = np.full(most - least + 1, _NOWHERE, np.int64)
        names[classes[:, 0] - least] = classes[:, 1]
        is_near = (members >= least) & (members <= most)
        found[is_near] = names[members[is_near] - least]
        return found
    known = classes[np.argsort(classes[:, 0])]
    places = np.minimum(np.searchsorted(known[:, 0], members), len(known) - 1)
    is_found = known[places, 0] == members
    found[is_found] = known[places[is_found], 1]
    return found


def _runs(is_border: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """For each place of a row, where its run starts and stops, given between which places runs meet."""
    if not size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = np.concatenate(([0], np.flatnonzero(is_border) + 1))
    stops = np.concatenate((starts[1:], [size]))
    lengths = stops - starts
    return np.repeat(starts, lengths), np.repeat(stops, lengths)
