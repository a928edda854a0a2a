"""Bootstrap of one stratum: semi-naive evaluation with counts, on fresh relations (algorithms 3 and 4.2).

Explicit facts are the first rows of each relation. Every iteration appends what it finds, so the rows of a relation are in order
of level, the delta of an iteration is a range of rows, and "facts before it" is a bound on row numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from elastalog.backends.kernel.memory import Matrix
from elastalog.backends.kernel.pipeline import Bounds, Pipeline, Scratch
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.statistics import KernelStatistics
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import LogicalStratum
from elastalog.planning.variants import plan_from_goal, plan_full
from elastalog.relations.words import Dictionary


@dataclass(frozen=True, slots=True)
class StratumPipelines:
    """The versions of a stratum's clauses: those that run once, and those that follow a delta."""

    once: tuple[Pipeline, ...]
    by_delta: tuple[Pipeline, ...]

    def __iter__(self) -> Iterator[Pipeline]:
        yield from self.once
        yield from self.by_delta


def plan_stratum(
    stratum: LogicalStratum, relations: Mapping[str, KernelRelation], dictionary: Dictionary, source: Source
) -> StratumPipelines:
    """Plans with the sizes that the relations below have now."""
    own = frozenset(stratum.relations)
    statistics = KernelStatistics(relations, own if stratum.is_recursive else frozenset())
    once: list[Pipeline] = []
    by_delta: list[Pipeline] = []
    for clause in stratum.clauses:
        if clause.is_recursive:
            variants = [plan_from_goal(clause, goal, statistics) for goal in clause.recursive_goals]
            by_delta.extend(Pipeline(variant, own, dictionary, source) for variant in variants)
        else:
            once.append(Pipeline(plan_full(clause, statistics), own, dictionary, source))
    return StratumPipelines(tuple(once), tuple(by_delta))


def evaluate(
    stratum: LogicalStratum,
    pipelines: StratumPipelines,
    relations: Mapping[str, KernelRelation],
    workers: Workers,
    watch: Watch,
) -> int:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint. Returns the number of iterations."""
    own = [relations[name] for name in stratum.relations]
    start = {relation.name: 0 for relation in own}
    stop = {relation.name: relation.used for relation in own}
    iteration = 1
    while True:
        bounds = Bounds(start, stop)
        if iteration == 1:
            for pipeline in pipelines.once:
                first = pipeline.gather.relation
                last = relations[first].used if first is not None else 1
                workers.run(pipeline, 0, last, bounds, stop)
        for pipeline in pipelines.by_delta:
            name = pipeline.gather.relation
            assert name is not None
            if start[name] < stop[name]:
                workers.run(pipeline, start[name], stop[name], bounds, stop)
        found = 0
        start = stop
        stop = {relation.name: relation.used for relation in own}
        for relation in own:
            new = slice(start[relation.name], relation.used)
            found += new.stop - new.start
            if relation.is_annotated:
                relation.level[new] = iteration
        watch.iteration(stratum.number, iteration, found)
        if not found:
            break
        if pipelines.by_delta:
            workers.extend_indexes(own)
        else:
            break
        iteration += 1
    for relation in own:
        relation.present = relation.used
    return iteration


class Workers:
    """Runs pipelines in this thread."""

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        self.relations = relations
        self.watch = watch
        self.scratch = Scratch()

    def run(self, pipeline: Pipeline, start: int, stop: int, bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs a pipeline over a range of start rows; what it derives goes into the head's relation."""
        head = self.relations[pipeline.variant.clause.head]
        counted_from = counted[head.name]
        watch = self.watch

        def insert(block: Matrix, used: int) -> None:
            head.insert(block, 0, used, counted_from)
            watch.derived(used)

        began = time.perf_counter()
        before = self.scratch.derivations
        pipeline.run(self.relations, start, stop, bounds, self.scratch, insert)
        pipeline.seconds += time.perf_counter() - began
        pipeline.derivations += self.scratch.derivations - before

    def extend_indexes(self, relations: list[KernelRelation]) -> None:
        """Adds the latest rows to the indexes."""
        for relation in relations:
            relation.extend_indexes()
