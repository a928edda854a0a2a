"""The states of a relation before and after an update, apart from how the kernel keeps them meanwhile."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store.annotations import ABSENT, OLD, REFERENCE
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.relations.facts import FactWords


def old_levels(relation: KernelRelation) -> np.ndarray:
    """The level of every row of an annotated relation before the update under way, GONE where the fact was absent."""
    return levels_before(relation, slice(0, relation.used))


def levels_before(relation: KernelRelation, rows: np.ndarray | slice) -> np.ndarray:
    """The same for some rows."""
    levels: np.ndarray = relation.level[rows].copy()
    is_touched = levels >= REFERENCE
    levels[is_touched] = relation.touched[levels[is_touched] - REFERENCE, OLD]
    levels[levels >= ABSENT] = GONE
    return levels


def state_before(relation: KernelRelation, explicit: int) -> FactWords:
    """The facts of a relation before the update under way. Without annotations, the first `explicit` rows are level 0,
    all others level 1."""
    if not relation.is_annotated:
        level = np.ones(relation.used, np.int32)
        level[:explicit] = 0
        return FactWords(relation.rows[: relation.used], level, np.ones(relation.used, np.int32))
    levels = old_levels(relation)
    rows = np.flatnonzero(levels != GONE)
    # Counts of the last epoch stay in place until the update is committed.
    return FactWords(relation.rows[rows], levels[rows], relation.count[rows])


def changes_between(old: KernelRelation, new: FactWords) -> StateChanges:
    """What leads from a relation, outside an update, to a state: facts that came, went, or have another annotation."""
    assert new.level is not None
    assert new.count is not None
    before, found = old_levels(old), old.find(new.words)
    is_known = found >= 0
    was = np.full(len(found), GONE, np.int32)
    was[is_known] = before[found[is_known]]
    old_count = np.zeros(len(found), np.int32)
    old_count[is_known] = old.count[found[is_known]]
    is_other = (was != new.level) | (old_count != new.count)
    before[found[is_known]] = GONE
    lost = np.flatnonzero(before != GONE)
    gone = np.full(len(lost), GONE, np.int32)
    return StateChanges(
        np.concatenate((new.words[is_other], old.rows[lost])),
        np.concatenate((was[is_other], before[lost])),
        np.concatenate((new.level[is_other], gone)).astype(np.int32, copy=False),
        np.concatenate((new.count[is_other], np.zeros(len(lost), np.int32))).astype(np.int32, copy=False),
    )


def are_heard(changes: StateChanges, is_global: bool) -> np.ndarray:
    """Of which changes strata above must hear: of facts that came or went, with global levels of all that moved."""
    heard: np.ndarray = (changes.was == GONE) != (changes.level == GONE)
    if is_global:
        heard |= changes.was != changes.level
    return heard
