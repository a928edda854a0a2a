"""The update of the dense strategy in the kernel: a vector of counts for every fact (algorithm 5, delta-driven).

It goes as that of `levels` does, in the same machine, with two differences (see `machine.counts`). Every derivation
through a lost or lowered fact moves in the vector of its head, not only those at the head's first level. And a lost
fact is not looked for backwards: what is left in its vector are its derivations from facts that were not lost, so its
first non-zero level is where it may come back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.levels.course import StratumCourse
from elastalog.backends.kernel.levels.drive import UpdateDrive
from elastalog.backends.kernel.store.annotations import COUNT, IS, MARKS, NEW, ROW
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.diagnostics.diagnostic import InternalError


class DenseCourse(StratumCourse):
    """An update of one stratum under way; `vectors` are those of all relations."""

    def __init__(self, impulse: Impulse, place: int, drive: UpdateDrive, vectors: Mapping[str, Vectors]) -> None:
        super().__init__(impulse, place, drive)
        self._relations = impulse.relations
        self._vectors = vectors
        for side, step in ((impulse.deleted, -1), (impulse.inserted, 1)):
            for name, words in side.items():
                vectors[name].change(impulse.relations[name].find(words), 0, step)

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
