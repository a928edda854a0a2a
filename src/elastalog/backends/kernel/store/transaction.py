"""The update under way: what it brings to each stratum, what it has touched so far, and how it ends.

`Homes` reaches all relations of a kernel at once, by their descriptors: the changes so far, and the commit. A `Shift`
leads from the state before a committed update to the one after it and back, by writing annotations and nothing else. It
holds the annotations of the side where the backend is not, and can be used for as long as rows keep their numbers and
the relations are the same objects. Between its two states other updates may come and go, if each is taken back before
the shift is used again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    INT,
    MATRIX,
    NUMBERS,
    STATE,
    address_of,
    int64,
    matrix_at,
    np_int32,
    operator,
    piece,
    prefetch,
    words_at,
)
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import ABSENT, COUNT, IS, MARKS, NEW, TOUCHED_WIDTH, entry_of
from elastalog.backends.kernel.store.bookkeeping import AHEAD
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector, relation_descriptor_at
from elastalog.backends.kernel.store.relation import IN_UPDATES, KernelRelation
from elastalog.backends.protocol import LISTED, ListedChanges, StateChanges
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.settings import SETTINGS

Sides: TypeAlias = Mapping[str, Matrix]
IsExplicit: TypeAlias = Callable[[str, Matrix], Vector]

_NO_SIDE: Sides = {}
_NONE_ANEW = frozenset[str]()


class Transaction:
    """`deleted` and `inserted`: the explicit facts that go and come; as long as it `is_asked` which of them do, those
    that are to. `is_explicit`: says which facts are explicit, None where all are here. `changed`: entries of finished
    relations that strata above must hear of; `known`: those of them that have been collected. `replaced`: relations
    that were evaluated anew, as they were, and `vectors` what was counted for them. `anew`: relations that must be.
    `given`: the places of strata whose explicit facts it changes, or that it has evaluated anew. `shift`: what leads
    back, to be filled by the commit. `is_told`: the descriptors of all `changed` relations say
    which entries these are; `collect`, if there is one, adds those that compiled code has noted since, which most
    updates never ask for."""

    __slots__ = (
        "anew", "collect", "deleted", "given", "inserted", "is_asked", "is_explicit", "is_told", "is_under_way",
        "known", "replaced", "shift", "vectors",
    )  # fmt: skip

    def __init__(self) -> None:
        self.replaced: dict[str, KernelRelation] = {}
        self.vectors: dict[str, Vectors] = {}
        self.known: dict[str, Vector] = {}
        self.given: set[int] = set()
        self.end()

    def end(self) -> None:
        """There is no update under way."""
        self.is_asked = self.is_told = self.is_under_way = False
        self.is_explicit: IsExplicit | None = None
        self.collect: Callable[[dict[str, Vector]], None] | None = None
        self.shift: Shift | None = None
        self.deleted = self.inserted = _NO_SIDE
        self.anew = _NONE_ANEW
        if self.known:
            self.known = {}
        if self.given:
            self.given = set()
        if self.replaced:
            self.replaced, self.vectors = {}, {}

    @property
    def changed(self) -> dict[str, Vector]:
        if self.collect is not None:
            self.collect(self.known)
        return self.known


def touch(relation: KernelRelation, rows: Vector, absent: int = ABSENT, other: int = ABSENT) -> Vector:
    """The touched entries of rows, made where there are none (see `bookkeeping.touch`)."""
    if not len(rows):
        return np.empty(0, np.int32)
    relation.is_settled = False
    relation.reserve_touched(len(rows))
    entries = np.empty(len(rows), np.int32)
    bookkeeping.touch_rows(relation.home, rows, absent, other, entries)
    return entries


def add_rows(relation: KernelRelation, words: Matrix) -> Vector:
    """The rows of facts, which are appended as absent ones where the relation never held them."""
    found = relation.find(words)
    is_new = found < 0
    if is_new.any():
        first = relation.used
        relation.reserve(first + len(words) + 64, IN_UPDATES)
        fresh = np.ascontiguousarray(words[is_new])
        # First of all the levels: should Ctrl-C come in between, the rows are absent.
        relation.level[first : first + len(fresh)] = ABSENT
        relation.is_settled = False
        relation.insert(fresh, 0, len(fresh), first)
        relation.count[first : relation.used] = 0
        relation.extend_indexes()
        found = relation.find(words)
    return found


def set_annotation(relation: KernelRelation, entries: Vector, level: Vector | int, is_present: bool) -> None:
    """Writes the current state of touched entries directly: present at a level with count 1, or absent."""
    touched = relation.touched
    if is_present:
        touched[entries, NEW] = level
        touched[entries, COUNT] = 1
        touched[entries, MARKS] |= IS
    else:
        touched[entries, NEW] = ABSENT
        touched[entries, COUNT] = 0
        touched[entries, MARKS] &= ~IS


def put(relation: KernelRelation, rows: Vector, level: Vector | int) -> Vector:
    """Rows are there from now on, at a level. Returns their entries."""
    entries = touch(relation, rows)
    set_annotation(relation, entries, level, is_present=True)
    return entries


def take_away(relation: KernelRelation, rows: Vector) -> None:
    """Rows are absent from now on."""
    set_annotation(relation, touch(relation, rows), ABSENT, is_present=False)


def changed_entries(relation: KernelRelation, is_level_change: bool) -> Vector:
    """The touched entries of a finished relation that strata above must hear of."""
    used, touched = relation.touched_used, relation.touched
    changed = np.empty(used, np.int32)
    found = [changed[:0]] * relation.crew.number

    def finish(part: int, start: int, stop: int) -> None:
        listed = changed[start:stop]
        found[part] = listed[: bookkeeping.finish(touched, start, stop, is_level_change, listed)]

    relation.crew.do_ranges(used, finish)
    return np.concatenate(found) if len(found) > 1 else found[0]


def changed_members(relations: Mapping[str, KernelRelation], names: Iterable[str]) -> dict[str, Vector]:
    """The touched entries of finished relations whose facts came or went, by relation, where there are any."""
    changed = {name: changed_entries(relations[name], is_level_change=False) for name in names}
    return {name: entries for name, entries in changed.items() if len(entries)}


def receive(relation: KernelRelation, changes: StateChanges, is_level_change: bool) -> Vector:
    """Writes changes of a relation that were computed elsewhere as the current state. Returns the entries that
    changed."""
    set_annotations(relation, changes.words, changes.level, changes.count)
    return changed_entries(relation, is_level_change)


def set_annotations(relation: KernelRelation, words: Matrix, level: Vector, count: Vector) -> None:
    """Writes the current state of facts; GONE is the level of those that are absent."""
    entries = touch(relation, add_rows(relation, words))
    # What comes from a file cannot be written to, and operators take arrays that can.
    levels, counts = (np.require(array, np.int32, ["C", "W"]) for array in (level, count))
    bookkeeping.annotate(entries, levels, counts, relation.touched)


def rollback(relation: KernelRelation) -> None:
    """The relation is as it was; rows added meanwhile stay, absent, and its indexes know them all."""
    if relation.touched_used:
        bookkeeping.rollback(relation.touched, relation.touched_used, relation.level)
    end(relation)
    try:
        relation.extend_indexes()
    except MemoryError:  # it may be what ended the update
        relation.drop_outdated_indexes()


def end(relation: KernelRelation) -> None:
    """Forgets the touched entries."""
    relation.touched_used = 0
    relation.is_settled = relation.present == relation.used


def changed_words(relation: KernelRelation, changed: Vector) -> tuple[Matrix, Matrix]:
    """The facts inserted and deleted, among changed entries."""
    size = len(changed)
    facts = np.empty((size, relation.width), np.int32)
    numbers = bookkeeping.came_and_went(changed, relation.touched, relation.rows, facts)
    return facts[: numbers & 0xFFFFFFFF], facts[size - (numbers >> 32) :]


NOWHERE: Matrix = np.empty((3, 0), np.int32)
"""Where nothing is noted."""


_RELATION, _ENTRIES, _PRESENT, _GENERATION, _IS_SPARSE, _FATES = range(3, 9)
"""What a commit says of a relation, behind what `bookkeeping.GROWN` begins: its number, how many entries it had, how
many facts were present before, its generation, and whether most rows are of facts that are gone."""

_ONE_SPARSE = 1 << 32

_commit = piece(bookkeeping.commit)
_came_and_went = piece(bookkeeping.came_and_went)


@operator(INT, STATE, NUMBERS, INT, MATRIX, INT)
def commit_all(homes, fates, most, before, compact_from):
    """Makes current annotations those of the epoch; nothing is touched any more. Says what became of relations that
    were touched, and returns how many these are, plus 2³² times the number of sparse ones, with more absent facts than
    `compact_from`. Rows, levels and counts of touched facts as they were go to `before`, relation after relation, if
    they are at most `most`; where it has no room for them nothing is done, and -1 - their number is returned."""
    number = 0
    entries_in_all = 0
    for r in range(homes.shape[0]):
        used = relation_descriptor_at(homes[r], 0).touched_used
        if used > 0:
            fates[number, _RELATION] = r
            fates[number, _ENTRIES] = used
            entries_in_all += used
            number += 1
    is_noted = entries_in_all <= most
    if is_noted and entries_in_all > before.shape[1]:
        return -1 - entries_in_all
    noted = 0
    sparse = 0
    for i in range(number):
        home = relation_descriptor_at(homes[fates[i, _RELATION]], 0)
        entries = matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH)
        level = words_at(home.level, home.room)
        count = words_at(home.count, home.room)
        if is_noted:
            for entry in range(home.touched_used):
                if entry + AHEAD < home.touched_used:
                    prefetch(count, int64(entry_of(entries, entry + AHEAD).row))
                fact = entry_of(entries, entry)
                before[0, noted] = fact.row
                before[1, noted] = fact.old
                before[2, noted] = count[fact.row]
                noted += 1
        _commit(entries, home.touched_used, level, count, fates[i])
        home.touched_used = 0
        fates[i, _PRESENT] = home.present
        fates[i, _GENERATION] = home.generation
        was_absent = home.used - home.present
        was_sparse = was_absent > home.present
        home.present += fates[i, bookkeeping.GROWN]
        home.lowest = min(home.lowest, fates[i, bookkeeping.LOWEST])
        home.highest = max(home.highest, fates[i, bookkeeping.HIGHEST])
        absent = home.used - home.present
        home.is_settled = 1 if absent == 0 else 0
        # Not at once: the next update may bring back what this one has taken away.
        fates[i, _IS_SPARSE] = 1 if was_sparse and absent > home.present and absent > compact_from else 0
        sparse += fates[i, _IS_SPARSE]
    return number + (sparse << 32)


@operator(INT, STATE, STATE, INT, INT)
def _list_changes(homes, hidden, place, room):
    """Lists the facts that came and went of all relations that are not `hidden`, as `ListedChanges` has them, at the
    address `place`, where there is room for `room` words. Returns how many words that takes, plus 2³² times the number
    of facts; if there is no room for them, nothing is done, and their number is returned less than 0."""
    first = 1
    words = 0
    for r in range(homes.shape[0]):
        home = relation_descriptor_at(homes[r], 0)
        if home.changed_number > 0 and hidden[r] == 0:
            first += LISTED
            words += home.changed_number * home.width
    if first + words > room:
        return -(first + words)
    listed = words_at(place, first)
    impact = 0
    next_one = 1
    for r in range(homes.shape[0]):
        home = relation_descriptor_at(homes[r], 0)
        if home.changed_number > 0 and hidden[r] == 0:
            numbers = _came_and_went(
                words_at(home.changed, home.changed_number), matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH),
                matrix_at(home.rows, home.room, home.width),
                matrix_at(place + 4 * first, home.changed_number, home.width),
            )  # fmt: skip
            came = numbers & 0xFFFFFFFF
            went = numbers >> 32
            last = first + home.changed_number * home.width
            if numbers != 0:
                listed[next_one] = np_int32(r)
                listed[next_one + 1] = np_int32(home.width)
                listed[next_one + 2] = np_int32(first)
                listed[next_one + 3] = np_int32(came)
                listed[next_one + 4] = np_int32(last - went * home.width)
                listed[next_one + 5] = np_int32(went)
                next_one += LISTED
            impact += came + went
            first = last
    listed[0] = np_int32(next_one)
    return first + (impact << 32)


class Homes:
    """Where the relations of a kernel are, and which of them are `hidden`. `numbers`: which is which; `addresses`: of
    their descriptors, up to date after `look_again`."""

    def __init__(self, relations: dict[str, KernelRelation], hidden: Container[str] = ()) -> None:
        self.relations = relations
        self._stamp = self._moved = -1
        self.names = list(relations)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self._hidden: Vector = np.array([name in hidden for name in self.names], np.int64)
        self._none_hidden: Vector = np.zeros(len(self.names), np.int64)
        self.addresses: Vector = np.zeros(len(self.names), np.int64)
        self._fates_said = array("q", bytes(8 * _FATES * (len(self.names) + 1)))
        self._fates = np.frombuffer(self._fates_said, np.int64).reshape(-1, _FATES)  # the same memory
        self._make_room(SETTINGS.first_changed_words)

    def _make_room(self, words: int) -> None:
        made = array("i", bytes(4 * words))
        # Together: Ctrl-C may come before.
        self._listing, self._words_at, self._room = made, address_of(made), words

    def look_again(self) -> int:
        """Ensures that addresses are those of the present relations, and that these are laid out. Returns a number
        that is new whenever an array of these has moved, or a relation was replaced, since the last time: stamps are
        taken by other sessions, too."""
        stamp, known = STAMPS.last, self._stamp
        if stamp != known:
            has_moved, addresses = False, []
            for one in self.relations.values():
                if one.stamp != one.laid_out:
                    one.lay_out()
                has_moved = has_moved or one.last_stamp > known
                addresses.append(one.address)
            if has_moved or addresses != self.addresses.tolist():
                self.addresses[:] = addresses
                self._moved = stamp
            self._stamp = stamp  # last: Ctrl-C may come before
        return self._moved

    def changes(self, with_hidden: bool) -> ListedChanges | None:
        """The facts that came and went of relations whose descriptors say which of their entries have changed; those
        of hidden ones only `with_hidden`. None if they are too many for places in a list to be words."""
        if STAMPS.last != self._stamp:
            self.look_again()
        hidden = self._none_hidden if with_hidden else self._hidden
        told = _list_changes(self.addresses, hidden, self._words_at, self._room)
        if -told > SETTINGS.most_changed_words:
            return None
        if -told > SETTINGS.changed_words_kept:  # no room is kept for the next ones
            made: Vector = np.empty(-told, np.int32)
            told = _list_changes(self.addresses, hidden, address_of(made), len(made))
            return ListedChanges(made.data, self.names, told >> 32)
        if told < 0:
            self._make_room(-2 * told)
            return self.changes(with_hidden)
        return ListedChanges(self._listing[: told & 0xFFFFFFFF], self.names, told >> 32)

    def touched(self) -> list[KernelRelation]:
        """The relations that the update under way has touched."""
        return [relation for relation in self.relations.values() if relation.touched_used]

    def commit(self, replaced: Iterable[str] = (), shift: Shift | None = None) -> Sequence[KernelRelation]:
        """The current state of touched relations becomes that of the epoch, the one before that of a shift. `replaced`:
        those that were evaluated anew in this update, and know how many facts they have. Returns those of which most
        rows are of facts that are gone."""
        if STAMPS.last != self._stamp:
            self.look_again()
        known = [(self.relations[name], self.relations[name].present) for name in replaced]
        compact_from = SETTINGS.compact_from
        if shift is None:
            number = commit_all(self.addresses, self._fates, -1, NOWHERE, compact_from)
        else:
            shift.homes = None
            while (number := commit_all(self.addresses, self._fates, shift.most, shift.noted, compact_from)) < 0:
                shift.noted, shift.is_long = np.empty((3, -1 - number), np.int32), True
            shift.homes, shift.fates = self, self._fates_said[: (number & 0xFFFFFFFF) * _FATES]
        for relation, present in known:
            relation.present, relation.is_settled = present, present == relation.used
        if number < _ONE_SPARSE:
            return ()
        fates = self._fates[: number & 0xFFFFFFFF]
        may_be = [self.relations[self.names[fate[_RELATION]]] for fate in fates.tolist() if fate[_IS_SPARSE]]
        return [relation for relation in may_be if relation.is_sparse]


class Shift:
    """`noted`: rows, and the levels and counts that they have on the other side, relation after relation. Few shifts
    are ever made, so that to be ready for one costs little: a commit notes what was, and whose relations these are
    (`homes`, None as long as it has not come) and what it said of them (`fates`). `is_long`: it holds more memory than
    most need."""

    __slots__ = ("fates", "homes", "is_long", "most", "noted")

    def __init__(self, most: int) -> None:
        """The shift back from the update that is about to be committed, if it has touched no more than `most` facts."""
        self.most = most
        self.is_long = False
        self.noted: Matrix = np.empty((3, SETTINGS.few_shifted), np.int32)
        self.homes: Homes | None = None
        self.fates = array("q")

    def is_usable(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Whether it has been noted what was, and all rows are still those of the same facts."""
        touched = 0
        for _, name, size, _, generation in () if self.homes is None else self._each(self.homes):
            if name not in relations or relations[name].generation != generation:
                return False
            touched += size
        return self.homes is not None and touched <= self.most

    def _each(self, homes: Homes) -> Iterator[tuple[int, str, int, int, int]]:
        """For each relation, where it stands among the fates, its name, how many facts were touched and how many are
        present on the other side, and its generation."""
        for at in range(0, len(self.fates), _FATES):
            number, size, there, generation = self.fates[at + _RELATION : at + _IS_SPARSE]
            yield at, homes.names[number], size, there, generation

    def touched(self, relations: Mapping[str, KernelRelation]) -> dict[str, Matrix] | None:
        """The facts that were touched, if it is usable."""
        homes, first, found = self.homes, 0, {}
        if homes is None or not self.is_usable(relations):
            return None
        for _, name, size, _, _ in self._each(homes):
            found[name] = relations[name].rows.take(self.noted[0, first : first + size], axis=0)
            first += size
        return found

    def toggle(self) -> None:
        """Goes to the other side."""
        homes, first = self.homes, 0
        assert homes is not None
        for at, name, size, present, _ in self._each(homes):
            relation = homes.relations[name]
            rows, levels, counts = self.noted[:, first : first + size]
            self.fates[at + _PRESENT] = relation.present
            levels_here, counts_here = relation.level[rows], relation.count[rows]
            relation.level[rows], relation.count[rows] = levels, counts
            levels[:], counts[:] = levels_here, counts_here
            relation.present = present
            relation.is_settled = present == relation.used
            first += size


@dataclass(frozen=True, slots=True)
class StratumDelta:
    """`relations` are all that there are; `below`: the changed entries of those that the stratum reads, `deleted` and
    `inserted` the explicit facts of its own that go and come. `watch` is asked while it is maintained."""

    stratum: LogicalStratum
    relations: Mapping[str, KernelRelation]
    below: dict[str, Vector]
    deleted: Mapping[str, Matrix]
    inserted: Mapping[str, Matrix]
    watch: Watch
