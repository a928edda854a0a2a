"""The dense strategy: for every fact and level the number of its derivations there (see `store.count_vectors`).

Its bootstrap is semi-naive evaluation that keeps every count of every iteration. Its update (algorithm 5, delta-driven)
goes as that of `levels` does, in the same machine, with two differences (see `machine.heads`). Every derivation through
a lost or lowered fact moves in the vector of its head, not only those at the head's first level. And a lost fact is not
looked for backwards: what is left in its vector are its derivations from facts that were not lost, so its first
non-zero level is where it may come back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.bootstrap.rounds import SettlingWorkers
from elastalog.backends.kernel.compile.signatures import INT, MATRIX, WORDS, operator
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.levels.scheduler import StratumUpdate, UpdateScheduler
from elastalog.backends.kernel.store.annotations import COUNT, IS, MARKS, NEW, ROW, facts_of
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector, longer, relation_descriptor_at, with_room
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import add_row, find_row
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import LogicalStratum


class DenseWorkers(SettlingWorkers):
    """Counts derivations by head and iteration, those of the last one too, though it finds no new fact."""

    def __init__(self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        super().__init__(relations, watch)
        self._hits = {name: _Hits(relations[name]) for name in stratum.relations}

    def take(self, variant: BoundVariant, block: Matrix, used: int) -> None:
        self._hits[variant.clause.head].count(block, used)
        self.watch.derived(used)

    def settle(self, iteration: int) -> Mapping[str, int]:
        if iteration:
            for hits in self._hits.values():
                hits.end_iteration(iteration)
        return self.before

    def vectors(self) -> dict[str, Vectors]:
        """All that was counted, by relation."""
        return {name: hits.vectors() for name, hits in self._hits.items()}


class _Hits:
    """How often each fact of a relation was derived, iteration by iteration."""

    def __init__(self, relation: KernelRelation) -> None:
        explicit = relation.used
        self.relation = relation
        self.rows: list[Vector] = [np.arange(explicit, dtype=np.int32)]
        self.levels: list[Vector] = [np.zeros(explicit, np.int32)]
        self.counts: list[Vector] = [np.ones(explicit, np.int32)]
        self._hits: Vector = np.zeros(len(relation.rows), np.int32)
        self._list: Vector = NO_WORDS
        self._listed = 0
        self._known = explicit

    def count(self, block: Matrix, used: int) -> None:
        """Counts derivations."""
        relation = self.relation
        relation.reserve(relation.used + used)
        if len(self._hits) < len(relation.rows):
            self._hits = longer(self._hits, len(relation.rows), 0)
        self._list = with_room(self._list, self._listed + used)
        self._listed = count_heads(relation.home, block, used, self._hits, self._list, self._listed)

    def end_iteration(self, iteration: int) -> None:
        rows = self._list[: self._listed].copy()
        counts = self._hits[rows]
        self._hits[rows] = 0
        self._listed = 0
        fresh = rows >= self._known
        self.relation.count[rows[fresh]] = counts[fresh]
        self._known = self.relation.used
        self.rows.append(rows)
        self.levels.append(np.full(len(rows), iteration, np.int32))
        self.counts.append(counts)

    def vectors(self) -> Vectors:
        """All of it as vectors."""
        return Vectors.of(
            np.concatenate(self.rows), np.concatenate(self.levels), np.concatenate(self.counts), self.relation.used
        )


@operator(INT, INT, MATRIX, INT, WORDS, WORDS, INT)
def count_heads(address, block, used, hits, listed_rows, listed):
    """Inserts heads and counts, for every row, how often it was met; lists each row that was met once, behind those
    that are `listed`, and returns how many are now."""
    home = relation_descriptor_at(address, 0)
    facts = facts_of(home)
    for i in range(used):
        row = find_row(block, i, facts)
        if row < 0:
            add_row(block, i, -1 - row, facts, home.used)
            row = home.used
            hits[row] = 0
            home.used += 1
        if hits[row] == 0:
            listed_rows[listed] = row
            listed += 1
        hits[row] += 1
    return listed


class DenseUpdate(StratumUpdate):
    """An update of one stratum under way; `vectors` are those of all relations."""

    def __init__(
        self, stratum_delta: StratumDelta, place: int, drive: UpdateScheduler, vectors: Mapping[str, Vectors]
    ) -> None:
        super().__init__(stratum_delta, place, drive)
        self._relations = stratum_delta.relations
        self._vectors = vectors
        for side, step in ((stratum_delta.deleted, -1), (stratum_delta.inserted, 1)):
            for name, words in side.items():
                vectors[name].change(stratum_delta.relations[name].find(words), 0, step)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        for name in self.own:
            relation, vectors = self._relations[name], self._vectors[name]
            touched = relation.touched[: relation.touched_used]
            present = np.flatnonzero(touched[:, MARKS] & IS)
            levels, first_counts = vectors.lowest(touched[present, ROW])
            if vectors.place.faults or (levels != touched[present, NEW]).any():
                raise InternalError("dense maintenance", f"the counts of `{name}` contradict its levels")
            touched[present, COUNT] = first_counts
        return super().end()
