"""A stratum that an update evaluates anew: what its relations start from, and how they differ from what they were."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import ABSENT, MARKS, OLD, WAS
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import add_rows, changed_entries, set_annotations, touch


def successor(old: KernelRelation, explicit: Matrix, indexed: Collection[tuple[int, ...]]) -> KernelRelation:
    """A relation that holds some explicit facts, with room for as many as the old one has rows, also in the indexes on
    which it will be joined."""
    new = KernelRelation(old.name, old.width, old.is_annotated, old.crew)
    new.reserve(max(old.used, len(explicit)) + 64)
    new.load(explicit)
    for columns in indexed:
        if (index := old.index_to_extend(columns)) is not None:
            new.index_ahead(columns, index.successor())
    new.extend_indexes()
    return new


def explicit_facts(old: KernelRelation, is_explicit: Vector, deleted: Matrix | None, inserted: Matrix | None) -> Matrix:
    """The explicit facts after an update, from the mask of those before it, which may be changed."""
    if deleted is not None:
        is_explicit[old.find(deleted)] = False
    words = old.rows[: old.used][is_explicit]
    return words if inserted is None else np.concatenate((words, inserted))


def adopt(new: KernelRelation, old: KernelRelation, is_level_change: bool) -> Vector:
    """Gives a relation that was evaluated anew the touched entries that lead from the old one to it, so that strata
    above can be maintained. Returns the entries that changed."""
    evaluated = new.used
    gone = _follow(new, old, bookkeeping.WITH_LEVELS_BEFORE if is_level_change else bookkeeping.WITH_FACTS_BEFORE)
    if not old.is_settled:
        gone = gone[old.level[gone] < ABSENT]
    if len(gone):
        entries = touch(new, add_rows(new, np.ascontiguousarray(old.rows[gone])))
        new.touched[entries, OLD] = old.level[gone]
        new.touched[entries, MARKS] = WAS
    new.present = evaluated
    return changed_entries(new, is_level_change)


def _follow(relation: KernelRelation, other: KernelRelation, compared: int) -> Vector:
    """Touches the facts of a relation that are not in another one as they are here (see `bookkeeping.follow`). Returns
    the rows there that have no fact of this one."""
    mates = relation.matches(other)
    seen = np.zeros(other.used, np.bool_)
    first = np.zeros(relation.crew.number + 1, np.int64)
    here, there = relation.home, other.home

    def follow(start: int, stop: int, place: int) -> int:
        return int(bookkeeping.follow(here, there, start, mates[start:stop], seen, compared, place))

    def count(part: int, start: int, stop: int) -> None:
        first[part + 1] = follow(start, stop, -1)

    def write(part: int, start: int, stop: int) -> None:
        follow(start, stop, int(first[part]))

    relation.crew.do_ranges(relation.used, count)
    first[0] = relation.touched_used
    first = np.cumsum(first)
    known, used = int(first[0]), int(first[-1])
    if used > known:
        relation.reserve_touched(used - known)
        relation.lay_out()
        relation.crew.do_ranges(relation.used, write)
        # All are written: from here on, whatever comes, a rollback knows what the levels were.
        relation.is_settled = False
        relation.touched_used = used
        relation.crew.do_ranges(
            used - known,
            lambda _, start, stop: bookkeeping.refer(relation.touched, known + start, known + stop, relation.level),
        )
    return np.flatnonzero(~seen).astype(np.int32)


def index_alike(new: KernelRelation, old: KernelRelation) -> None:
    """Gives a relation that was evaluated anew the indexes of the old one, so that the next update need not make them:
    but for those that were given to the old one in this way, and to which no update has added a row since."""
    for columns in old.indexed:
        index = old.index_to_extend(columns)
        if columns not in new.indexed and index is not None and index.done != index.ahead:
            made = Index(columns, new.rows, new.used)
            made.ahead = new.used
            new.index_ahead(columns, made)


def shrink(old: KernelRelation, new: KernelRelation, is_level_change: bool) -> Vector:
    """Makes what a relation that was evaluated anew holds the current state of the old one, instead of `adopt`: what is
    gone would have to be added to the table and the indexes of the new one. Returns the entries that changed."""
    came = _follow(old, new, bookkeeping.WITH_WHAT_FOLLOWS)
    set_annotations(old, new.rows[came], new.level[came], new.count[came])
    return changed_entries(old, is_level_change)


def differences(new: KernelRelation, old: KernelRelation) -> Vector:
    """A non-empty vector if two relations without annotations differ."""
    is_same = new.used == old.used and bool((old.matches(new) >= 0).all())
    return np.zeros(0 if is_same else 1, np.int32)


def changed_facts(new: KernelRelation, old: KernelRelation) -> tuple[Matrix, Matrix]:
    """The facts that came and went between two relations without annotations."""
    came, went = new.matches(old) < 0, old.matches(new) < 0
    return new.rows[: new.used][came], old.rows[: old.used][went]
