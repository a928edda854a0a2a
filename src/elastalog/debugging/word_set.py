"""Sets of facts as the backend holds them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import Matrix, Vector
from elastalog.planning.logical import LogicalProgram
from elastalog.relations.pairs import Rows, written_out


class WordSet:
    """Facts by relation, numbered."""

    def __init__(self, program: LogicalProgram) -> None:
        self._program = program
        self._relations: dict[str, KernelRelation] = {}

    def add(self, relation: str, words: Rows) -> None:
        if len(words):
            held = self._relations.get(relation)
            if held is None:
                width = self._program.relations[relation].width
                held = self._relations[relation] = KernelRelation(relation, width, is_annotated=False)
            held.load(written_out(words))

    def find(self, relation: str, words: Matrix) -> Vector:
        """The number of each fact within its relation, -1 for those that are not in the set."""
        held = self._relations.get(relation)
        return np.full(len(words), -1, np.int32) if held is None else held.find(words)

    def has(self, relation: str, row: tuple[int, ...]) -> bool:
        return relation in self._relations and bool(self.find(relation, np.array([row], np.int32))[0] >= 0)

    def words(self, relation: str) -> Matrix:
        held = self._relations[relation]
        return held.rows[: held.used]

    def size(self, relation: str) -> int:
        held = self._relations.get(relation)
        return 0 if held is None else held.used

    def relations(self) -> Iterable[str]:
        return self._relations
