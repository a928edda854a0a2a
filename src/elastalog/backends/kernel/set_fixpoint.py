"""Bootstrap of one stratum for the strategies that maintain sets: semi-naive evaluation that counts every derivation.

Semi-naive evaluation enumerates each derivation once: a non-recursive rule runs in the first iteration only, and a
derivation by a recursive rule belongs to the iteration after its latest body fact. So counting whatever is inserted,
also what is there already, gives C_nr and C_r."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel import rows as row_operators
from elastalog.backends.kernel.fixpoint import StratumPipelines
from elastalog.backends.kernel.memory import NO_WORDS, Matrix
from elastalog.backends.kernel.pipeline import Bounds, Scratch, Sink
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.set_operators import DERIVED, RECURSIVE
from elastalog.backends.sets import Support
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum


def evaluate_counted(
    stratum: LogicalStratum,
    pipelines: StratumPipelines,
    relations: Mapping[str, KernelRelation],
    support: Support,
    scratch: Scratch,
    watch: Watch,
) -> None:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint, with the annotations of
    `set_operators`."""
    own = [relations[name] for name in stratum.relations]
    explicit = {relation.name: relation.used for relation in own}
    start = {relation.name: 0 for relation in own}
    stop = dict(explicit)
    iteration = 1
    while True:
        bounds = Bounds(start, stop)
        if iteration == 1:
            for pipeline in pipelines.once:
                first = pipeline.gather.relation
                last = relations[first].used if first is not None else 1
                sink = _sink(relations[pipeline.variant.clause.head], False, support, watch)
                pipeline.run(relations, 0, last, bounds, scratch, sink)
        for pipeline in pipelines.by_delta:
            name = pipeline.gather.relation
            assert name is not None
            if start[name] < stop[name]:
                sink = _sink(relations[pipeline.variant.clause.head], True, support, watch)
                pipeline.run(relations, start[name], stop[name], bounds, scratch, sink)
        start = stop
        stop = {relation.name: relation.used for relation in own}
        found = sum(stop.values()) - sum(start.values())
        watch.iteration(stratum.number, iteration, found)
        if not found or not pipelines.by_delta:
            break
        for relation in own:
            relation.extend_indexes()
        iteration += 1
    for relation in own:
        # Until here `level` counted derivations by recursive rules.
        level = relation.level[: relation.used]
        level *= RECURSIVE
        level[explicit[relation.name] :] += DERIVED
        relation.present = relation.used


def _sink(head: KernelRelation, is_recursive: bool, support: Support, watch: Watch) -> Sink:
    """Inserts heads, counting derivations in `level` for recursive rules and in `count` for others, where that is
    kept."""
    is_kept = support is Support.EVERY or (support is Support.NONRECURSIVE and not is_recursive)

    state = np.zeros(8, np.int64)

    def insert(block: Matrix, used: int) -> None:
        done = 0
        while done < used:
            first = head.used
            counts = (head.level if is_recursive else head.count) if is_kept else NO_WORDS
            state[row_operators.USED] = first
            row_operators.insert(block, done, used, head.rows, head.table, head.shift, counts, 0, state)
            head.used = int(state[row_operators.USED])
            done = int(state[row_operators.NEXT])
            if not is_kept:
                head.level[first : head.used] = 0
                head.count[first : head.used] = 1 if support is Support.EXPLICIT else 0
            elif is_recursive:
                head.count[first : head.used] = 0
            else:
                head.level[first : head.used] = 0
            if done < used:
                head.reserve(max(head.used + 64, int(head.used * 1.5)))
        watch.derived(used)

    return insert
