"""Shifts: from the state before a committed update to the one after it and back, by writing annotations and nothing
else.

A shift holds the annotations of the side where the backend is not. It can be used for as long as rows keep their
numbers and the relations are the same objects. Between its two states other updates may come and go, if each is taken
back before the shift is used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.settings import SETTINGS

Side: TypeAlias = tuple[KernelRelation, int, int, int]
"""A relation, its generation, how many facts are present, and how many are noted."""


class Shift:
    """`noted`: rows, and the levels and counts that they have on the other side, relation after relation. Few shifts
    are ever made, so that to be ready for one costs little: a commit notes what was."""

    __slots__ = ("_touched", "most", "noted")

    def __init__(self, most: int) -> None:
        """The shift back from the update that is about to be committed, if it has touched no more than `most` facts."""
        self.most = most
        self.noted: Matrix = np.empty((3, SETTINGS.few_shifted), np.int32)
        self._touched: list[Side] | None = None

    @property
    def is_small(self) -> bool:
        """Whether it has no more room than all have."""
        return bool(self.noted.shape[1] <= SETTINGS.few_shifted)

    def begin(self, touched: list[Side], entries: int) -> None:
        """The update has been committed: of each relation, what it was before, and how many facts were touched, as they
        were in all."""
        self._touched = touched if entries <= self.most else None

    def is_usable(self, relations: Mapping[str, KernelRelation]) -> bool:
        """Whether it has been noted what was, and all rows are still those of the same facts."""
        return self._touched is not None and all(
            relation.generation == generation and relations.get(relation.name) is relation
            for relation, generation, _, _ in self._touched
        )

    def toggle(self) -> None:
        """Goes to the other side."""
        first = 0
        here: list[Side] = []
        for relation, generation, present, size in self._touched or ():
            rows, levels, counts = self.noted[:, first : first + size]
            here.append((relation, generation, relation.present, size))
            levels_here, counts_here = relation.level[rows], relation.count[rows]
            relation.level[rows], relation.count[rows] = levels, counts
            levels[:], counts[:] = levels_here, counts_here
            relation.present = present
            relation.is_settled = relation.present == relation.used
            first += size
        self._touched = here
