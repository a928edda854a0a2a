"""Subsumption: which of the facts of a round stay out, and which of those before it leave.

The facts that a round brings are held aside, in relations of their own, while they are compared with each other and
with the facts that are there. Those that another dominates never enter, so that no rule joins them; of two that
dominate each other the lesser stays. Facts that are given stay, too.

A fact that leaves is marked, and its row dropped only when such rows are many, or when some rule would join it: a round
then costs what its facts cost, however large the relation is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from elastalog.analysis.program import Base
from elastalog.analysis.subsumptions import MARK
from elastalog.backends.kernel.bootstrap.best_values import BestValues
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Scratch
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.rows import are_in
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Clause, LogicalStratum, Scan, StoredRelation
from elastalog.planning.ranked import comparison_of
from elastalog.planning.variants import plan_from_goal
from elastalog.relations.value_order import order_of
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

_NEW = "+"
"""Ends the names of relations of facts that a round brings."""


class Dominance:
    """The facts of a stratum under evaluation that others dominate. `has_left` marks rows that still are there."""

    def __init__(
        self,
        stratum: LogicalStratum,
        relations: Mapping[str, KernelRelation],
        stored: Mapping[str, StoredRelation],
        dictionary: Dictionary,
        source: Source,
        watch: Watch,
        record: Leaving | None = None,
    ) -> None:
        self._record = record
        self._relations = relations
        self._stored = stored
        self._dictionary = dictionary
        self._watch = watch
        self._given = {name: relations[name].used for name in stratum.relations}
        self._has_left = {name: np.zeros(relations[name].used, np.bool_) for name in stratum.relations}
        self._is_joined = _reads_what_was_there(stratum)
        compared = {clause.head: comparison_of(clause) for clause in stratum.dominance}
        for clause in stratum.dominance:
            if sum(other.head == clause.head for other in stratum.dominance) > 1:
                compared[clause.head] = None
        self._best = {
            head.removesuffix(MARK): BestValues(relations[head.removesuffix(MARK)], comparison, dictionary)
            for head, comparison in compared.items()
            if comparison is not None
        }
        statistics = KernelStatistics({**relations, **{name + _NEW: relations[name] for name in stratum.relations}})
        self._variants = [
            BoundVariant(plan_from_goal(clause, goal, statistics), frozenset(), dictionary, source)
            for whole in stratum.dominance
            if whole.head.removesuffix(MARK) not in self._best
            for clause, goal in _readings(whole)
        ]

    def new_ones(self, relation: KernelRelation, found: KernelRelation) -> tuple[Matrix, Vector]:
        """The facts of a round that are not there, with the numbers of their derivations."""
        facts = found.rows[: found.used]
        rows = relation.find(facts)
        is_new = (rows < 0) | self._left(relation.name)[rows]
        return facts[is_new], found.count[: found.used][is_new]

    def settle(self, new: Mapping[str, tuple[Matrix, Vector]], level: int) -> dict[str, tuple[Matrix, Vector]]:
        """Of the new facts those that enter. Takes the facts away that they dominate: rows may get new numbers."""
        entering = dict(new)
        for name, best in self._best.items():
            entering[name] = self._better(name, best, *new[name], level)
        if self._variants:
            entering |= self._compare(new, level)
        for name, (rows, _) in entering.items():
            self._drop_rows(self._relations[name], rows)
        for name, best in self._best.items():
            best.enter(entering[name][0], self._relations[name].used)
        return entering

    def _better(self, name: str, best: BestValues, rows: Matrix, counts: Vector, level: int) -> tuple[Matrix, Vector]:
        """Of the new facts of a relation in which each key has a best value those that enter."""
        relation = self._relations[name]
        enters, leaving = best.settle(rows)
        if self._record is not None:
            facts = relation.rows[leaving]
            self._record.note(name, facts, relation.level[leaving], best.rivals(facts))
            facts = rows[~enters]
            self._record.note(name, facts, np.full(len(facts), level, np.int32), best.rivals(facts))
        self._left(name)[leaving] = True
        return rows[enters], counts[enters]

    def _compare(self, new: Mapping[str, tuple[Matrix, Vector]], level: int) -> dict[str, tuple[Matrix, Vector]]:
        """Of the new facts of relations that may have any subsumption those that enter."""
        fresh = {name + _NEW: _relation_of(name, rows) for name, (rows, _) in new.items()}
        entering: dict[str, tuple[Matrix, Vector]] = {}
        for name, pairs in self._pairs(fresh).items():
            relation, came = self._relations[name], fresh[name + _NEW]
            pairs = self._valid(self._present(relation, came, pairs), relation.width, self._stored[name].bases)
            dominated, by = (np.ascontiguousarray(side) for side in np.split(pairs, 2, axis=1))
            there, new_rows = relation.find(dominated), came.find(dominated)
            is_leaving = (there >= self._given[name]) & (new_rows < 0)
            if self._record is not None:
                self._record.note(name, dominated[is_leaving], relation.level[there[is_leaving]], by[is_leaving])
                is_kept_out = new_rows >= 0
                levels = np.full(int(is_kept_out.sum()), level, np.int32)
                self._record.note(name, dominated[is_kept_out], levels, by[is_kept_out])
            self._left(name)[there[is_leaving]] = True
            enters = np.ones(came.used, np.bool_)
            enters[new_rows[new_rows >= 0]] = False
            rows, counts = new[name]
            entering[name] = rows[enters], counts[enters]
        return entering

    def finish(self) -> None:
        """Drops the rows of all that has left."""
        for name, has_left in self._has_left.items():
            if has_left.any():
                self._compact(self._relations[name])

    def _left(self, name: str) -> np.ndarray:
        """Which rows are of facts that have left. There is always one row more, so that -1 means none of them."""
        has_left, used = self._has_left[name], self._relations[name].used
        if len(has_left) <= used:
            longer = np.zeros(used + used // 2 + 64, np.bool_)
            longer[: len(has_left)] = has_left
            has_left = self._has_left[name] = longer
        return has_left

    def _drop_rows(self, relation: KernelRelation, entering: Matrix) -> None:
        """Drops rows of facts that have left if they are many, if a rule would join them, or if such a fact is back."""
        has_left = self._left(relation.name)
        number = int(np.count_nonzero(has_left))
        is_sparse = 2 * number > relation.used + SETTINGS.dominated_kept
        if number and (self._is_joined or is_sparse or (relation.find(entering) >= 0).any()):
            self._compact(relation)

    def _compact(self, relation: KernelRelation) -> None:
        kept = np.flatnonzero(~self._left(relation.name)[: relation.used])
        self._has_left[relation.name] = np.zeros(len(kept), np.bool_)
        if (best := self._best.get(relation.name)) is not None:
            best.renumber(kept, relation.used)
        relation.rows[: len(kept)] = relation.rows[kept]
        if relation.is_annotated:
            relation.level[: len(kept)] = relation.level[kept]
            relation.count[: len(kept)] = relation.count[kept]
        relation.used = len(kept)
        relation.keep_indexes()
        relation.reset_table()

    def _pairs(self, fresh: Mapping[str, KernelRelation]) -> dict[str, Matrix]:
        """By relation: facts beside facts that dominate them, those that came in this round among them."""
        relations = {**self._relations, **fresh}
        found: dict[str, list[Matrix]] = {}
        scratch = Scratch(self._watch)
        for variant in self._variants:
            start = variant.gather.relation
            assert start is not None
            name = variant.clause.head.removesuffix(MARK)
            width = self._relations[name].width

            def collect(block: Matrix, used: int, name: str = name, width: int = width) -> None:
                found.setdefault(name, []).append(block[:used, : 2 * width].copy())

            if relations[start].used:
                variant.run(relations, 0, relations[start].used, Bounds({}, {}), scratch, collect)
        self._watch.derived(scratch.derivations)
        return {name: np.concatenate(blocks) for name, blocks in found.items()}

    def _present(self, relation: KernelRelation, came: KernelRelation, pairs: Matrix) -> Matrix:
        """Without what has left."""
        has_left = self._left(relation.name)
        if not has_left.any():
            return pairs
        is_present = np.ones(len(pairs), np.bool_)
        for side in np.split(pairs, 2, axis=1):
            facts = np.ascontiguousarray(side)
            rows = relation.find(facts)
            is_present &= ((rows >= 0) & ~has_left[rows]) | (came.find(facts) >= 0)
        return pairs[is_present]

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

    def note(self, name: str, facts: Matrix, levels: Vector, dominating: Matrix) -> None:
        """Some facts leave, dominated by others."""
        known = self.facts.setdefault(name, {})
        for fact, level, by in zip(facts.tolist(), levels.tolist(), dominating.tolist(), strict=True):
            known.setdefault(tuple(fact), (level, tuple(by)))


def _readings(clause: Clause) -> Iterator[tuple[Clause, int]]:
    """A clause in all its readings that see a new fact, each with a goal that does: what a goal of the stratum's own
    reads are the facts that were there, or those that came."""
    for chosen in product((False, True), repeat=len(clause.recursive_goals)):
        goals = list(clause.goals)
        new = [goal for goal, is_new in zip(clause.recursive_goals, chosen, strict=True) if is_new]
        for goal in new:
            scan = goals[goal]
            assert isinstance(scan, Scan)
            goals[goal] = replace(scan, relation=scan.relation + _NEW)
        if new:
            yield replace(clause, goals=tuple(goals), recursive_goals=()), new[0]


def _reads_what_was_there(stratum: LogicalStratum) -> bool:
    """Whether a rule joins facts of the stratum that earlier rounds brought, so that those that have left are in the
    way. What subsumption itself compares is looked at afterwards."""
    if any(len(clause.recursive_goals) > 1 for clause in stratum.clauses):
        return True
    scans = ((clause, clause.goals[goal]) for clause in stratum.dominance for goal in clause.recursive_goals)
    return any(isinstance(scan, Scan) and scan.relation + MARK != clause.head for clause, scan in scans)


def _relation_of(name: str, rows: Matrix) -> KernelRelation:
    relation = KernelRelation(name + _NEW, rows.shape[1], is_annotated=False)
    relation.insert(np.ascontiguousarray(rows), 0, len(rows), 0)
    return relation
