"""Bootstrap of a stratum with choice domains or subsumption: rounds of its own.

Choice domains take the candidates of a round in the order of their values.

What the rules give in a round is set aside. At its end the candidates of a relation with a choice domain are gone
through in ascending order, and one is taken if every one of its keys is still free; it is free as long as no fact of
the relation has the same values in the columns of the key. So the outcome depends on values alone. Facts that are
given hold whatever their keys, and take them.

Subsumption takes away, at the end of every round, the facts that another dominates (see `dominance`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elastalog.backends.kernel.bootstrap.dominance import Dominance, Leaving
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Scratch
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import LogicalStratum, StoredRelation
from elastalog.relations.value_order import order_of
from elastalog.relations.words import Dictionary


def evaluate_chosen(
    stratum: LogicalStratum,
    variants: StratumVariants,
    relations: Mapping[str, KernelRelation],
    stored: Mapping[str, StoredRelation],
    source: Source,
    watch: Watch,
    record: Leaving | None = None,
) -> None:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint. `record` is told of every
    fact that leaves."""
    own = [relations[name] for name in stratum.relations]
    choosers = {
        relation.name: _Chooser(stored[relation.name], relation, variants.dictionary)
        for relation in own
        if stored[relation.name].choices
    }
    dominance = Dominance(stratum, relations, stored, variants.dictionary, source, watch, record)
    start = {relation.name: 0 for relation in own}
    stop = {relation.name: relation.used for relation in own}
    iteration = 1
    while True:
        found = _candidates(variants, relations, own, Bounds(start, stop), iteration == 1, watch)
        came: dict[str, tuple[Matrix, Vector]] = {}
        for relation in own:
            rows, counts = dominance.new_ones(relation, found[relation.name])
            chooser = choosers.get(relation.name)
            if chooser is not None:
                taken = chooser.choose(rows)
                rows, counts = rows[taken], counts[taken]
            came[relation.name] = rows, counts
        came = dominance.settle(came, iteration)
        start = {relation.name: relation.used for relation in own}
        for relation in own:
            _append(relation, *came[relation.name], iteration)
            relation.extend_indexes()
        stop = {relation.name: relation.used for relation in own}
        new = sum(stop.values()) - sum(start.values())
        watch.iteration(stratum.number, iteration, new)
        watch.check()
        if not new or not variants.by_delta:
            break
        variants.adapt()
        iteration += 1
    dominance.finish()
    for relation in own:
        relation.present = relation.used
        relation.trim()


def _candidates(
    variants: StratumVariants,
    relations: Mapping[str, KernelRelation],
    own: Sequence[KernelRelation],
    bounds: Bounds,
    is_first: bool,
    watch: Watch,
) -> dict[str, KernelRelation]:
    """What the rules give in a round, each fact with the number of its derivations."""
    found = {relation.name: KernelRelation(relation.name, relation.width, is_annotated=True) for relation in own}
    scratch = Scratch()

    def run(variant: BoundVariant, first: int, last: int) -> None:
        head = found[variant.clause.head]

        def insert(block: Matrix, used: int) -> None:
            head.insert(block, 0, used, 0)
            watch.derived(used)

        before = scratch.derivations
        variant.run(relations, first, last, bounds, scratch, insert)
        variant.derivations += scratch.derivations - before

    if is_first:
        for variant in variants.once:
            name = variant.gather.relation
            run(variant, 0, 1 if name is None else relations[name].used)
    for variant in variants.by_delta:
        name = variant.gather.relation
        assert name is not None
        if bounds.start[name] < bounds.stop[name]:
            run(variant, bounds.start[name], bounds.stop[name])
    return found


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
        return order_of(row, self._bases, self._dictionary)
