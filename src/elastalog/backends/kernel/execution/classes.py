"""Equivalences that are kept as classes: a row a member, with the member that represents its class.

Bootstrap makes all classes of the pairs by union and find. An update forms those classes anew that a pair which came or
went touches; where none went, classes only merge, and no other pair is looked at. The class that most members come from
keeps its representative, so that strata above see few changes. Every row has level 1 and count 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.compile.signatures import COLUMNS, INT, MATRIX, WORDS, inlined, operator, types
from elastalog.backends.kernel.execution.aggregates import present_now, rows_of_keys
from elastalog.backends.kernel.store import bookkeeping, transaction
from elastalog.backends.kernel.store.annotations import IS, MARKS, ROW
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import note_levels
from elastalog.planning.logical import EquivalenceRule

_CLOSE = 8
"""Words lie close together if there are fewer than so many values between them for each."""

_NOBODY = 1 << 40
"""Represents those that are in no class."""

MEMBER, REPRESENTATIVE = (0,), (1,)
"""The columns by which classes are looked up."""


@inlined
def _root(parent, place):  # type: ignore[no-untyped-def]
    """The root above a place; the way there gets shorter."""
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


@operator(types.void, MATRIX, WORDS)
def unite(pairs, parent):  # type: ignore[no-untyped-def]
    """Joins the trees of places that are paired, then has every place know its root, the first of its tree."""
    for i in range(pairs.shape[0]):
        left = _root(parent, pairs[i, 0])
        right = _root(parent, pairs[i, 1])
        if left < right:
            parent[right] = left
        elif right < left:
            parent[left] = right
    for place in range(parent.shape[0]):
        parent[place] = parent[parent[place]]


@operator(types.void, COLUMNS, WORDS, INT, INT, WORDS, WORDS)
def search(starts, neighbours, first, last, before, queue):  # type: ignore[no-untyped-def]
    """A shortest way from one place to another, whose neighbours stand from `starts[place]` up to the next one's:
    `before` each place on it the one before, -1 where none is known, and for the first itself."""
    before[first] = first
    queue[0] = first
    head = 0
    tail = 1
    while head < tail and before[last] < 0:
        place = queue[head]
        head += 1
        for i in range(starts[place], starts[place + 1]):
            other = neighbours[i]
            if before[other] < 0:
                before[other] = place
                queue[tail] = other
                tail += 1


class Members:
    """Some words, each once, in ascending order, and the place of each among them. Where they lie close together a
    table tells it; to sort and to search takes several times as long."""

    __slots__ = ("_least", "_places", "words")

    def __init__(self, *given: Vector) -> None:
        words = np.concatenate([part.reshape(-1) for part in given])
        self._least = int(words.min()) if len(words) else 0
        extent = int(words.max()) - self._least + 1 if len(words) else 0
        self._places: Vector | None = None
        if extent <= _CLOSE * len(words):
            is_there = np.zeros(extent, np.bool_)
            is_there[words - self._least] = True
            self.words = (np.flatnonzero(is_there) + self._least).astype(np.int32)
            self._places = np.cumsum(is_there, dtype=np.int32) - np.int32(1)
        else:
            words.sort()
            is_first = np.ones(len(words), np.bool_)
            np.not_equal(words[1:], words[:-1], out=is_first[1:])
            self.words = words[is_first]

    def __len__(self) -> int:
        return len(self.words)

    def places(self, words: Matrix) -> Matrix:
        """The places of words that are among them."""
        if self._places is not None:
            found: Matrix = self._places[words - self._least]
            return found
        return np.searchsorted(self.words, words).astype(np.int32)

    def united(self, pairs: Matrix) -> Vector:
        """For each of them the place of the first of its class, which pairs of them generate."""
        parent = np.arange(len(self.words), dtype=np.int32)
        unite(self.places(pairs), parent)
        return parent

    def way(self, pairs: Matrix, left: int, right: int) -> Vector:
        """The members on a shortest way from one to another, both included, by pairs that may be taken either way."""
        ends = self.places(np.concatenate((pairs, pairs[:, ::-1])))
        order = np.argsort(ends[:, 0], kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(ends[:, 0], minlength=len(self)))))
        first, last = self.places(np.array([left, right], np.int32)).tolist()
        before, queue = np.full(len(self), -1, np.int32), np.empty(len(self), np.int32)
        search(starts.astype(np.int64), np.ascontiguousarray(ends[order, 1]), first, last, before, queue)
        way = [last]
        while way[-1] != first:
            way.append(int(before[way[-1]]))
        return self.words[way[::-1]]


def evaluate(rule: EquivalenceRule, relations: Mapping[str, KernelRelation]) -> None:
    """Fills the relation of the classes, which is empty."""
    pairs, target = relations[rule.pairs], relations[rule.relation]
    words = pairs.rows[present_now(pairs)]
    members = Members(words)
    target.load(np.stack((members.words, members.words[members.united(words)]), axis=1))
    if target.is_annotated:
        target.level[: target.used] = 1
        note_levels(target)


def refold(rule: EquivalenceRule, changed: Vector, relations: Mapping[str, KernelRelation]) -> Vector:
    """Forms the classes anew that pairs which came or went touch. Returns the entries of their relation that
    changed."""
    pairs, target = relations[rule.pairs], relations[rule.relation]
    entries = pairs.touched[changed]
    has_come = entries[:, MARKS] & IS != 0
    words = pairs.rows[entries[:, ROW]]
    rows = rows_of_classes(target, words)
    old = target.rows[rows]
    if has_come.all():
        # That members are in one class already is what their pairs said.
        links = np.concatenate((old, words))
    else:
        known = Members(old[:, 0], words[has_come]).words
        links = pairs.rows[rows_of_keys(pairs, MEMBER, known.reshape(-1, 1))]
    members = Members(links)
    every = Members(members.words, old)
    before, now = (np.full(len(every), _NOBODY, np.int64) for _ in range(2))
    before[every.places(old[:, 0])] = old[:, 1]
    now[every.places(members.words)] = _representatives(members, links, old, every)
    is_other = before != now
    came = np.flatnonzero(is_other & (now != _NOBODY))
    gone = rows[is_other[every.places(old[:, 0])]]
    return _replace(target, gone, np.stack((every.words[came], now[came].astype(np.int32)), axis=1))


def changed_classes(classes: KernelRelation, came: Matrix, went: Matrix) -> tuple[Matrix, Matrix]:
    """The classes that rows which came and went belong to, as they were before and as they are now, in the state under
    way."""
    named = Members(came[:, 1], went[:, 1]).words
    now = classes.rows[rows_of_keys(classes, REPRESENTATIVE, named.reshape(-1, 1))]
    # A member has one row.
    return np.concatenate((now[~np.isin(now[:, 0], came[:, 0])], went)), now


def rows_of_classes(classes: KernelRelation, words: Vector) -> Vector:
    """The rows of the classes that some words are members of."""
    named = classes.rows[rows_of_keys(classes, MEMBER, Members(words).words.reshape(-1, 1))][:, 1]
    return rows_of_keys(classes, REPRESENTATIVE, Members(named).words.reshape(-1, 1))


def _representatives(members: Members, links: Matrix, old: Matrix, every: Members) -> Vector:
    """Who represents the class of each member, which links generate: of those that represented one and are in it, the
    one that did so for most of its members; otherwise its least member. `every`: also those that are members no
    more."""
    roots = members.united(links)
    # Members that are left are numbered as before; others come after all roots.
    root_of = np.full(len(every), len(members), np.int32)
    root_of[every.places(members.words)] = roots
    placed = every.places(old)
    of_old = root_of[placed]
    is_kept = (of_old[:, 0] == of_old[:, 1]) & (of_old[:, 0] < len(members))
    sizes = np.bincount(placed[is_kept, 1], minlength=len(every))
    named = np.flatnonzero(sizes)
    order = named[np.lexsort((-named, sizes[named]))]  # the last that is written stays: of most, the least
    of_root = members.words.copy()
    of_root[root_of[order]] = every.words[order]
    return of_root[roots]


def _replace(target: KernelRelation, gone_rows: Vector, new: Matrix) -> Vector:
    """Writes other rows in the place of some. Returns the entries that changed."""
    gone = transaction.touch(target, gone_rows)
    transaction.set_annotation(target, gone, 0, is_present=False)
    came = transaction.touch(target, transaction.add_rows(target, new) if len(new) else NO_WORDS)
    transaction.set_annotation(target, came, 1, is_present=True)
    entries = np.empty(target.touched_used, np.int32)
    return entries[: bookkeeping.finish(target.touched, target.touched_used, False, entries)]
