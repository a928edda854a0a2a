"""All relations of a kernel at once, by their whereabouts: what an update has touched, and the end of it."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from elastalog.backends.changed_words import LISTED, LISTING, ListedChanges
from elastalog.backends.kernel.compile.addresses import address_of, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import (
    INT,
    MATRIX,
    NUMBERS,
    STATE,
    int64,
    np_int32,
    operator,
    prefetch,
)
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH, entry_of
from elastalog.backends.kernel.store.bookkeeping import AHEAD
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.shifts import Shift
from elastalog.backends.kernel.store.whereabouts import whereabouts_at
from elastalog.settings import SETTINGS

NOWHERE: Matrix = np.empty((3, 0), np.int32)
"""Where nothing is noted."""


_RELATION, _ENTRIES, _USED, _FATES = range(3, 7)
"""What a commit says of a relation, behind what `bookkeeping.GROWN` begins: its number, how many entries it had, and
how many rows it has."""

_commit = piece(bookkeeping.commit)
_came_and_went = piece(bookkeeping.came_and_went)


@operator(INT, STATE, NUMBERS, INT, MATRIX)
def commit_all(homes, fates, most, before):  # type: ignore[no-untyped-def]
    """Makes current annotations those of the epoch; nothing is touched any more. Says what became of relations that
    were touched, and returns how many these are. Rows, levels and counts of touched facts as they were go to `before`,
    relation after relation, if they are no more than `most`; where it has no room for them nothing is done, and -1 -
    their number is returned."""
    number = 0
    entries_in_all = 0
    for r in range(homes.shape[0]):
        used = whereabouts_at(homes[r], 0).touched_used
        if used > 0:
            fates[number, _RELATION] = r
            fates[number, _ENTRIES] = used
            entries_in_all += used
            number += 1
    is_noted = entries_in_all <= most
    if is_noted and entries_in_all > before.shape[1]:
        return -1 - entries_in_all
    noted = 0
    for i in range(number):
        home = whereabouts_at(homes[fates[i, _RELATION]], 0)
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
        fates[i, _USED] = home.used
    return number


@operator(INT, STATE, STATE, INT, INT)
def _list_changes(homes, hidden, place, room):  # type: ignore[no-untyped-def]
    """Lists the facts that came and went of the relations of which some have changed, but for those `hidden`, as
    `ListedChanges` has them, in room for so many words at a place. Returns how many words that takes; nothing is done
    where there is no room for them."""
    words = LISTING
    number = 0
    for r in range(homes.shape[0]):
        home = whereabouts_at(homes[r], 0)
        if home.changed_number > 0 and hidden[r] == 0:
            words += LISTED + home.changed_number * home.width
            number += 1
    if words > room:
        return words
    listed = words_at(place, LISTING + LISTED * number)
    facts_at = place + 4 * (LISTING + LISTED * number)
    impact = 0
    next_one = LISTING
    for r in range(homes.shape[0]):
        home = whereabouts_at(homes[r], 0)
        if home.changed_number > 0 and hidden[r] == 0:
            numbers = _came_and_went(
                words_at(home.changed, home.changed_number), matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH),
                matrix_at(home.rows, home.room, home.width), matrix_at(facts_at, home.changed_number, home.width),
            )  # fmt: skip
            came = numbers & 0xFFFFFFFF
            went = numbers >> 32
            listed[next_one] = np_int32(r)
            listed[next_one + 1] = np_int32(home.width)
            listed[next_one + 2] = np_int32(home.changed_number)
            listed[next_one + 3] = np_int32(came)
            listed[next_one + 4] = np_int32(went)
            next_one += LISTED
            impact += came + went
            facts_at += 4 * home.changed_number * home.width
    listed[0] = np_int32(number)
    listed[1] = np_int32(impact & 0x7FFFFFFF)
    listed[2] = np_int32(impact >> 31)
    return words


class Homes:
    """Where the relations of a kernel are, and which of them are `hidden`. `numbers`: which is which; `addresses`: of
    their whereabouts, up to date after `look_again`."""

    def __init__(self, relations: dict[str, KernelRelation], hidden: Container[str] = ()) -> None:
        self.relations = relations
        self._stamp = self._moved = -1
        self.names = list(relations)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self._hidden: Vector = np.array([name in hidden for name in self.names], np.int64)
        self._none_hidden: Vector = np.zeros(len(self.names), np.int64)
        self.addresses: Vector = np.zeros(len(self.names), np.int64)
        self._fates: Vector = np.zeros((len(self.names), _FATES), np.int64)
        self._make_room(SETTINGS.first_changed_words)

    def _make_room(self, words: int) -> None:
        made = np.empty(words, np.int32)
        place = address_of(made)
        # Together: Ctrl-C may come before.
        self._words, self._words_at = made, place

    def look_again(self) -> int:
        """Sees to it that addresses are those of the relations that there are, and these laid out. Returns a number
        that is another one whenever an array of these has moved, or one was replaced, since the last time: stamps are
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

    def changes(self, with_hidden: bool) -> ListedChanges:
        """The facts that came and went of relations whose whereabouts say which of their entries have changed; those
        of hidden ones only `with_hidden`."""
        if STAMPS.last != self._stamp:
            self.look_again()
        hidden = self._none_hidden if with_hidden else self._hidden
        while (used := _list_changes(self.addresses, hidden, self._words_at, len(self._words))) > len(self._words):
            self._make_room(2 * used)
        return ListedChanges(self._words[:used].copy(), self.names)

    def touched(self) -> list[KernelRelation]:
        """The relations that the update under way has touched."""
        return [relation for relation in self.relations.values() if relation.touched_used]

    def commit(self, shift: Shift | None = None) -> list[list[int]]:
        """The current state of touched relations becomes that of the epoch, the one before that of a shift. Returns, of
        each relation, by how much it has grown, and the lowest and the highest level of what is left of its touched
        facts; then its number, how many facts were touched, and how many rows it has."""
        if STAMPS.last != self._stamp:
            self.look_again()
        noted, most = (NOWHERE, -1) if shift is None else (shift.noted, shift.most)
        number = commit_all(self.addresses, self._fates, most, noted)
        if number < 0:
            assert shift is not None
            shift.noted = np.empty((3, -1 - number), np.int32)
            number = commit_all(self.addresses, self._fates, most, shift.noted)
        fates: list[list[int]] = self._fates[:number].tolist()
        return fates
