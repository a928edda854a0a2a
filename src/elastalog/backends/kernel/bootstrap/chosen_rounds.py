"""Bootstrap of a stratum with choice domains: rounds whose candidates are taken in the order of their values.

What the rules give in a round is set aside. At its end the candidates of a relation with a choice domain are gone
through in ascending order, and one is taken if every one of its keys is still free; it is free as long as no fact of
the relation has the same values in the columns of the key. So the outcome depends on values alone. Facts that are
given hold whatever their keys, and take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elastalog.analysis.values import sort_key
from elastalog.backends.kernel.bootstrap.fixpoint import StratumPipelines
from elastalog.backends.kernel.execution.bound_variant import Bounds, Pipeline, Scratch
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum, StoredRelation
from elastalog.relations.words import Dictionary


def evaluate_chosen(
    stratum: LogicalStratum,
    pipelines: StratumPipelines,
    relations: Mapping[str, KernelRelation],
    stored: Mapping[str, StoredRelation],
    watch: Watch,
) -> None:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint."""
    own = [relations[name] for name in stratum.relations]
    choosers = {
        relation.name: _Chooser(stored[relation.name], relation, pipelines.dictionary)
        for relation in own
        if stored[relation.name].choices
    }
    start = {relation.name: 0 for relation in own}
    stop = {relation.name: relation.used for relation in own}
    iteration = 1
    while True:
        found = _candidates(pipelines, relations, own, Bounds(start, stop), iteration == 1, watch)
        start = stop
        for relation in own:
            rows, counts = _new_ones(relation, found[relation.name])
            chooser = choosers.get(relation.name)
            if chooser is not None:
                taken = chooser.choose(rows)
                rows, counts = rows[taken], counts[taken]
            _append(relation, rows, counts, iteration)
            relation.extend_indexes()
        stop = {relation.name: relation.used for relation in own}
        new = sum(stop.values()) - sum(start.values())
        watch.iteration(stratum.number, iteration, new)
        watch.check()
        if not new or not pipelines.by_delta:
            break
        pipelines.adapt()
        iteration += 1
    for relation in own:
        relation.present = relation.used
        relation.trim()


def _candidates(
    pipelines: StratumPipelines,
    relations: Mapping[str, KernelRelation],
    own: Sequence[KernelRelation],
    bounds: Bounds,
    is_first: bool,
    watch: Watch,
) -> dict[str, KernelRelation]:
    """What the rules give in a round, each fact with the number of its derivations."""
    found = {relation.name: KernelRelation(relation.name, relation.width, is_annotated=True) for relation in own}
    scratch = Scratch()

    def run(pipeline: Pipeline, first: int, last: int) -> None:
        head = found[pipeline.variant.clause.head]

        def insert(block: Matrix, used: int) -> None:
            head.insert(block, 0, used, 0)
            watch.derived(used)

        before = scratch.derivations
        pipeline.run(relations, first, last, bounds, scratch, insert)
        pipeline.derivations += scratch.derivations - before

    if is_first:
        for pipeline in pipelines.once:
            name = pipeline.gather.relation
            run(pipeline, 0, 1 if name is None else relations[name].used)
    for pipeline in pipelines.by_delta:
        name = pipeline.gather.relation
        assert name is not None
        if bounds.start[name] < bounds.stop[name]:
            run(pipeline, bounds.start[name], bounds.stop[name])
    return found


def _new_ones(relation: KernelRelation, found: KernelRelation) -> tuple[Matrix, Vector]:
    rows = found.rows[: found.used]
    is_new = relation.find(rows) < 0
    return rows[is_new], found.count[: found.used][is_new]


def _append(relation: KernelRelation, rows: Matrix, counts: Vector, level: int) -> None:
    first = relation.used
    relation.insert(np.ascontiguousarray(rows), 0, len(rows), first)
    if relation.is_annotated:
        relation.level[first : relation.used] = level
        relation.count[first : relation.used] = counts


class _Chooser:
    """The keys of one relation that are taken."""

    def __init__(self, stored: StoredRelation, relation: KernelRelation, dictionary: Dictionary) -> None:
        self._bases = stored.bases
        self._keys = stored.choices
        self._dictionary = dictionary
        self._taken: list[set[tuple[int, ...]]] = [set() for _ in self._keys]
        for row in relation.rows[: relation.used].tolist():
            for key, taken in zip(self._keys, self._taken, strict=True):
                taken.add(tuple(row[column] for column in key))

    def choose(self, rows: Matrix) -> list[int]:
        """The positions of the candidates that are taken, in ascending order of their values."""
        listed = rows.tolist()
        chosen: list[int] = []
        for position in sorted(range(len(listed)), key=lambda i: self._order(listed[i])):
            keys = [tuple(listed[position][column] for column in key) for key in self._keys]
            if not any(key in taken for key, taken in zip(keys, self._taken, strict=True)):
                chosen.append(position)
                for key, taken in zip(keys, self._taken, strict=True):
                    taken.add(key)
        return chosen

    def _order(self, row: Sequence[int]) -> tuple[Any, ...]:
        values = (self._dictionary.decode_value(base, word) for base, word in zip(self._bases, row, strict=True))
        # Texts by their UTF-8 bytes, which is the order of their characters; NaN, which has no order, first.
        return tuple((value == value, sort_key(value) if value == value else 0) for value in values)
