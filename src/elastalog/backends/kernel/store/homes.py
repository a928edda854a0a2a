"""All relations of a kernel at once, by their whereabouts: what an update has touched, and the end of it."""

from __future__ import annotations

from collections.abc import Container, Iterable
from ctypes import addressof

import numpy as np

from elastalog.backends.changed_words import ListedChanges
from elastalog.backends.kernel.compile.addresses import address_of, matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, NUMBERS, STATE, int64, operator, prefetch, types
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH, entry_of
from elastalog.backends.kernel.store.bookkeeping import AHEAD
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.whereabouts import whereabouts_at

NOWHERE: Matrix = np.empty((3, 0), np.int32)
"""Where nothing is noted."""

_FIRST_WORDS = 1024
"""Room for words of changed facts at first."""

_FATES = 3
"""What a commit says of a relation: see `bookkeeping.GROWN`."""

_commit = piece(bookkeeping.commit)
_came_and_went = piece(bookkeeping.came_and_went)


@operator(INT, STATE, NUMBERS)
def _list_touched(homes, touched):  # type: ignore[no-untyped-def]
    """Lists relations that have touched entries, their numbers and how many entries; returns how many are listed."""
    listed = 0
    for r in range(homes.shape[0]):
        entries = whereabouts_at(homes[r], 0).touched_used
        if entries > 0:
            touched[0, listed] = r
            touched[1, listed] = entries
            listed += 1
    return listed


@operator(types.void, STATE, NUMBERS, INT, NUMBERS, MATRIX)
def commit_all(homes, touched, number, fates, before):  # type: ignore[no-untyped-def]
    """Makes current annotations those of the epoch; nothing is touched any more. Rows, levels and counts of touched
    facts as they were go to `before`, relation after relation, if it has room."""
    is_noted = before.shape[1] > 0
    noted = 0
    for i in range(number):
        home = whereabouts_at(homes[touched[0, i]], 0)
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


@operator(INT, STATE, STATE, NUMBERS, INT, INT)
def _list_changes(homes, hidden, listed, place, room):  # type: ignore[no-untyped-def]
    """Copies the facts that came and went of the relations of which some have changed, but for those `hidden`, to room
    for so many words at a place, one relation after the other. Lists these relations, how many of their facts have
    changed in some way, came, and went; returns how many are listed, or -1 - the words that there must be room for."""
    words = 0
    number = 0
    for r in range(homes.shape[0]):
        home = whereabouts_at(homes[r], 0)
        if home.changed_number > 0 and hidden[r] == 0:
            words += home.changed_number * home.width
            listed[0, number] = r
            listed[1, number] = home.changed_number
            number += 1
    if words > room:
        return -1 - words
    for i in range(number):
        home = whereabouts_at(homes[listed[0, i]], 0)
        numbers = _came_and_went(
            words_at(home.changed, home.changed_number), matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH),
            matrix_at(home.rows, home.room, home.width), matrix_at(place, home.changed_number, home.width),
        )  # fmt: skip
        listed[2, i] = numbers & 0xFFFFFFFF
        listed[3, i] = numbers >> 32
        place += 4 * home.changed_number * home.width
    return number


class Homes:
    """Where the relations of a kernel are, and which of them are `hidden`. `numbers`: which is which; `addresses`: of
    their whereabouts, up to date after `look_again`."""

    def __init__(self, relations: dict[str, KernelRelation], hidden: Container[str] = ()) -> None:
        self._relations = relations
        self._stamp = -1
        self.names = list(relations)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self._hidden: Vector = np.array([name in hidden for name in self.names], np.int64)
        self._none_hidden: Vector = np.zeros(len(self.names), np.int64)
        self.addresses: Vector = np.zeros(len(self.names), np.int64)
        self._listed: Vector = np.zeros((4, len(self.names)), np.int64)
        self._fates: Vector = np.zeros((len(self.names), _FATES), np.int64)
        self._make_room(_FIRST_WORDS)

    def _make_room(self, words: int) -> None:
        self._words: Vector = np.empty(words, np.int32)
        self._words_at = address_of(self._words)

    def look_again(self) -> int:
        """Sees to it that addresses are those of the relations that there are. Returns a number that is another one
        whenever an array has moved, or a relation was replaced, since the last time."""
        stamp = STAMPS.last
        if stamp != self._stamp:
            self.addresses[:] = [addressof(relation.whereabouts) for relation in self._relations.values()]
            self._stamp = stamp  # last: Ctrl-C may come before
        return stamp

    def changes(self, changed: Iterable[str], with_hidden: bool) -> ListedChanges:
        """The facts that came and went of relations whose whereabouts say which of their entries have `changed`; those
        of hidden ones only `with_hidden`."""
        for name in changed:
            self._relations[name].lay_out()  # one that was evaluated anew may never have been
        self.look_again()
        hidden = self._none_hidden if with_hidden else self._hidden
        while True:
            number = int(_list_changes(self.addresses, hidden, self._listed, self._words_at, len(self._words)))
            if number >= 0:
                break
            self._make_room(-2 * number)
        relations, sizes, came, went = self._listed[:, :number].tolist()
        names = [self.names[r] for r in relations]
        widths = [self._relations[name].width for name in names]
        used = sum([size * width for size, width in zip(sizes, widths, strict=True)])
        return ListedChanges(self._words[:used].copy(), (names, widths, sizes, came, went))

    def touched(self) -> dict[KernelRelation, int]:
        """The relations that the update under way has touched, laid out, and how many entries each has."""
        self.look_again()
        number = _list_touched(self.addresses, self._listed)
        numbers, entries = self._listed[:2, :number].tolist()
        found = {}
        for i, size in zip(numbers, entries, strict=True):
            relation = self._relations[self.names[i]]
            relation.lay_out()
            found[relation] = size
        return found

    def commit(self, number: int, before: Matrix = NOWHERE) -> list[list[int]]:
        """The current state of the relations listed last, so many, becomes that of the epoch. Rows, levels and counts
        of touched facts as they were go to `before`, one relation after the other, unless there is no room. Returns by
        how much each relation has grown, and the lowest and the highest level of what is left of its touched facts."""
        commit_all(self.addresses, self._listed, number, self._fates, before)
        fates: list[list[int]] = self._fates[:number].tolist()
        return fates
