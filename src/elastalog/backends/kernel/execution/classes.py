"""Equivalences that are kept as classes: a row a member, with the member that represents its class.

Bootstrap makes all classes of the pairs by union and find. In an update pairs that went divide classes (see
`separation`), then pairs that came join them; the largest part keeps its representative, unless that is in another, so
that strata above see few changes. Every row has level 1 and count 1.

Outside an update a reader sees all pairs (`Equivalence`). A pair that is stored has the level that is stored. Any other
is derived by a chain of stored pairs: its level is 1 + the least, over all chains, of the highest level in the chain,
and its count is 1. The same holds for every pair that is not explicit if the equivalence is merged: which pairs its
recursion stores is a matter of order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from elastalog.backends.kernel.compile.signatures import COLUMNS, INT, MATRIX, WORDS, inlined, operator, types
from elastalog.backends.kernel.execution.aggregates import rows_by_key, rows_of_keys
from elastalog.backends.kernel.execution.separation import Parts, parts_of, sizes_of
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT, IS, MARKS, REFERENCE, ROW, UNTOUCHED, WAS
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.rows import are_in
from elastalog.late import dataclass
from elastalog.planning.logical import EquivalenceRule
from elastalog.relations.facts import FactWords
from elastalog.relations.pairs import Pairs
from elastalog.settings import SETTINGS

_CLOSE = 8
"""Words lie close together if their range has at most this many values for each of them."""

_FEW = 64
"""Words up to which Python sorts them sooner."""

_NOBODY = 1 << 40
"""Represents those that are in no class."""

_SOME = 4
"""Classes that may be looked for one by one."""


MEMBER, REPRESENTATIVE = (0,), (1,)
"""The columns by which classes are looked up."""


@inlined
def _root(parent, place):
    """The root above a place; the way there gets shorter."""
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


@operator(types.void, MATRIX, WORDS)
def unite(pairs, parent):
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


@operator(types.void, MATRIX, WORDS, WORDS, WORDS, WORDS)
def unite_by_level(pairs, levels, parent, sizes, joined):
    """Joins the trees of places that are paired, the pairs in ascending order of level, the smaller tree below the
    larger: so no way to a root is long. `joined` tells of a place that is no root at which level it was put there."""
    for i in range(pairs.shape[0]):
        upper = pairs[i, 0]
        while parent[upper] != upper:
            upper = parent[upper]
        lower = pairs[i, 1]
        while parent[lower] != lower:
            lower = parent[lower]
        if upper != lower:
            if sizes[upper] < sizes[lower]:
                upper, lower = lower, upper
            parent[lower] = upper
            sizes[upper] += sizes[lower]
            joined[lower] = levels[i]


@operator(types.void, MATRIX, WORDS, WORDS, WORDS)
def meet(places, parent, joined, found):
    """The level at which two places came into one tree, for each pair of them in trees of `unite_by_level`; levels
    never fall on the way to a root, so that the place that was put below another one earlier takes the next step."""
    for i in range(places.shape[0]):
        one = places[i, 0]
        other = places[i, 1]
        while one != other:
            if parent[one] != one and (parent[other] == other or joined[one] <= joined[other]):
                found[i] = joined[one]
                one = parent[one]
            elif parent[other] != other:
                found[i] = joined[other]
                other = parent[other]
            else:
                break  # not in one tree


@operator(types.void, COLUMNS, WORDS, INT, INT, WORDS, WORDS)
def search(starts, neighbours, first, last, before, queue):
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
        self._places: Vector | None = None
        if len(words) <= _FEW:
            self._least, self.words = 0, np.array(sorted(set(words.tolist())), np.int32)
            return
        self._least = int(words.min()) if len(words) else 0
        extent = int(words.max()) - self._least + 1 if len(words) else 0
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

    def levels(self, pairs: Matrix, levels: Vector, asked: Matrix) -> Vector:
        """The level at which each of some pairs of them came to be connected by others, which have `levels`."""
        order = np.argsort(levels, kind="stable")
        count = len(self.words)
        parent, sizes = np.arange(count, dtype=np.int32), np.ones(count, np.int32)
        joined, found = np.zeros(count, np.int32), np.zeros(len(asked), np.int32)
        ends, ascending = self.places(pairs[order]), np.ascontiguousarray(levels[order], np.int32)
        unite_by_level(ends, ascending, parent, sizes, joined)
        meet(self.places(asked), parent, joined, found)
        is_one = asked[:, 0] == asked[:, 1]
        if is_one.any():
            first = np.full(count, np.iinfo(np.int32).max, np.int32)
            for column in (0, 1):
                np.minimum.at(first, ends[:, column], ascending)
            found[is_one] = first[self.places(asked[is_one, 0])]
        return found

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
    words = pairs.rows[pairs.there]
    members = Members(words)
    target.load(np.stack((members.words, members.words[members.united(words)]), axis=1), 1)


def refold(rule: EquivalenceRule, changed: Vector, relations: Mapping[str, KernelRelation]) -> Vector:
    """Divides the classes that pairs which went held together, then joins those that pairs which came do. Returns the
    entries of their relation that changed."""
    pairs, target = relations[rule.pairs], relations[rule.relation]
    entries = pairs.touched[changed]
    has_come = entries[:, MARKS] & IS != 0
    words = pairs.rows[entries[:, ROW]]
    if not has_come.all():
        _divide(pairs, target, words[~has_come])
    if has_come.any():
        _join(target, words[has_come])
    return transaction.changed_entries(target, is_level_change=False)


def _divide(pairs: KernelRelation, classes: KernelRelation, gone: Matrix) -> None:
    """Divides the classes of pairs that went. A part that has its class's representative keeps it; the others, and the
    rest of the class where it is left without, are represented by their least member."""
    _, rows = rows_by_key(classes, MEMBER, Members(gone).words.reshape(-1, 1))
    seeds, named = classes.rows[rows].T.copy()
    alone = seeds[~are_joined(pairs, seeds)]
    names, class_of = np.unique(named, return_inverse=True)
    parts = parts_of(pairs, classes, rows, class_of.astype(np.int32), pairs.present // SETTINGS.separation_share)
    if parts is None:
        renamed = _united_anew(pairs, classes, names, alone)
    else:
        renamed = _renamed_parts(classes, parts, names[class_of], alone)
    _rename(classes, renamed, alone)


def _renamed_parts(classes: KernelRelation, parts: Parts, name_of: Vector, alone: Vector) -> Matrix:
    """The members that get another representative, with that, given the parts of classes that searches have found, and
    the representative of the class of each. `alone`: those that are members no more."""
    is_whole = parts.is_whole[parts.part]
    words, part = parts.words[is_whole], parts.part[is_whole]
    is_left = ~np.isin(words, alone)
    words, part = words[is_left], part[is_left]
    least = np.full(len(name_of), _NOBODY, np.int64)
    np.minimum.at(least, part, words)
    keeps = np.zeros(len(name_of), np.bool_)
    keeps[part[words == name_of[part]]] = True
    is_renamed = ~keeps[part]
    renamed = np.stack((words[is_renamed], least[part[is_renamed]].astype(np.int32)), axis=1)
    # A class that has lost its representative, to a part or for good, and has other members left.
    lost = np.unique(np.concatenate((name_of[keeps], name_of[np.isin(name_of, alone)])))
    rest = classes.rows[rows_of_keys(classes, REPRESENTATIVE, lost.reshape(-1, 1))]
    rest = rest[~np.isin(rest[:, 0], np.concatenate((words, alone)))]
    first = np.full(len(lost), _NOBODY, np.int64)
    of_rest = np.searchsorted(lost, rest[:, 1])
    np.minimum.at(first, of_rest, rest[:, 0])
    return np.concatenate((renamed, np.stack((rest[:, 0], first[of_rest].astype(np.int32)), axis=1)))


def _united_anew(pairs: KernelRelation, classes: KernelRelation, names: Vector, alone: Vector) -> Matrix:
    """The members of classes of some names that get another representative, with that, found by uniting all pairs that
    were there and still are: where large parts come apart, this takes a fraction of the time of searching them."""
    words = _chosen(pairs, _are_marked(pairs, slice(0, pairs.used), UNTOUCHED))
    member, named = _classes_named(classes, names).T
    least_of = _least_members(words, member)
    least = least_of(member)
    is_renamed = (least != least_of(named)) & ~np.isin(member, alone)
    return np.stack((member[is_renamed], least[is_renamed]), axis=1)


def _least_members(pairs: Matrix, others: Vector) -> Callable[[Vector], Vector]:
    """What tells of each word of some pairs, or of others, the least member of its class, which the pairs generate."""
    given = [part for part in (pairs, others) if part.size]
    first = min([int(part.min()) for part in given])
    extent = max([int(part.max()) for part in given]) - first + 1
    if extent > _CLOSE * len(pairs):
        members = Members(pairs, others)
        of_member = members.words[members.united(pairs)]
        return lambda words: of_member[members.places(words)]
    # Where words lie close together they are their own places.
    root = np.arange(extent, dtype=np.int32)
    unite(pairs - np.int32(first), root)
    root += np.int32(first)
    return lambda words: root[words - first]


def _join(classes: KernelRelation, came: Matrix) -> None:
    """Joins the classes of pairs that came: the largest of them gives its representative to all."""
    ends, rows = known_members(classes, came)
    is_new = rows < 0
    named = np.where(is_new, ends.words, classes.rows[rows, 1])  # one that is in no class is one by itself
    names = Members(named)
    of_end = names.places(named)
    root = names.united(names.words[of_end[ends.places(came)]])
    sizes = sizes_of(classes, 1, names.words)
    sizes[of_end[is_new]] = 0
    order = np.lexsort((-names.words, sizes))
    chosen = np.empty(len(names), np.int32)
    chosen[root[order]] = names.words[order]  # the last that is written stays: of the largest, the least
    new_name = chosen[root]
    others = names.words[(new_name != names.words)]
    moved = classes.rows[rows_of_keys(classes, REPRESENTATIVE, others.reshape(-1, 1))]
    moved = np.stack((moved[:, 0], new_name[names.places(moved[:, 1])]), axis=1)
    come = np.stack((ends.words[is_new], new_name[of_end[is_new]]), axis=1)
    _rename(classes, np.concatenate((moved, come)), ends.words[:0])


def are_joined(pairs: KernelRelation, words: Vector) -> Vector:
    """Which of some words are in a pair that was there and still is."""
    is_joined = np.zeros(len(words), np.bool_)
    for column in (0, 1):
        places, rows = rows_by_key(pairs, (column,), words.reshape(-1, 1))
        is_joined[places[_are_marked(pairs, rows, WAS)]] = True
    return is_joined


def _are_marked(relation: KernelRelation, rows: Vector | slice, marks: int) -> Vector:
    """Which rows have all of some marks, WAS and IS: were there before the update, are there now."""
    level = relation.level[rows]
    are_marked: Vector = level < ABSENT
    touched = np.flatnonzero(level >= REFERENCE)
    are_marked[touched] = relation.touched[level[touched] - REFERENCE, MARKS] & marks == marks
    return are_marked


def changed_classes(classes: KernelRelation, came: Matrix, went: Matrix) -> Matrix:
    """The classes that rows which came and went belong to, as they are now, in the state under way."""
    named = Members(came[:, 1], went[:, 1]).words
    return _classes_named(classes, named)


def _classes_named(classes: KernelRelation, names: Vector) -> Matrix:
    """The members of classes with their representatives, given these. A few classes that are most of the relation are
    found by looking at all of it: to follow an index from row to row takes several times as long."""
    if len(names) > _SOME or 2 * int(sizes_of(classes, 1, names).sum()) < classes.used:
        found: Matrix = classes.rows[rows_of_keys(classes, REPRESENTATIVE, names.reshape(-1, 1))]
        return found
    named = classes.rows[: classes.used, 1]
    is_wanted = np.zeros(len(named), np.bool_)
    for name in names:
        is_wanted |= named == name
    if not classes.is_settled:
        is_wanted &= _are_marked(classes, slice(0, classes.used), IS)
    return _chosen(classes, is_wanted)


def _chosen(relation: KernelRelation, are_chosen: Vector) -> Matrix:
    """Some rows of a relation of pairs: each is one number to numpy, which is several times as fast with those."""
    pairs: Matrix = relation.rows[: relation.used].view(np.int64).reshape(-1)[are_chosen].view(np.int32)
    return pairs.reshape(-1, 2)


def known_members(classes: KernelRelation, words: Matrix) -> tuple[Members, Vector]:
    """Some words, each once, and of each the row of its class, -1 where it is a member of none."""
    members = Members(words)
    places, rows = rows_by_key(classes, MEMBER, members.words.reshape(-1, 1))
    row_of = np.full(len(members), -1, np.int32)
    row_of[places] = rows
    return members, row_of


def rows_of_classes(classes: KernelRelation, words: Vector) -> Vector:
    """The rows of the classes that some words are members of."""
    named = classes.rows[rows_of_keys(classes, MEMBER, Members(words).words.reshape(-1, 1))][:, 1]
    return rows_of_keys(classes, REPRESENTATIVE, Members(named).words.reshape(-1, 1))


def _rename(classes: KernelRelation, renamed: Matrix, gone: Vector) -> None:
    """Members get other representatives, and some are members no more."""
    leaving = np.concatenate((renamed[:, 0], gone))
    transaction.take_away(classes, rows_of_keys(classes, MEMBER, leaving.reshape(-1, 1)))
    transaction.put(classes, transaction.add_rows(classes, renamed) if len(renamed) else NO_WORDS, 1)


@dataclass(frozen=True, slots=True)
class Equivalence:
    """`pairs` are those that generate it, `classes` its members with their representatives."""

    pairs: KernelRelation
    classes: KernelRelation
    has_levels: bool
    is_merged: bool = False

    def size(self) -> int:
        """The number of pairs."""
        named = self._present()[:, 1]
        sizes = np.bincount(Members(named).places(named)).astype(np.int64)
        return int((sizes * sizes).sum())

    def all_pairs(self) -> Pairs:
        """The pairs, not written out."""
        return Pairs.of(self._present())

    def facts(self) -> FactWords:
        """All pairs."""
        return self._annotated(self.all_pairs().words())

    def contains(self, words: Matrix) -> Vector:
        """Which of some pairs are present."""
        members, row_of = known_members(self.classes, words)
        rows = row_of[members.places(words)]
        represented = self.classes.rows[rows, 1]
        is_there: Vector = (rows >= 0).all(axis=1) & (represented[:, 0] == represented[:, 1])
        return is_there

    def select(self, columns: tuple[int, ...], key: Vector) -> FactWords:
        """The pairs with given words in some columns, without levels: these take a look at the whole class."""
        if not columns:
            return FactWords(self.all_pairs().words())
        if len(columns) == 2:
            words = np.array(key, np.int32).reshape(1, 2)[:, list(columns)]
            return FactWords(words[self.contains(words)])
        others = self._class_of(np.array(key, np.int32))
        words = np.empty((len(others), 2), np.int32)
        words[:, columns[0]] = key[0]
        words[:, 1 - columns[0]] = others
        return FactWords(words)

    def chain(self, left: int, right: int) -> Matrix | None:
        """The shortest chain of stored pairs from one member to another of its class, among those that give the pair
        its level; of a member to itself, a pair that it is in. None if the pair is stored itself."""
        pair = np.array([[left, right]], np.int32)
        if (self._stored_rows(pair) >= 0).all():
            return None
        members = Members(self._class_of(pair))
        rows = rows_of_keys(self.pairs, MEMBER, members.words.reshape(-1, 1))
        if self.has_levels:
            rows = rows[self.pairs.level[rows] < self._levels(pair)[0]]
        words = self.pairs.rows[rows]
        if left == right:
            touching: Matrix = words[(words == left).any(axis=1)][:1]
            return touching
        way = members.way(words, left, right)
        links = np.stack((way[:-1], way[1:]), axis=1)
        back = np.ascontiguousarray(links[:, ::-1])
        is_there = are_in(links, words)
        return np.where(is_there[:, None], links, back)

    def _stored_rows(self, words: Matrix) -> Vector:
        """The rows of pairs that are stored, -1 for others."""
        row = self.pairs.find(words)
        is_found = row >= 0
        if self.pairs.is_annotated:
            row[is_found] = np.where(self.pairs.level[row[is_found]] < ABSENT, row[is_found], -1)
        return row

    def _present(self) -> Matrix:
        words: Matrix = self.classes.rows[self.classes.there]
        return words

    def _class_of(self, words: Vector) -> Vector:
        """All members of the classes that some words are members of."""
        members: Vector = self.classes.rows[rows_of_classes(self.classes, words)][:, 0]
        return members

    def _annotated(self, words: Matrix) -> FactWords:
        if not self.has_levels:
            return FactWords(words)
        level = self._levels(words)
        row = self._stored_rows(words)
        is_stored = row >= 0
        if self.is_merged:
            is_stored[is_stored] = self.pairs.level[row[is_stored]] == 0
        count = np.ones(len(words), np.int32)
        level[is_stored] = self.pairs.level[row[is_stored]]
        count[is_stored] = self.pairs.count[row[is_stored]]
        return FactWords(words, level, count)

    def _levels(self, words: Matrix) -> Vector:
        """The level of each of some pairs by its best chain."""
        return self.levels_of_chains(words) + np.int32(1)

    def levels_of_chains(self, words: Matrix) -> Vector:
        """For each of some pairs, the least, over all chains of stored pairs, of the highest level in the chain; in an
        update, as long as it has not reached their classes."""
        members = Members(self._class_of(words))
        rows = rows_of_keys(self.pairs, MEMBER, members.words.reshape(-1, 1))
        return members.levels(self.pairs.rows[rows], levels_now(self.pairs, rows), words)
