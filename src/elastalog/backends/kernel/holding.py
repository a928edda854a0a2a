"""The facts that the kernel holds, and questions about them outside an update."""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.execution import aggregates as aggregates
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Support
from elastalog.planning.logical import LogicalProgram
from elastalog.relations.facts import FactWords


class KernelFacts:
    """The relations of a program. `vectors` are those of the dense strategy; what `count` and `level` of a relation
    hold depends on the `support`."""

    def __init__(self, program: LogicalProgram, is_annotated: bool, support: Support) -> None:
        self.is_annotated = is_annotated
        self.support = support
        self.relations = {
            name: KernelRelation(name, stored.width, is_annotated) for name, stored in program.relations.items()
        }
        self.vectors: dict[str, Vectors] = {}
        self._explicit: dict[str, int] = {}

    def load(self, relation: str, words: Matrix) -> None:
        """Adds explicit facts before the first bootstrap."""
        target = self.relations[relation]
        target.load(words)
        self._explicit[relation] = target.used

    def size(self, relation: str) -> int:
        """The number of facts."""
        return self.relations[relation].present

    def facts(self, relation: str) -> FactWords:
        """All facts of a relation, outside an update."""
        stored = self.relations[relation]
        rows = stored.present_rows()
        words = stored.rows[: stored.used] if stored.is_settled else stored.rows[rows]
        if not self.has_levels:
            return FactWords(words)
        if stored.is_settled:
            return FactWords(words, stored.level[: stored.used], stored.count[: stored.used])
        return FactWords(words, stored.level[rows], stored.count[rows])

    def contains(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are present, outside an update."""
        stored = self.relations[relation]
        found = stored.find(words)
        is_found = found >= 0
        if self.is_annotated and not stored.is_settled:
            is_found[is_found] = stored.level[found[is_found]] < ABSENT
        return is_found

    def is_explicit(self, relation: str, words: Matrix) -> Vector:
        """Which of some facts are explicit, outside an update."""
        stored = self.relations[relation]
        found = stored.find(words)
        is_explicit = found >= 0
        if self.is_annotated:
            is_explicit[is_explicit] = self._is_explicit(stored.level[found[is_explicit]])
        else:
            is_explicit &= found < self._explicit.get(relation, 0)
        return is_explicit

    def _is_explicit(self, levels: Vector) -> Vector:
        is_level = self.support in (Support.LEVELS, Support.VECTORS)
        is_explicit: Vector = levels == 0 if is_level else (levels & 1 == 0) & (levels < ABSENT)
        return is_explicit

    @property
    def has_levels(self) -> bool:
        """Whether every fact has a level and a count; the strategies that maintain sets keep other things."""
        return self.is_annotated and self.support in (Support.LEVELS, Support.VECTORS)

    def select(self, relation: str, columns: tuple[int, ...], key: Vector) -> FactWords:
        """The facts with given words in some columns, outside an update."""
        stored = self.relations[relation]
        index = stored.indexes.get(columns)
        if index is not None:
            rows = aggregates.rows_of_keys(stored, columns, np.ascontiguousarray(key, np.int32).reshape(1, -1))
        else:
            # Without an index one scan is cheaper than making one.
            mask = np.ones(stored.used, np.bool_)
            for column, word in zip(columns, key, strict=True):
                mask &= stored.rows[: stored.used, column] == word
            if self.is_annotated and not stored.is_settled:
                mask &= stored.level[: stored.used] < ABSENT
            rows = np.flatnonzero(mask)
        if not self.has_levels:
            return FactWords(stored.rows[rows])
        return FactWords(stored.rows[rows], stored.level[rows], stored.count[rows])

    def bytes_of(self, relation: str) -> int:
        """Memory of a relation and its indexes."""
        return self.relations[relation].nbytes

    @property
    def nbytes(self) -> int:
        """Memory of all relations and indexes."""
        vectors = sum(vectors.nbytes for vectors in self.vectors.values())
        return vectors + sum(relation.nbytes for relation in self.relations.values())

    def state(self, relation: str) -> FactWords:
        """All facts of a relation with level and count, outside an update, for a store."""
        return snapshot.state(self.relations[relation], self._explicit.get(relation, 0))
