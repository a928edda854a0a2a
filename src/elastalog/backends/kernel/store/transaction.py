"""What an update has done so far to the kernel's relations, so that it can be ended either way."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import ABSENT, COUNT, IS, MARKS, NEW, REFERENCE, WAS
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.homes import Homes
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import IN_UPDATES, KernelRelation
from elastalog.backends.kernel.store.shifts import Shift, Side
from elastalog.backends.protocol import GONE, StateChanges


class Transaction:
    """`deleted` and `inserted`: the explicit facts that go and come, normalised, as words. `changed`: entries of
    finished relations that strata above must hear of. `replaced`: relations that were evaluated anew, as they were, and
    `vectors` what was counted for them. `anew`: relations that must be. `shift`: what leads back, to be filled by the
    commit. `is_told`: the whereabouts of all `changed` relations say which entries these are."""

    __slots__ = ("anew", "changed", "deleted", "inserted", "is_told", "replaced", "shift", "vectors")

    def __init__(self) -> None:
        self.deleted: dict[str, Matrix] = {}
        self.inserted: dict[str, Matrix] = {}
        self.changed: dict[str, Vector] = {}
        self.replaced: dict[str, KernelRelation] = {}
        self.vectors: dict[str, Vectors] = {}
        self.anew: frozenset[str] = frozenset()
        self.shift: Shift | None = None
        self.is_told = False


def touch(relation: KernelRelation, rows: Vector, absent: int = ABSENT, other: int = ABSENT) -> Vector:
    """The touched entries of rows, made where there are none (see `bookkeeping.touch`)."""
    if not len(rows):
        return np.empty(0, np.int32)
    relation.is_settled = False
    relation.reserve_touched(len(rows))
    entries = np.empty(len(rows), np.int32)
    state = relation.state
    state[bookkeeping.TOUCHED_USED] = relation.touched_used
    try:
        bookkeeping.touch_rows(rows, relation.level, relation.count, relation.touched, absent, other, entries, state)
    finally:
        # Ctrl-C may come when the rows have their entries, or in here: a rollback must know of them.
        try:
            relation.touched_used = int(state[bookkeeping.TOUCHED_USED])
        except KeyboardInterrupt:
            relation.touched_used = int(state[bookkeeping.TOUCHED_USED])
            raise
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


def changed_entries(relation: KernelRelation, is_level_change: bool) -> Vector:
    """The touched entries of a finished relation that strata above must hear of."""
    changed = np.empty(relation.touched_used, np.int32)
    number = bookkeeping.finish(relation.touched, relation.touched_used, is_level_change, changed)
    return changed[:number]


def receive(relation: KernelRelation, changes: StateChanges, is_level_change: bool) -> Vector:
    """Writes what somebody else has found to change in a relation as the current state. Returns the entries that
    changed."""
    set_annotations(relation, changes.words, changes.level, changes.count)
    return changed_entries(relation, is_level_change)


def set_annotations(relation: KernelRelation, words: Matrix, level: Vector, count: Vector) -> None:
    """Writes the current state of facts; GONE is the level of those that are absent."""
    annotate_rows(relation, add_rows(relation, words), level, count)


def annotate_rows(relation: KernelRelation, rows: Vector, level: Vector, count: Vector) -> None:
    """The same of the facts in some rows."""
    entries = touch(relation, rows)
    is_present = level != GONE
    touched = relation.touched
    touched[entries, NEW] = np.where(is_present, level, ABSENT)
    touched[entries, COUNT] = count
    touched[entries, MARKS] = (touched[entries, MARKS] & WAS) | np.where(is_present, IS, 0)


def remove_rows(relation: KernelRelation, rows: Vector) -> None:
    """The facts in some rows, which are present, go."""
    gone = touch(relation, rows)
    relation.touched[gone, NEW] = ABSENT
    relation.touched[gone, COUNT] = 0
    relation.touched[gone, MARKS] = WAS


def commit(homes: Homes, replaced: Container[str], shift: Shift | None = None) -> list[KernelRelation]:
    """The current state of touched relations becomes that of the epoch, the one before that of a shift. `replaced`:
    those that were evaluated anew in this update. Returns those of which most rows are of facts that are gone."""
    sparse: list[KernelRelation] = []
    before: list[Side] = []
    touched = 0
    names, relations = homes.names, homes.relations
    for grown, lowest, highest, number, size, used in homes.commit(shift):
        relation = relations[names[number]]
        present = relation.present
        before.append((relation, relation.generation, present, size))
        touched += size
        if lowest < relation.lowest:
            relation.lowest = lowest
        if highest > relation.highest:
            relation.highest = highest
        if grown and relation.name not in replaced:
            present += grown
            relation.present = present
        relation.is_settled = present == used
        # Not at once: the next update may bring back what this one has taken away.
        if used > 2 * present and used > 2 * (present - grown) and relation.is_sparse:
            sparse.append(relation)
    if shift is not None:
        shift.begin(before, touched)
    return sparse


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


__all__ = [
    "REFERENCE", "Transaction", "add_rows", "annotate_rows", "changed_entries", "changed_words", "commit", "end",
    "receive", "remove_rows", "rollback", "set_annotation", "set_annotations", "touch",
]  # fmt: skip
