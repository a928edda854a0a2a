"""Bootstrap with global levels: the level of a fact is the height of its lowest proof, across strata (algorithm 4.6).

Three ways, from cheap to dear:
- the relations read below have one level each: every clause then fires at one level, and clauses run in the order of
  theirs;
- no recursion: one pass over all derivations, each head keeping its lowest level and how many derivations attain it;
- recursion: levels in order, where facts of lower relations enter the delta at their own level.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel import maintain
from elastalog.backends.kernel.delta_pipeline import DeltaPipeline
from elastalog.backends.kernel.fixpoint import StratumPipelines, Workers, evaluate
from elastalog.backends.kernel.levels import levels_now, note_levels
from elastalog.backends.kernel.marks import ABSENT
from elastalog.backends.kernel.memory import Matrix, Vector
from elastalog.backends.kernel.pipeline import Bounds, Pipeline, Scratch
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.statistics import KernelStatistics
from elastalog.backends.watch import Watch
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum, Scan
from elastalog.planning.variants import plan_from_goal, plan_full
from elastalog.relations.words import Dictionary


class HeightEvaluation:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint with global levels."""

    def __init__(
        self,
        stratum: LogicalStratum,
        program: LogicalProgram,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        workers: Workers,
        watch: Watch,
    ) -> None:
        self.stratum = stratum
        self.relations = relations
        self.dictionary = dictionary
        self.source = program.checked.source
        self.flat = program.flat
        self.workers = workers
        self.watch = watch
        self.names = frozenset(stratum.relations)
        self.own = [relations[name] for name in stratum.relations]

    def run(self) -> None:
        """Chooses the way and goes it."""
        if self.stratum.is_recursive:
            self._by_level()
        else:
            fires = [self._uniform_level(clause) for clause in self.stratum.clauses]
            if all(level is not None for level in fires):
                self._by_clause([level or 0 for level in fires])
            else:
                self._one_pass()
        for relation in self.own:
            relation.present = relation.used
            note_levels(relation)

    def _uniform_level(self, clause: Clause) -> int | None:
        """The level at which all derivations of a clause fire, None if it depends on the derivation."""
        highest = 0
        for scan in clause.scans:
            relation = self.relations[scan.relation]
            if scan.relation in self.flat:
                continue
            if not relation.is_settled or relation.lowest != relation.highest:
                return None
            highest = max(highest, relation.highest)
        return highest + 1

    def _by_clause(self, fires: list[int]) -> None:
        statistics = KernelStatistics(self.relations)
        for level in sorted(set(fires)):
            before = {relation.name: relation.used for relation in self.own}
            for clause, fires_at in zip(self.stratum.clauses, fires, strict=True):
                if fires_at == level:
                    pipeline = Pipeline(plan_full(clause, statistics), self.names, self.dictionary, self.source)
                    name = pipeline.gather.relation
                    stop = 1 if name is None else self.relations[name].used
                    self.workers.run(pipeline, 0, stop, Bounds(before, before), before)
            for relation in self.own:
                relation.level[before[relation.name] : relation.used] = level
            self.watch.iteration(self.stratum.number, level, sum(r.used - before[r.name] for r in self.own))

    def _one_pass(self) -> None:
        statistics = KernelStatistics(self.relations)
        scratch = Scratch()
        state: Vector = np.zeros(4, np.int64)
        for clause in self.stratum.clauses:
            head = self.relations[clause.head]

            def sink(block: Matrix, used: int, head: KernelRelation = head) -> None:
                head.reserve(head.used + used)
                state[maintain.USED] = head.used
                maintain.insert_lowest(block, used, head.rows, head.table, head.shift, head.level, head.count, state)
                head.used = int(state[maintain.USED])
                self.watch.derived(used)

            pipeline = DeltaPipeline(plan_full(clause, statistics), self.dictionary, self.source)
            pipeline.run_all(self.relations, self.flat, scratch, sink)
        self.watch.iteration(self.stratum.number, 1, sum(relation.used for relation in self.own))

    def _by_level(self) -> None:
        lower = [self.relations[name] for name in self.stratum.reads]
        if all(relation.is_settled and relation.highest == 0 for relation in lower):
            # Everything below is at level 0: iterations are heights.
            pipelines = StratumPipelines(self.stratum, self.relations, self.dictionary, self.source)
            evaluate(self.stratum, pipelines, self.relations, self.workers, self.watch)
            return
        entries = {relation.name: RowsByLevel(relation) for relation in lower}
        top = max((rows.highest for rows in entries.values()), default=0)
        recursive = StratumPipelines(self.stratum, self.relations, self.dictionary, self.source)
        entering = self._plan_entering()
        planned = 0
        start = {relation.name: 0 for relation in self.own}
        stop = {relation.name: relation.used for relation in self.own}
        level = 0
        while True:
            bounds = Bounds(start, stop, level)
            for pipeline in entering:
                self._enter(pipeline, entries, bounds)
            for pipeline in recursive.by_delta:
                name = pipeline.gather.relation
                assert name is not None
                if start[name] < stop[name]:
                    self.workers.run(pipeline, start[name], stop[name], bounds, stop)
            level += 1
            start = stop
            stop = {relation.name: relation.used for relation in self.own}
            found = 0
            for relation in self.own:
                relation.level[start[relation.name] : relation.used] = level
                found += relation.used - start[relation.name]
            self.watch.iteration(self.stratum.number, level, found)
            if not found and level > top:
                return
            recursive.adapt()
            if sum(stop.values()) > 4 * planned + 1000 and level <= top:
                planned = sum(stop.values())
                entering = self._plan_entering()
            self.workers.extend_indexes(self.own)

    def _plan_entering(self) -> list[Pipeline]:
        """The versions whose delta is a lower relation, or nothing, planned with the sizes of now."""
        statistics = KernelStatistics(self.relations)
        variants = []
        for clause in self.stratum.clauses:
            if not clause.scans:
                variants.append(plan_full(clause, statistics))
            for position, goal in enumerate(clause.goals):
                if isinstance(goal, Scan) and goal.relation not in self.names:
                    variants.append(plan_from_goal(clause, position, statistics))
        return [Pipeline(variant, self.names, self.dictionary, self.source) for variant in variants]

    def _enter(self, pipeline: Pipeline, entries: Mapping[str, RowsByLevel], bounds: Bounds) -> None:
        """Follows the facts of a lower relation that have the present level."""
        assert bounds.level is not None
        clause, name = pipeline.variant.clause, pipeline.gather.relation
        if any(bounds.stop.get(scan.relation, 1) == 0 for scan in clause.scans):
            return
        if name is None:
            if bounds.level == 0:
                self.workers.run(pipeline, 0, 1, bounds, bounds.stop)
            return
        rows = entries[name].at(bounds.level)
        if len(rows):
            self.workers.run_rows(pipeline, rows, bounds, bounds.stop)


class RowsByLevel:
    """The present rows of a relation, by level."""

    def __init__(self, relation: KernelRelation) -> None:
        levels = levels_now(relation, slice(0, relation.used))
        self._order = np.argsort(levels, kind="stable").astype(np.int32)
        self._levels, starts = np.unique(levels[self._order], return_index=True)
        self._starts = dict(zip(self._levels.tolist(), starts.tolist(), strict=True))
        ends = np.append(starts[1:], len(levels))[: len(starts)]  # none for an empty relation
        self._ends = dict(zip(self._levels.tolist(), ends.tolist(), strict=True))
        present = self._levels[self._levels < ABSENT]
        self.highest = int(present.max()) if len(present) else 0

    def at(self, level: int) -> Vector:
        """The rows of one level."""
        start = self._starts.get(level)
        return self._order[:0] if start is None else self._order[start : self._ends[level]]
