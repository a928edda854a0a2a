"""Reading the levels of a relation's rows."""

from __future__ import annotations

from elastalog.backends.kernel.store.annotations import ABSENT, NEW, REFERENCE
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation


def levels_now(relation: KernelRelation, rows: Vector | slice) -> Vector:
    """The levels of rows in the state under way."""
    levels = relation.level[rows].copy()
    is_touched = levels >= REFERENCE
    levels[is_touched] = relation.touched[levels[is_touched] - REFERENCE, NEW]
    return levels


def note_levels(relation: KernelRelation) -> None:
    """Notes between which levels the facts of a settled relation are."""
    levels = relation.level[: relation.used]
    relation.lowest = int(levels.min()) if len(levels) else 0
    relation.highest = int(levels.max()) if len(levels) else 0


def highest_now(relation: KernelRelation) -> int:
    """A level above which the relation has no facts in the state under way."""
    touched = relation.touched[: relation.touched_used, NEW]
    return max(relation.highest, int(touched[touched < ABSENT].max(initial=0)))
