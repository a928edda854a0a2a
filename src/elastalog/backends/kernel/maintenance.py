"""The delta-driven Update of one stratum, operation by operation (algorithm 4.4 in its counting form).

Losses go first, over the previous epoch: a derivation through a lost fact is taken off its head's count if it was
counted there, and a head whose count reaches 0 is lost in its turn. Counts only count derivations from lower levels, so
this never turns in a circle. Then every lost fact is looked for backwards, and gains settle in the order of their
levels. Each derivation through a changed fact is enumerated once a phase: at the delta that contains its last changed
fact, by the first goal that is in that delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elastalog.backends.kernel import maintain
from elastalog.backends.kernel.delta_pipeline import GAINS, LOSSES, DeltaPipeline, Phase
from elastalog.backends.kernel.marks import DELTA, IS, LOST, MARKS, NEW, OLD, OTHER, UNTOUCHED, WAS
from elastalog.backends.kernel.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.pipeline import Scratch
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.statistics import KernelStatistics
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import LogicalStratum, Test
from elastalog.planning.variants import plan_backward, plan_from_goal
from elastalog.relations.words import Dictionary


class MaintenancePlan:
    """The versions of a stratum's clauses that updates use: from every goal forwards, and from the head backwards.

    `recovering` are the backward versions for facts that lost all derivations of their level. With local levels a
    clause that is not recursive fires at level 1 only: if it still derived the fact, the fact would have level 1 and
    that derivation would be counted. So only recursive clauses can recover it. An explicit fact, whose derivations were
    never counted, needs all."""

    def __init__(
        self,
        stratum: LogicalStratum,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
        is_global: bool,
    ) -> None:
        statistics = KernelStatistics(relations)
        self.forward: dict[str, list[DeltaPipeline]] = {}
        self.backward: dict[str, list[DeltaPipeline]] = {}
        self.recovering: dict[str, list[DeltaPipeline]] = {}
        for clause in stratum.clauses:
            for position, goal in enumerate(clause.goals):
                if not isinstance(goal, Test):
                    variant = plan_from_goal(clause, position, statistics)
                    self.forward.setdefault(goal.relation, []).append(DeltaPipeline(variant, dictionary, source))
            pipeline = DeltaPipeline(plan_backward(clause, statistics), dictionary, source)
            self.backward.setdefault(clause.head, []).append(pipeline)
            if is_global or clause.is_recursive:
                self.recovering.setdefault(clause.head, []).append(pipeline)

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs, but for the rare deletion of an explicit fact that rules derive too."""
        for pipelines in (*self.forward.values(), *self.recovering.values()):
            for pipeline in pipelines:
                pipeline.prepare(relations)


