"""The pairs of equivalence classes, written out only when they are needed: a class of a million members has a million
million."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from elastalog.diagnostics.diagnostic import LimitReached, finding
from elastalog.late import dataclass
from elastalog.relations.limits import Words
from elastalog.settings import SETTINGS

MOST_PAIRS = 1 << 30
"""Pairs that are written out together."""

_SOME = 4
"""Classes that may be looked at one by one."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Each of `members` with the members at some places: from `start` to `stop`, except from `left_out` to `resumed`.
    Members of one class are next to each other."""

    members: Words
    start: np.ndarray
    left_out: np.ndarray
    resumed: np.ndarray
    stop: np.ndarray

    @staticmethod
    def between(these: Words, those: Words) -> _Layout:
        """The pairs of classes `these` that are not pairs of `those`."""
        members, names = these[:, 0], these[:, 1]
        others = _names_in(those, members)
        order = np.lexsort((others, names))
        members, names, others = members[order], names[order], others[order]
        start, stop = _runs(names[1:] != names[:-1], len(names))
        left_out, resumed = _runs((names[1:] != names[:-1]) | (others[1:] != others[:-1]), len(names))
        is_nowhere = others == _NOWHERE
        left_out[is_nowhere] = resumed[is_nowhere] = stop[is_nowhere]
        return _Layout(members, start, left_out, resumed, stop)

    @property
    def sizes(self) -> np.ndarray:
        sizes: np.ndarray = (self.left_out - self.start) + (self.stop - self.resumed)
        return sizes

    def written(self, first: int, last: int) -> Words:
        """The pairs of some members."""
        part = slice(first, last)
        before = self.left_out[part] - self.start[part]
        lengths = np.stack((before, self.stop[part] - self.resumed[part]), axis=1).reshape(-1)
        begins = np.stack((self.start[part], self.resumed[part]), axis=1).reshape(-1)
        ends = np.cumsum(lengths)
        size = int(ends[-1]) if len(ends) else 0
        places = np.arange(size) + np.repeat(begins - (ends - lengths), lengths)
        words = np.empty((size, 2), np.int32)
        words[:, 0] = np.repeat(self.members[part], self.sizes[part])
        words[:, 1] = self.members[places]
        return words


class Pairs:
    """The pairs of some classes that are not pairs of others. Classes are rows of a member and the name of its class.
    Their layout is computed when they are read: to count them takes less."""

    __slots__ = ("_classes", "_laid", "_size")

    def __init__(self, classes: Callable[[], tuple[Words, Words]], size: int | None = None) -> None:
        self._classes = classes
        self._size = size
        self._laid: _Layout | None = None

    @staticmethod
    def of(classes: Words) -> Pairs:
        """All pairs of classes."""
        return Pairs.between(classes, classes[:0])

    @staticmethod
    def between(these: Words, those: Words) -> Pairs:
        """The pairs of classes `these` that are not pairs of `those`."""
        return Pairs(lambda: (these, those))

    @staticmethod
    def changed(now: Words, came: Words, went: Words) -> tuple[Pairs, Pairs]:
        """The pairs that came and those that went, given the changed classes as they are now, and the rows of members
        that came and went: a member with other rows than before has moved."""
        before_and_now: list[Words] = []

        def before() -> Words:
            if not before_and_now:
                before_and_now.append(np.concatenate((now[~np.isin(now[:, 0], came[:, 0])], went)))
            return before_and_now[0]

        gained, lost = _numbers_of_changes(now, came, went)
        return Pairs(lambda: (now, before()), gained), Pairs(lambda: (before(), now), lost)

    @property
    def _layout(self) -> _Layout:
        if self._laid is None:
            self._laid = _Layout.between(*self._classes())
        return self._laid

    def __len__(self) -> int:
        if self._size is None:
            self._size = int(self._layout.sizes.sum())
        return self._size

    def blocks(self) -> Iterator[Words]:
        """The pairs, a part at a time."""
        layout = self._layout
        ends = np.cumsum(layout.sizes)
        first = 0
        while first < len(layout.members):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + SETTINGS.pairs_at_once, side="right")))
            yield layout.written(first, last)
            first = last

    def words(self) -> Words:
        """The pairs all together. Raises LimitReached if they are more than can be."""
        size = len(self)
        if size > MOST_PAIRS:
            raise LimitReached([finding("E0660", size=size)])
        return self._layout.written(0, len(self._layout.members))

    def has(self, row: tuple[int, ...]) -> bool:
        """Whether a pair is among them."""
        layout = self._layout
        places = np.flatnonzero(layout.members == row[0])
        others = np.flatnonzero(layout.members == row[1])
        return any(
            layout.start[i] <= j < layout.left_out[i] or layout.resumed[i] <= j < layout.stop[i]
            for i in places.tolist()
            for j in others.tolist()
        )


def _numbers_of_changes(now: Words, came: Words, went: Words) -> tuple[int, int]:
    """The numbers of pairs that came and went. Members that have not moved are together as before, and so are those
    that moved together from one class to another."""
    names = np.sort(np.concatenate((came[:, 1], went[:, 1])))
    names = names[np.concatenate(([True], names[1:] != names[:-1]))]  # `numpy.unique` takes several times as long
    of_came, of_went = np.searchsorted(names, came[:, 1]), np.searchsorted(names, went[:, 1])
    if len(names) <= _SOME:  # to compare is faster than to search
        sizes = np.array([np.count_nonzero(now[:, 1] == name) for name in names], np.int64)
    else:
        sizes = np.bincount(np.searchsorted(names, now[:, 1]), minlength=len(names))
    unmoved = sizes - np.bincount(of_came, minlength=len(names))
    before = unmoved + np.bincount(of_went, minlength=len(names))
    old_name = _names_in(np.stack((went[:, 0], of_went), axis=1).astype(np.int64), came[:, 0])
    has_moved = old_name != _NOWHERE
    routes = np.sort(of_came[has_moved] * len(names) + old_name[has_moved])
    start, stop = _runs(routes[1:] != routes[:-1], len(routes))
    kept = _squares(unmoved) + int((stop - start).sum())  # each with all that moved as it did
    return _squares(sizes) - kept, _squares(before) - kept


def _squares(sizes: np.ndarray) -> int:
    return int((sizes.astype(np.int64) ** 2).sum())


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
