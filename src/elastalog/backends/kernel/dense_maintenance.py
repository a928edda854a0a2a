"""The dense strategy in the kernel: bootstrap and update with a vector of counts for every fact (algorithm 5,
delta-driven).

An update goes as `maintenance` does, with two differences. Every derivation through a lost or lowered fact moves in
the vector of its head, not only those at the head's first level. And a lost fact is not looked for backwards: what is
left in its vector are its derivations from facts that were not lost, so its first non-zero level is where it may come
back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel import dense_operators, maintain
from elastalog.backends.kernel.delta_pipeline import GAINS
from elastalog.backends.kernel.fixpoint import StratumPipelines, Workers, evaluate
from elastalog.backends.kernel.maintenance import MaintenancePlan, StratumMaintenance
from elastalog.backends.kernel.marks import COUNT, DELTA, IS, LOST, MARKS, NEW, OTHER, PENDING, ROW
from elastalog.backends.kernel.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.pipeline import Pipeline, Scratch, Sink
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.vectors import FAULTS, Vectors
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import LogicalStratum

_MOST_STEPS = 2
"""A derivation moves from one count to another."""


class DenseMaintenance(StratumMaintenance):
    """See `StratumMaintenance`. `vectors` are those of all relations."""

    def __init__(
        self,
        stratum: LogicalStratum,
        plan: MaintenancePlan,
        relations: Mapping[str, KernelRelation],
        flat: frozenset[str],
        inputs: Mapping[str, Vector],
        deleted: Mapping[str, Vector],
        inserted: Mapping[str, Vector],
        watch: Watch,
        scratch: Scratch,
        vectors: Mapping[str, Vectors],
    ) -> None:
        super().__init__(stratum, plan, relations, flat, inputs, deleted, inserted, watch, scratch)
        self.vectors = vectors

    def begin_losses(self) -> None:
        self._change_explicit(self.deleted, -1)
        super().begin_losses()

    def begin_gains(self) -> None:
        if not (self.inserted or self.deleted or any(self.lost.values()) or self._concerns(GAINS)):
            return
        self._is_marked = True
        self._mark_inputs(DELTA, LOST)
        self._change_explicit(self.inserted, 1)
        for name, entries in self.inserted.items():
            maintain.make_explicit(entries, self.relations[name].touched)
        for name, entries in self.deleted.items():
            self._wait_for_next_level(name, entries)
        for name, parts in self.lost.items():
            for entries in parts:
                self._wait_for_next_level(name, entries)
        self.delta = {**self.inputs, **self.inserted}

    def end(self, is_level_change: bool) -> dict[str, Vector]:
        for name in self.own:
            relation, vectors = self.relations[name], self.vectors[name]
            touched = relation.touched[: relation.touched_used]
            present = np.flatnonzero(touched[:, MARKS] & IS)
            levels, counts = vectors.lowest(touched[present, ROW])
            if vectors.state[FAULTS] or (levels != touched[present, NEW]).any():
                raise InternalError("dense maintenance", f"the counts of `{name}` contradict its levels")
            touched[present, COUNT] = counts
        return super().end(is_level_change)

    def _change_explicit(self, changed: Mapping[str, Vector], step: int) -> None:
        for name, entries in changed.items():
            self.vectors[name].change(self.relations[name].touched[entries, ROW], 0, step)

    def _wait_for_next_level(self, name: str, entries: Vector) -> None:
        touched = self.relations[name].touched
        levels, _ = self.vectors[name].lowest(touched[entries, ROW])
        for level in np.unique(levels[levels >= 0]).tolist():
            waiting = entries[levels == level]
            touched[waiting, OTHER] = level
            touched[waiting, MARKS] |= PENDING
            self.waiting.setdefault(level, []).append((name, waiting))

    def _loss_sink(self, head: KernelRelation) -> Sink:
        vectors = self.vectors[head.name]

        def sink(block: Matrix, used: int) -> None:
            listed, state = self._begin(head, used)
            vectors.reserve(head.used, used)
            dense_operators.apply_losses(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, vectors.first,
                vectors.nodes, vectors.log, vectors.state, listed, state,
            )  # fmt: skip
            self._finish(head, used)

        return sink

    def _gain_sink(self, head: KernelRelation) -> Sink:
        vectors = self.vectors[head.name]

        def sink(block: Matrix, used: int) -> None:
            head.reserve(head.used + used)
            listed, state = self._begin(head, used)
            vectors.reserve(head.used + used, _MOST_STEPS * used)
            dense_operators.apply_gains(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, vectors.first,
                vectors.nodes, vectors.log, vectors.state, listed, state,
            )  # fmt: skip
            self._finish(head, used)

        return sink


def evaluate_dense(
    stratum: LogicalStratum,
    pipelines: StratumPipelines,
    relations: Mapping[str, KernelRelation],
    watch: Watch,
    limits: Mapping[str, int] | None,
) -> tuple[dict[str, Vectors], bool]:
    """As `fixpoint.evaluate`; returns the vectors of the stratum's relations too. The counts of the last iteration are
    kept, though it found no new fact."""
    workers = _DenseWorkers(stratum, relations, watch)
    is_complete = evaluate(stratum, pipelines, relations, workers, watch, limits)
    return workers.vectors(), is_complete


class _DenseWorkers(Workers):
    """Counts derivations by head and iteration."""

    def __init__(self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        super().__init__(relations, watch)
        self._hits = {name: _Hits(relations[name]) for name in stratum.relations}
        self._iteration = 0
        self._bounds: Mapping[str, int] | None = None

    def _sink(self, pipeline: Pipeline, counted: Mapping[str, int]) -> Sink:
        # Every iteration has bounds of its own.
        if counted is not self._bounds:
            self._end_iteration()
            self._bounds = counted
            self._iteration += 1
        return self._hits[pipeline.variant.clause.head].sink(self.watch)

    def _end_iteration(self) -> None:
        for hits in self._hits.values():
            hits.end_iteration(self._iteration)

    def vectors(self) -> dict[str, Vectors]:
        """All that was counted."""
        self._end_iteration()
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
        self._state: Vector = np.zeros(8, np.int64)
        self._known = explicit

    def sink(self, watch: Watch) -> Sink:
        relation, state = self.relation, self._state

        def count(block: Matrix, used: int) -> None:
            relation.reserve(relation.used + used)
            if len(self._hits) < len(relation.rows):
                wider = np.zeros(len(relation.rows), np.int32)
                wider[: len(self._hits)] = self._hits
                self._hits = wider
            self._list = maintain.room(self._list, int(state[maintain.LISTED]) + used)
            state[maintain.USED] = relation.used
            dense_operators.count_heads(
                block, used, relation.rows, relation.table, relation.shift, self._hits, self._list, state
            )
            relation.used = int(state[maintain.USED])
            watch.derived(used)

        return count

    def end_iteration(self, iteration: int) -> None:
        rows = self._list[: int(self._state[maintain.LISTED])].copy()
        counts = self._hits[rows]
        self._hits[rows] = 0
        self._state[maintain.LISTED] = 0
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
