"""All relations of a kernel at once, by their whereabouts: what an update has touched, and the end of it."""

from __future__ import annotations

from ctypes import addressof

import numpy as np

from elastalog.backends.kernel.compile.addresses import matrix_at, piece, words_at
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, STATE, operator, types
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH, entry_of
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.whereabouts import whereabouts_at

_FATES = 3
"""What a commit says of a relation: see `bookkeeping.GROWN`."""

_commit = piece(bookkeeping.commit)


@operator(INT, STATE, STATE)
def _list_touched(homes, touched):  # type: ignore[no-untyped-def]
    """Lists the numbers of relations that have touched entries; returns how many."""
    listed = 0
    for r in range(homes.shape[0]):
        if whereabouts_at(homes[r], 0).touched_used > 0:
            touched[listed] = r
            listed += 1
    return listed


@operator(types.void, STATE, STATE, INT, MATRIX)
def _note_before(homes, touched, number, before):  # type: ignore[no-untyped-def]
    """Writes rows, levels and counts of all touched facts as they were, relation after relation."""
    at = 0
    for i in range(number):
        home = whereabouts_at(homes[touched[i]], 0)
        entries = matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH)
        count = words_at(home.count, home.room)
        for entry in range(home.touched_used):
            fact = entry_of(entries, entry)
            before[0, at] = fact.row
            before[1, at] = fact.old
            before[2, at] = count[fact.row]
            at += 1


@operator(types.void, STATE, STATE, INT, STATE)
def commit_all(homes, touched, number, fates):  # type: ignore[no-untyped-def]
    """Makes current annotations those of the epoch; nothing is touched any more."""
    for i in range(number):
        home = whereabouts_at(homes[touched[i]], 0)
        _commit(
            matrix_at(home.touched, home.touched_room, TOUCHED_WIDTH), home.touched_used,
            words_at(home.level, home.room), words_at(home.count, home.room), fates[i * _FATES : (i + 1) * _FATES],
        )  # fmt: skip
        home.touched_used = 0


class Homes:
    """Where the relations of a kernel are. `numbers`: which is which; `addresses`: of their whereabouts, up to date
    after `look_again`."""

    def __init__(self, relations: dict[str, KernelRelation]) -> None:
        self._relations = relations
        self._stamp = -1
        self.names = list(relations)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.addresses: Vector = np.zeros(len(self.names), np.int64)
        self._listed: Vector = np.zeros(len(self.names), np.int64)
        self._fates: Vector = np.zeros(_FATES * len(self.names), np.int64)

    def look_again(self) -> int:
        """Sees to it that addresses are those of the relations that there are. Returns a number that is another one
        whenever an array has moved, or a relation was replaced, since the last time."""
        stamp = STAMPS.last
        if stamp != self._stamp:
            self.addresses[:] = [addressof(relation.whereabouts) for relation in self._relations.values()]
            self._stamp = stamp  # last: Ctrl-C may come before
        return stamp

    def touched(self) -> list[KernelRelation]:
        """The relations that the update under way has touched, laid out."""
        self.look_again()
        number = _list_touched(self.addresses, self._listed)
        found = [self._relations[self.names[i]] for i in self._listed[:number].tolist()]
        for relation in found:
            relation.lay_out()
        return found

    def before_commit(self, touched: list[KernelRelation]) -> Matrix:
        """Rows, levels and counts of all touched facts as they were, one relation after the other."""
        before = np.empty((3, sum(relation.touched_used for relation in touched)), np.int32)
        _note_before(self.addresses, self._listed, len(touched), before)
        return before

    def commit(self, touched: list[KernelRelation]) -> list[tuple[int, int, int]]:
        """The current state becomes that of the epoch. Returns by how much each relation has grown, and the lowest and
        the highest level of what is left of its touched facts."""
        commit_all(self.addresses, self._listed, len(touched), self._fates)
        return [tuple(fate) for fate in self._fates[: _FATES * len(touched)].reshape(-1, _FATES).tolist()]
