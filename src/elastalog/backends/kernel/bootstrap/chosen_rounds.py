"""Bootstrap of a stratum with choice domains or subsumption: rounds of its own.

Choice domains take the candidates of a round in the order of their values.

What the rules give in a round is set aside. At its end the candidates of a relation with a choice domain are gone
through in ascending order, and one is taken if every one of its keys is still free; it is free as long as no fact of
the relation has the same values in the columns of the key. So the outcome depends on values alone. Facts that are
given hold whatever their keys, and take them.

Subsumption takes away, at the end of every round, the facts that another dominates; of two that dominate each other
the lesser stays. Facts that are given stay, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elastalog.analysis.program import Base
from elastalog.analysis.subsumptions import MARK
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Scratch
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.rows import are_in
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import LogicalStratum, StoredRelation
from elastalog.planning.variants import plan_from_goal
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
    dominance = Dominance(stratum, relations, variants.dictionary, source, watch, record)
    start = {relation.name: 0 for relation in own}
    stop = {relation.name: relation.used for relation in own}
    iteration = 1
    while True:
        found = _candidates(variants, relations, own, Bounds(start, stop), iteration == 1, watch)
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
        start, stop = dominance.prune(start, stop, stored)
        new = sum(stop.values()) - sum(start.values())
        watch.iteration(stratum.number, iteration, new)
        watch.check()
        if not new or not variants.by_delta:
            break
        variants.adapt()
        iteration += 1
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
    scratch = Scratch(watch)

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


class Dominance:
    """The facts of a stratum that others dominate."""

    def __init__(
        self,
        stratum: LogicalStratum,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
        watch: Watch,
        record: Leaving | None = None,
    ) -> None:
        self._record = record
        self._relations = relations
        self._dictionary = dictionary
        self._watch = watch
        self._given = {name: relations[name].used for name in stratum.relations}
        own = frozenset(stratum.relations)
        statistics = KernelStatistics(relations)
        self._variants = [
            BoundVariant(plan_from_goal(clause, goal, statistics), own, dictionary, source)
            for clause in stratum.dominance
            for goal in clause.recursive_goals
        ]

    def prune(
        self, start: Mapping[str, int], stop: Mapping[str, int], stored: Mapping[str, StoredRelation]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Takes the dominated facts away; gives the first new row of every relation, and the end, as they are then."""
        first, last = dict(start), dict(stop)
        for name, pairs in self._pairs(Bounds(start, stop)).items():
            relation = self._relations[name]
            pairs = self._valid(pairs, relation.width, stored[name].bases)
            rows = relation.find(np.ascontiguousarray(pairs[:, : relation.width]))
            is_kept = np.ones(relation.used, np.bool_)
            is_kept[rows] = False
            is_kept[: self._given[name]] = True
            kept = np.flatnonzero(is_kept)
            if len(kept) < relation.used:
                if self._record is not None:
                    is_leaving = ~is_kept[rows]
                    self._record.note(relation, rows[is_leaving], pairs[is_leaving, relation.width :])
                _keep(relation, kept)
                first[name] = int(np.searchsorted(kept, start[name]))
                last[name] = len(kept)
        return first, last

    def _pairs(self, bounds: Bounds) -> dict[str, Matrix]:
        """By relation: facts beside facts that dominate them, those that came in this round among them."""
        found: dict[str, list[Matrix]] = {}
        scratch = Scratch(self._watch)
        for variant in self._variants:
            name = variant.gather.relation
            assert name is not None
            width = self._relations[name].width
            pairs = found.setdefault(variant.clause.head.removesuffix(MARK), [])

            def collect(block: Matrix, used: int, width: int = width, pairs: list[Matrix] = pairs) -> None:
                pairs.append(block[:used, : 2 * width].copy())

            if bounds.start[name] < bounds.stop[name]:
                variant.run(self._relations, bounds.start[name], bounds.stop[name], bounds, scratch, collect)
        self._watch.derived(scratch.derivations)
        return {name: np.concatenate(blocks) for name, blocks in found.items() if blocks}

    def _valid(self, pairs: Matrix, width: int, bases: tuple[Base, ...]) -> Matrix:
        """Without facts beside themselves, and of two that dominate each other without the lesser as dominated."""
        pairs = pairs[(pairs[:, :width] != pairs[:, width:]).any(axis=1)]
        swapped = np.concatenate((pairs[:, width:], pairs[:, :width]), axis=1)
        is_spared = np.zeros(len(pairs), np.bool_)
        for place in np.flatnonzero(are_in(swapped, pairs)).tolist():
            one, other = (order_of(side.tolist(), bases, self._dictionary) for side in np.split(pairs[place], 2))
            is_spared[place] = one < other
        return pairs[~is_spared]


class Leaving:
    """The facts that have left a stratum under evaluation, each as it was when it first left, with one that dominated
    it."""

    def __init__(self) -> None:
        self.facts: dict[str, dict[tuple[int, ...], tuple[int, tuple[int, ...]]]] = {}

    def note(self, relation: KernelRelation, rows: Vector, dominating: Matrix) -> None:
        """Some rows leave, dominated by facts."""
        known = self.facts.setdefault(relation.name, {})
        levels = relation.level[rows].tolist()
        words = relation.rows[rows].tolist()
        for row, level, by in zip(words, levels, dominating.tolist(), strict=True):
            known.setdefault(tuple(row), (level, tuple(by)))


def _keep(relation: KernelRelation, kept: Vector) -> None:
    """Drops all other rows of a relation under evaluation; rows get new numbers."""
    relation.rows[: len(kept)] = relation.rows[kept]
    if relation.is_annotated:
        relation.level[: len(kept)] = relation.level[kept]
        relation.count[: len(kept)] = relation.count[kept]
    relation.used = len(kept)
    relation.indexes.clear()
    relation.reset_table()


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
