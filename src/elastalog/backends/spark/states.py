"""What lies between two states of a relation, and which of it matters above."""

from __future__ import annotations

import numpy as np

from elastalog.backends.annotation import Annotation
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.snapshot import old_levels
from elastalog.backends.protocol import GONE, StateChanges
from elastalog.relations.facts import FactWords


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


def are_heard(changes: StateChanges, annotation: Annotation) -> np.ndarray:
    """Of which changes strata above must hear: of facts that came or went, with global levels of all that moved."""
    heard: np.ndarray = (changes.was == GONE) != (changes.level == GONE)
    if annotation.is_global:
        heard |= changes.was != changes.level
    return heard
