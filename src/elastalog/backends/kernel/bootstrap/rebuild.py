"""A stratum that an update evaluates anew: what its relations start from, and how they differ from what they were."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from elastalog.backends.kernel.store.annotations import ABSENT, IS, MARKS, OLD, WAS
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import (
    add_rows,
    annotate_rows,
    changed_entries,
    remove_rows,
    set_annotations,
    touch,
)

_NOT_THERE, _WAS_ABSENT = -1, -2
"""What `KernelRelation.matches` says of rows without a match."""


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
    found = old.matches(new)
    is_gone = found == _NOT_THERE
    gone_rows = np.flatnonzero(is_gone)
    if len(gone_rows) or evaluated != old.present:
        seen = np.zeros(evaluated + 1, np.bool_)
        # The negative ones mark the place after the last row.
        seen[np.maximum(found, _NOT_THERE)] = True
        came = touch(new, np.flatnonzero(~seen[:evaluated]).astype(np.int32))
        new.touched[came, OLD] = ABSENT
        new.touched[came, MARKS] = IS
        gone = touch(new, add_rows(new, np.ascontiguousarray(old.rows[gone_rows])))
        new.touched[gone, OLD] = old.level[gone_rows]
        new.touched[gone, MARKS] = WAS
    if is_level_change:
        as_before = np.flatnonzero(found >= 0)
        kept = found[as_before]
        moved = new.level[kept] != old.level[as_before]
        entries = touch(new, kept[moved])
        new.touched[entries, OLD] = old.level[as_before[moved]]
    new.present = evaluated
    return changed_entries(new, is_level_change)


def index_alike(new: KernelRelation, old: KernelRelation) -> None:
    """Gives a relation that was evaluated anew the indexes of the old one, so that the next update need not make them:
    but for those that were given to the old one in this way, and to which no update has added a row since."""
    for columns in old.indexed:
        index = old.index_to_extend(columns)
        if columns not in new.indexed and index is not None and index.done != index.ahead:
            made = Index(columns, new.rows, new.used)
            made.ahead = new.used
            new.index_ahead(columns, made)


def has_shrunk(new: KernelRelation, old: KernelRelation) -> bool:
    """Whether it is better to remove what is gone from the old relation than to tell the new one of it, which has to
    be added to its table and its indexes. Not where an update has begun to change the old one."""
    return not old.touched_used and new.used <= old.present


def shrink(old: KernelRelation, new: KernelRelation, is_level_change: bool) -> Vector:
    """Makes what a relation that was evaluated anew holds the current state of the old one, instead of `adopt`. Returns
    the entries that changed."""
    found = old.matches(new)
    gone = np.flatnonzero(found == _NOT_THERE).astype(np.int32)
    kept = np.flatnonzero(found >= 0).astype(np.int32)
    same = found[kept]
    is_other = (new.level[same] != old.level[kept]) | (new.count[same] != old.count[kept])
    is_new = np.ones(new.used, np.bool_)
    is_new[same] = False
    came = np.flatnonzero(is_new)
    remove_rows(old, gone)
    annotate_rows(old, kept[is_other], new.level[same[is_other]], new.count[same[is_other]])
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