class StratumMaintenance:
    """An update of one stratum under way. `inputs` are the changed entries of the lower relations it reads, `deleted`
    and
    `inserted` the entries of its own explicit facts that go and come."""

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
    ) -> None:
        self.plan = plan
        self.relations = relations
        self.own = stratum.relations
        self.flat = flat
        self.inputs = inputs
        self.deleted = deleted
        self.inserted = inserted
        self.watch = watch
        self.scratch = scratch
        self.delta: dict[str, Vector] = {}
        self.lost: dict[str, list[Vector]] = {name: [] for name in self.own}
        self.waiting: dict[int, list[tuple[str, Vector]]] = {}
        self._lists: dict[str, Vector] = {}
        self._listed: dict[str, int] = {}
        self._state: Vector = np.zeros(8, np.int64)
        self._ways = {name: _ways(relations[name], entries) for name, entries in inputs.items()}
        self._is_marked = False

    # --- losses ----------------------------------------------------------------------------------------------------

    def begin_losses(self) -> None:
        """The deleted explicit facts and the changes of lower relations become the delta."""
        if not self.deleted and not self._concerns(LOSSES):
            return
        self._is_marked = True
        self.delta = {**self._inputs_without_lowered(), **self.deleted}
        for name, entries in self.delta.items():
            maintain.mark(entries, self.relations[name].touched, DELTA, 0)

    def propagate_losses(self) -> bool:
        """Takes the old derivations through the delta away; heads left without any become the next delta."""
        if not self.delta:
            return False
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
        return bool(emptied)

    # --- gains -----------------------------------------------------------------------------------------------------

    def begin_gains(self) -> None:
        """Inserted explicit facts and the changes of lower relations become the delta of gains; lost facts are looked
        for backwards in what was there before that delta."""
        if not (self.inserted or self.deleted or any(self.lost.values()) or self._concerns(GAINS)):
            return
        self._is_marked = True
        self._mark_inputs(DELTA, LOST)
        for name, entries in self.inserted.items():
            maintain.make_explicit(entries, self.relations[name].touched)
        for name, entries in self.deleted.items():
            self._recover(name, entries, self.plan.backward.get(name, ()))
        for name, parts in self.lost.items():
            if parts:
                entries = parts[0] if len(parts) == 1 else np.concatenate(parts)
                self._recover(name, entries, self.plan.recovering.get(name, ()))
        self._collect_waiting()
        self.delta = {**self.inputs, **self.inserted}

    def propagate_gains(self) -> None:
        """Offers the derivations through the delta to their heads; the delta is then settled."""
        if not self.delta:
            return
        self._propagate(GAINS)
        for name, entries in self.delta.items():
            maintain.mark(entries, self.relations[name].touched, 0, DELTA)
        self.delta = {}
        self._collect_waiting()

    def settle_next(self) -> int | None:
        """The facts that wait for the lowest level get it and become the delta. None if none waits."""
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
                return level
        return None

    def end(self, is_level_change: bool) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
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
        if self._is_marked:
            self._mark_inputs(0, DELTA | LOST)

    def _recover(self, name: str, entries: Vector, pipelines: Sequence[DeltaPipeline]) -> None:
        """Looks for derivations of lost facts."""
        for pipeline in pipelines:
            self._run(pipeline, entries, GAINS)

    # --- within ----------------------------------------------------------------------------------------------------

    def _inputs_without_lowered(self) -> dict[str, Vector]:
        """A derivation through a fact that is only lower than before is not lost: it stays where it is counted, or its
        head is lowered too (both of which gains see to)."""
        kept = {}
        for name, entries in self.inputs.items():
            if name not in self.flat:
                touched = self.relations[name].touched[entries]
                stays = touched[:, MARKS] & UNTOUCHED == UNTOUCHED
                entries = entries[~(stays & (touched[:, NEW] < touched[:, OLD]))]
            if len(entries):
                kept[name] = entries
        return kept

    def _concerns(self, phase: Phase) -> bool:
        """Whether a version can start at some changed input: most changes go one way, and then half of the work is not
        there."""
        return any(
            self._starts(pipeline, name, phase) for name in self.inputs for pipeline in self.plan.forward.get(name, ())
        )

    def _starts(self, pipeline: DeltaPipeline, name: str, phase: Phase) -> bool:
        """Whether a version has something to start from in the delta of a relation."""
        ways = self._ways.get(name)
        if ways is None:
            return True
        loses, gains = ways
        return loses if phase.is_loss != pipeline.is_negated_start else gains

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
        return self._take_lists() if phase.is_loss else {}

    def _run(self, pipeline: DeltaPipeline, entries: Vector, phase: Phase) -> None:
        head = self.relations[pipeline.variant.clause.head]
        if phase.is_loss:
            sink = self._loss_sink(head)
        elif pipeline.gather.goal is None:
            sink = self._recovery_sink(head)
        else:
            sink = self._gain_sink(head)
        pipeline.run(self.relations, self.flat, entries, phase, self.scratch, sink)

    def _loss_sink(self, head: KernelRelation):  # type: ignore[no-untyped-def]
        def sink(block: Matrix, used: int) -> None:
            listed, state = self._begin(head, used)
            maintain.apply_losses(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, listed, state
            )
            self._finish(head, used)

        return sink

    def _gain_sink(self, head: KernelRelation):  # type: ignore[no-untyped-def]
        def sink(block: Matrix, used: int) -> None:
            head.reserve(head.used + used)
            listed, state = self._begin(head, used)
            maintain.apply_gains(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, listed, state
            )
            self._finish(head, used)

        return sink

    def _recovery_sink(self, head: KernelRelation):  # type: ignore[no-untyped-def]
        def sink(block: Matrix, used: int) -> None:
            listed, state = self._begin(head, used)
            maintain.apply_recoveries(block, used, head.touched, listed, state)
            self._finish(head, used)

        return sink

    def _begin(self, head: KernelRelation, used: int) -> tuple[Vector, Vector]:
        head.is_settled = False
        head.touched = maintain.room(head.touched, head.touched_used + used)
        listed = self._listed.get(head.name, 0)
        array = maintain.room(self._lists.get(head.name, _FIRST_LIST), listed + used)
        self._lists[head.name] = array
        state = self._state
        state[maintain.USED] = head.used
        state[maintain.TOUCHED] = head.touched_used
        state[maintain.LISTED] = listed
        return array, state

    def _finish(self, head: KernelRelation, used: int) -> None:
        state = self._state
        head.used = int(state[maintain.USED])
        head.touched_used = int(state[maintain.TOUCHED])
        self._listed[head.name] = int(state[maintain.LISTED])
        self.watch.derived(used)

    def _take_lists(self) -> dict[str, Vector]:
        lists = {name: self._lists[name][:listed].copy() for name, listed in self._listed.items() if listed}
        self._listed.clear()
        return lists

    def _collect_waiting(self) -> None:
        """Files the entries that gained a better level under that level."""
        for name, entries in self._take_lists().items():
            levels = self.relations[name].touched[entries, OTHER]
            lowest = int(levels.min())
            if lowest == int(levels.max()):
                self.waiting.setdefault(lowest, []).append((name, entries))
                continue
            for level in np.unique(levels).tolist():
                self.waiting.setdefault(level, []).append((name, entries[levels == level]))


def _ways(relation: KernelRelation, entries: Vector) -> tuple[bool, bool]:
    """Whether changes of a relation take something away (facts gone or raised), and whether they bring something."""
    marks = relation.touched[entries, MARKS] & UNTOUCHED
    stays = marks == UNTOUCHED
    is_moved = bool(stays.any())
    return is_moved or bool((marks == WAS).any()), is_moved or bool((marks == IS).any())


_FIRST_LIST: Vector = NO_WORDS
