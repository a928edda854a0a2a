"""Shifts: from the state before a committed update to the one after it and back, by writing annotations and nothing
else.

A shift holds the annotations of the side where the backend is not. It can be used for as long as rows keep their
numbers and the relations are the same objects. Between its two states other updates may come and go, if each is taken
back before the shift is used again.
"""

from __future__ import annotations

from elastalog.backends.kernel.store.homes import Homes
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.late import dataclass


@dataclass(slots=True)
class RelationShift:
    """The rows of one relation that an update touched, with the levels and counts of the other side, and the number of
    facts that are present there."""

    relation: KernelRelation
    generation: int
    rows: Vector
    levels: Vector
    counts: Vector
    present: int

    def is_usable(self) -> bool:
        return self.relation.generation == self.generation

    def toggle(self) -> None:
        """Goes to the other side."""
        relation = self.relation
        levels, counts, present = relation.level[self.rows], relation.count[self.rows], relation.present
        relation.level[self.rows], relation.count[self.rows] = self.levels, self.counts
        relation.present = self.present
        relation.is_settled = relation.present == relation.used
        self.levels, self.counts, self.present = levels, counts, present


Shift = tuple[RelationShift, ...]


def before_commit(homes: Homes, touched: list[KernelRelation]) -> Shift:
    """The shift back from the update that is about to be committed, given what it has touched."""
    before, parts, first = homes.before_commit(touched), [], 0
    for relation in touched:
        rows, levels, counts = before[:, first : first + relation.touched_used]
        parts.append(RelationShift(relation, relation.generation, rows, levels, counts, relation.present))
        first += relation.touched_used
    return tuple(parts)
