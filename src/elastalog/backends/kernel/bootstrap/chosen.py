"""Bootstrap of a stratum with choice domains or subsumption.

What the rules give in a round is set aside. At its end the candidates of a relation with a choice domain are gone
through in ascending order, and one is taken if every one of its keys is still free; it is free as long as no fact of
the relation has the same values in the columns of the key. So the outcome depends on values alone. Facts that are
given hold whatever their keys, and take them.

Subsumption: the facts that a round brings are held aside, in relations of their own, while they are compared with each
other and with the present facts. Those that another dominates never enter, so that no rule joins them; of two
that dominate each other the lesser stays. Facts that are given stay, too. A fact that leaves is marked, and its row
dropped only when such rows are many, or when some rule would join it: a round then costs what its facts cost, however
large the relation is. Where subsumption is of the usual form (see `planning.ranked`), the best number of every key
is remembered, so that a new fact is looked up once instead of being compared with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from elastalog.analysis.program import Base
from elastalog.analysis.subsumptions import MARK
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate
from elastalog.backends.kernel.bootstrap.rounds import WorkersAside
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.memory import Matrix, Vector, longer
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.rows import are_in
from elastalog.backends.watch import Watch
from elastalog.planning.logical import Clause, LogicalStratum, Scan, StoredRelation
from elastalog.planning.ranked import Comparison, comparison_of
from elastalog.planning.variants import plan_from_goal
from elastalog.relations.words import Dictionary, order_of
from elastalog.settings import SETTINGS

_NEW = "+"
"""Ends the names of relations of facts that a round brings."""


class Dominance:
    """The facts of a stratum under evaluation that others dominate. `has_left` marks rows that still are there."""

    def __init__(
        self,
        stratum: LogicalStratum,
        binder: Binder,
        stored: Mapping[str, StoredRelation],
        watch: Watch,
        record: Leaving | None = None,
    ) -> None:
        relations, dictionary = binder.relations, binder.dictionary
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
        self._enumerators = [
            Enumerator(binder.bind(plan_from_goal(clause, goal, statistics)), carried=0)
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
        """The new facts that enter. Removes the facts that they dominate: rows may get new numbers."""
        entering = dict(new)
        for name, best in self._best.items():
            entering[name] = self._better(name, best, *new[name], level)
        if self._enumerators:
            entering |= self._compare(new, level)
        for name, (rows, _) in entering.items():
            self._drop_rows(self._relations[name], rows)
        return entering

    def _better(self, name: str, best: BestValues, rows: Matrix, counts: Vector, level: int) -> tuple[Matrix, Vector]:
        """The new facts that enter a relation in which each key has a best value."""
        relation = self._relations[name]
        enters, beaten = best.settle(rows)
        leaving = relation.find(beaten)
        leaving = leaving[leaving >= self._given[name]]
        if self._record is not None:
            facts = relation.rows[leaving]
            self._record.note(name, facts, relation.level[leaving], best.rivals(facts))
            facts = rows[~enters]
            self._record.note(name, facts, np.full(len(facts), level, np.int32), best.rivals(facts))
        self._left(name)[leaving] = True
        return rows[enters], counts[enters]

    def _compare(self, new: Mapping[str, tuple[Matrix, Vector]], level: int) -> dict[str, tuple[Matrix, Vector]]:
        """The new facts that enter relations whose subsumptions may be of any kind."""
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
            has_left = self._has_left[name] = longer(has_left, used + used // 2 + 64, fill=False)
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
        relation.compact(kept)

    def _pairs(self, fresh: Mapping[str, KernelRelation]) -> dict[str, Matrix]:
        """By relation: facts beside facts that dominate them, those that came in this round among them."""
        relations = {**self._relations, **fresh}
        found: dict[str, list[Matrix]] = {}
        setting = Setting(relations, frozenset(), Workspace(), self._watch)
        for enumerator in self._enumerators:
            start = enumerator.variant.gather.relation
            assert start is not None
            name = enumerator.variant.clause.head.removesuffix(MARK)
            width = self._relations[name].width

            def collect(block: Matrix, used: int, name: str = name, width: int = width) -> None:
                self._watch.derived(used)
                found.setdefault(name, []).append(block[:used, : 2 * width].copy())

            if relations[start].used:
                enumerator.of_rows(setting, (0, relations[start].used), collect)
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


class BestValues:
    """The best fact of every key of a relation under evaluation, which holds the facts that are given."""

    def __init__(self, relation: KernelRelation, comparison: Comparison, dictionary: Dictionary) -> None:
        self.comparison = comparison
        self._dictionary = dictionary
        self._keys = KernelRelation("", relation.width, is_annotated=False)
        self._best = np.empty(0, np.int64)
        keys, values = self._look_up(relation.rows[: relation.used])
        self._best[keys] = np.iinfo(np.int64).max
        np.minimum.at(self._best, keys, values)

    def values(self, facts: Matrix) -> np.ndarray:
        """What decides about facts: of two values the lesser is the better one."""
        values: np.ndarray = self._dictionary.integers(facts[:, self.comparison.column])
        return values if self.comparison.is_least else ~values

    def settle(self, facts: Matrix) -> tuple[np.ndarray, Matrix]:
        """Which of some new facts are now the best of their keys, and the facts that were."""
        known = self._keys.used
        keys, values = self._look_up(facts)
        order = np.lexsort((values, keys))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = keys[order[1:]] != keys[order[:-1]]
        firsts = order[is_first]
        firsts = np.sort(firsts[(keys[firsts] >= known) | (values[firsts] < self._best[keys[firsts]])])
        enters = np.zeros(len(facts), np.bool_)
        enters[firsts] = True
        beaten = self.rivals(facts[firsts[keys[firsts] < known]])
        self._best[keys[firsts]] = values[firsts]
        return enters, beaten

    def rivals(self, facts: Matrix) -> Matrix:
        """The best fact of the key of each fact."""
        keys, _ = self._look_up(facts)
        numbers = self._best[keys] if self.comparison.is_least else ~self._best[keys]
        found = np.array(facts, np.int32)
        found[:, self.comparison.column] = self._dictionary.from_integers(numbers)
        return found

    def _look_up(self, facts: Matrix) -> tuple[Vector, np.ndarray]:
        """The number of each fact's key, and its value."""
        column = self.comparison.column
        keys = np.array(facts, np.int32)
        keys[:, column] = 0
        self._keys.insert(keys, 0, len(keys), 0)
        if self._keys.used > len(self._best):
            self._best = longer(self._best, self._keys.used + self._keys.used // 2)
        return self._keys.find(keys), self.values(facts)


def evaluate_chosen(
    stratum: LogicalStratum,
    variants: StratumVariants,
    stored: Mapping[str, StoredRelation],
    watch: Watch,
    record: Leaving | None = None,
) -> None:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint. `record` is told of every
    fact that leaves."""
    relations, dictionary = variants.binder.relations, variants.binder.dictionary
    dominance = Dominance(stratum, variants.binder, stored, watch, record)
    own = [relations[name] for name in stratum.relations]
    choosers = {
        relation.name: _Chooser(stored[relation.name], relation, dictionary)
        for relation in own
        if stored[relation.name].choices
    }
    evaluate(stratum, variants, _ChoosingWorkers(own, relations, watch, dominance, choosers))


class _ChoosingWorkers(WorkersAside):
    """Of what the rules give in a round some facts enter."""

    def __init__(
        self,
        own: Sequence[KernelRelation],
        relations: Mapping[str, KernelRelation],
        watch: Watch,
        dominance: Dominance,
        choosers: Mapping[str, _Chooser],
    ) -> None:
        super().__init__(own, relations, watch)
        self._dominance = dominance
        self._choosers = choosers

    def settle(self, iteration: int) -> Mapping[str, int]:
        """Enters those of the facts found that are chosen and that no other dominates."""
        first = self.before
        if iteration:
            came: dict[str, tuple[Matrix, Vector]] = {}
            for relation in self.own:
                rows, counts = self._dominance.new_ones(relation, self.found[relation.name])
                chooser = self._choosers.get(relation.name)
                if chooser is not None:
                    taken = chooser.choose(rows)
                    rows, counts = rows[taken], counts[taken]
                came[relation.name] = rows, counts
            came = self._dominance.settle(came, iteration)
            first = {relation.name: relation.used for relation in self.own}
            for relation in self.own:
                rows, counts = came[relation.name]
                relation.insert(np.ascontiguousarray(rows), 0, len(rows), relation.used)
                if relation.is_annotated:
                    relation.count[first[relation.name] : relation.used] = counts
            self.watch.check()
        self.clear()
        return first

    def finish(self) -> None:
        self._dominance.finish()


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
