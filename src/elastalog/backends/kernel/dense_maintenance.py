"""The update of the dense strategy in the kernel: a vector of counts for every fact (algorithm 5, delta-driven).

It goes as `maintenance` does, driven from Python operator by operator, with two differences. Every derivation through a
lost or lowered fact moves in the vector of its head, not only those at the head's first level. And a lost fact is not
looked for backwards: what is left in its vector are its derivations from facts that were not lost, so its first
non-zero level is where it may come back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel import dense_operators, maintain
from elastalog.backends.kernel.delta_pipeline import GAINS, LOSSES, DeltaPipeline, Phase
from elastalog.backends.kernel.entry_lists import EntryLists
from elastalog.backends.kernel.maintenance import MaintenancePlan
from elastalog.backends.kernel.marks import COUNT, DELTA, IS, LOST, MARKS, NEW, OTHER, PENDING, ROW
from elastalog.backends.kernel.memory import Matrix, Vector
from elastalog.backends.kernel.pipeline import Scratch, Sink
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.vectors import FAULTS, Vectors
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import LogicalStratum

_MOST_STEPS = 2
"""A derivation moves from one count to another."""


class DenseMaintenance:
    """An update of one stratum under way. `inputs` are the changed entries of the lower relations it reads, `deleted`
    and `inserted` the entries of its own explicit facts that go and come, `vectors` those of all relations."""

    def __init__(
        self,
        stratum: LogicalStratum,
        plan: MaintenancePlan,
        relations: Mapping[str, KernelRelation],
        inputs: Mapping[str, Vector],
        deleted: Mapping[str, Vector],
        inserted: Mapping[str, Vector],
        watch: Watch,
        scratch: Scratch,
        vectors: Mapping[str, Vectors],
    ) -> None:
        self.plan = plan
        self.relations = relations
        self.own = stratum.relations
        self.flat = plan.flat
        self.inputs = inputs
        self.deleted = deleted
        self.inserted = inserted
        self.watch = watch
        self.scratch = scratch
        self.vectors = vectors
        self.delta: dict[str, Vector] = {}
        self.lost: dict[str, list[Vector]] = {name: [] for name in self.own}
        self.waiting: dict[int, list[tuple[str, Vector]]] = {}
        self._lists = EntryLists(watch)
        self._ways = {name: int(maintain.ways(entries, relations[name].touched)) for name, entries in inputs.items()}
        self._is_marked = False

    def lose(self) -> None:
        """Takes away the old derivations through deleted facts and what changed below, and so on to the end."""
        self._change_explicit(self.deleted, -1)
        if not self.deleted and not self._concerns(LOSSES):
            return
        self._is_marked = True
        self.delta = {**self.inputs, **self.deleted}
        for name, entries in self.delta.items():
            maintain.mark(entries, self.relations[name].touched, DELTA, 0)
        while self.delta:
            self._propagate_losses()

    def _propagate_losses(self) -> None:
        """Takes the old derivations through the delta away; heads left without any become the next delta."""
        emptied = self._propagate(LOSSES)
        for name, entries in self.delta.items():
            if name in self.lost:
                maintain.lose(entries, self.relations[name].touched)
                if entries is not self.deleted.get(name):
                    self.lost[name].append(entries)
            else:
                maintain.mark(entries, self.relations[name].touched, LOST, DELTA)
        for name, entries in emptied.items():
            maintain.mark(entries, self.relations[name].touched, DELTA, 0)
        self.delta = emptied

    def recover(self) -> None:
        """Lost facts wait for the next level of their vectors."""
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

    def gain(self) -> None:
        """Offers the derivations through what came to their heads, which settle level by level."""
        while self.delta or self.waiting:
            if self.delta:
                self._propagate_gains()
            self._settle_next()

    def _propagate_gains(self) -> None:
        """Offers the derivations through the delta to their heads; the delta is then settled."""
        self._propagate(GAINS)
        for name, entries in self.delta.items():
            maintain.mark(entries, self.relations[name].touched, 0, DELTA)
        self.delta = {}
        self._collect_waiting()

    def _settle_next(self) -> None:
        """The facts that wait for the lowest level get it and become the delta."""
        while self.waiting:
            level = min(self.waiting)
            delta: dict[str, Vector] = {}
            for name, entries in self.waiting.pop(level):
                settled = np.empty(len(entries), np.int32)
                number = maintain.settle(entries, self.relations[name].touched, level, settled)
                if number:
                    known = delta.get(name)
                    delta[name] = settled[:number] if known is None else np.concatenate((known, settled[:number]))
            if delta:
                self.delta = delta
                return

    def end(self, is_level_change: bool) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        for name in self.own:
            relation, vectors = self.relations[name], self.vectors[name]
            touched = relation.touched[: relation.touched_used]
            present = np.flatnonzero(touched[:, MARKS] & IS)
            levels, counts = vectors.lowest(touched[present, ROW])
            if vectors.state[FAULTS] or (levels != touched[present, NEW]).any():
                raise InternalError("dense maintenance", f"the counts of `{name}` contradict its levels")
            touched[present, COUNT] = counts
        self.abandon()
        changed = {}
        for name in self.own:
            relation = self.relations[name]
            if relation.touched_used:
                entries = np.empty(relation.touched_used, np.int32)
                number = maintain.finish(relation.touched, relation.touched_used, is_level_change, entries)
                if number:
                    changed[name] = entries[:number]
        return changed

    def abandon(self) -> None:
        """Takes the marks of this stratum off the relations below it."""
        self._lists.keep()
        if self._is_marked:
            self._mark_inputs(0, DELTA | LOST)

    # --- within ----------------------------------------------------------------------------------------------------

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

    def _concerns(self, phase: Phase) -> bool:
        """Whether a version can start at some changed input: most changes go one way, and then half of the work is not
        there."""
        return any(
            self._starts(pipeline, name, phase) for name in self.inputs for pipeline in self.plan.forward.get(name, ())
        )

    def _starts(self, pipeline: DeltaPipeline, name: str, phase: Phase) -> bool:
        """Whether a version has something to start from in the delta of a relation."""
        wanted = 1 if phase.is_loss != pipeline.is_negated_start else 2
        return self._ways.get(name, 3) & wanted != 0

    def _mark_inputs(self, added: int, removed: int) -> None:
        for name, entries in self.inputs.items():
            maintain.mark(entries, self.relations[name].touched, added, removed)

    def _propagate(self, phase: Phase) -> dict[str, Vector]:
        """Runs every version that starts at a changed relation; returns what the sinks listed, by relation."""
        for name, entries in self.delta.items():
            for pipeline in self.plan.forward.get(name, ()):
                if self._starts(pipeline, name, phase):
                    self._run(pipeline, entries, phase)
        for name in self.own:
            self.relations[name].extend_indexes()
        return self._lists.take() if phase.is_loss else {}

    def _run(self, pipeline: DeltaPipeline, entries: Vector, phase: Phase) -> None:
        head = self.relations[pipeline.variant.clause.head]
        sink = self._loss_sink(head) if phase.is_loss else self._gain_sink(head)
        pipeline.run(self.relations, self.flat, entries, phase, self.scratch, sink)

    def _loss_sink(self, head: KernelRelation) -> Sink:
        vectors = self.vectors[head.name]

        def sink(block: Matrix, used: int) -> None:
            listed, state = self._lists.begin(head, used)
            vectors.reserve(head.used, used)
            dense_operators.apply_losses(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, vectors.first,
                vectors.nodes, vectors.log, vectors.state, listed, state,
            )  # fmt: skip
            self._lists.finish(used)

        return sink

    def _gain_sink(self, head: KernelRelation) -> Sink:
        vectors = self.vectors[head.name]

        def sink(block: Matrix, used: int) -> None:
            head.reserve(head.used + used)
            listed, state = self._lists.begin(head, used)
            vectors.reserve(head.used + used, _MOST_STEPS * used)
            dense_operators.apply_gains(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, vectors.first,
                vectors.nodes, vectors.log, vectors.state, listed, state,
            )  # fmt: skip
            self._lists.finish(used)

        return sink

    def _collect_waiting(self) -> None:
        """Files the entries that gained a better level under that level."""
        for name, entries in self._lists.take().items():
            levels = self.relations[name].touched[entries, OTHER]
            lowest = int(levels.min())
            if lowest == int(levels.max()):
                self.waiting.setdefault(lowest, []).append((name, entries))
                continue
            for level in np.unique(levels).tolist():
                self.waiting.setdefault(level, []).append((name, entries[levels == level]))
