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

from elastalog.backends.kernel.bootstrap.rounds import WorkersAside
from elastalog.backends.kernel.levels.scheduler import StratumUpdate, UpdateScheduler
from elastalog.backends.kernel.store.annotations import COUNT, IS, MARKS, NEW, ROW
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import LogicalStratum


class DenseWorkers(WorkersAside):
    """Counts derivations by head and iteration, those of the last one too, though it finds no new fact."""

    def __init__(self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        super().__init__([relations[name] for name in stratum.relations], relations, watch)
        # Of each relation: rows, and the level and the number of some derivations of each.
        self._counted: dict[str, list[tuple[Vector, int, Vector]]] = {
            each.name: [(np.arange(each.used, dtype=np.int32), 0, np.ones(each.used, np.int32))] for each in self.own
        }

    def settle(self, iteration: int) -> Mapping[str, int]:
        for relation in self.own if iteration else ():
            found, known = self.found[relation.name], relation.used
            facts, counts = found.rows[: found.used], found.count[: found.used]
            relation.insert(facts, 0, found.used, known)
            rows = relation.find(facts)
            is_new = rows >= known
            relation.count[rows[is_new]] = counts[is_new]
            self._counted[relation.name].append((rows, iteration, counts))
        self.clear()
        return self.before

    def vectors(self) -> dict[str, Vectors]:
        """All that was counted, by relation."""
        made = {}
        for relation in self.own:
            vectors = made[relation.name] = Vectors()
            vectors.reserve(relation.used, 0)
            for rows, level, counts in reversed(self._counted[relation.name]):  # so that each begins its list
                vectors.change(rows, level, counts)
                vectors.commit()
        return made


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
