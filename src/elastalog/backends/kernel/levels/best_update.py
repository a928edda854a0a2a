"""The update of a stratum in which subsumption keeps the best fact of every key: shortest paths and the like.

For strata where all that is left follows from what is left (`best_of_key.rests_on_the_best`), so that

    a fact that none of its derivations has lost is still there, and still the best of its key;
    what a better fact gives is better than what the other gave, and takes its place.

Whatever is derived from what goes is deleted first, to its end. Then the keys that are left without their best are
looked for in what remains, and what is found, with what follows from what came, is offered: of each key the best
enters, what it dominates leaves, and what follows from it is offered in turn, the best first. A fact that enters has a
level above that of the fact it follows from, which stays as long as it does: proofs are well-founded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from elastalog.backends.kernel.bootstrap.waiting_facts import at_once
from elastalog.backends.kernel.execution.aggregates import rows_by_key
from elastalog.backends.kernel.execution.bound_variant import Scratch
from elastalog.backends.kernel.execution.delta_variant import BEFORE, NOW, DeltaVariant, Phase, Setting
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.levels.stratum_update import MaintenancePlan
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.diagnostics.source import Source
from elastalog.planning.best_of_key import Comparison
from elastalog.planning.logical import LogicalStratum, Scan
from elastalog.planning.variants import plan_wanted
from elastalog.relations.words import Dictionary

_WANTED = "@wanted"
"""The relation of the keys that are looked for."""


class BestPlan:
    """How the only relation of such a stratum is maintained. `again` finds what has one of the wanted keys."""

    def __init__(
        self,
        stratum: LogicalStratum,
        forward: MaintenancePlan,
        comparison: Comparison,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
    ) -> None:
        (self.name,) = stratum.relations
        self.comparison = comparison
        self.dictionary = dictionary
        self.flat = forward.flat | {_WANTED}
        self.forward = forward.forward
        width = relations[self.name].width
        self.key = tuple(column for column in range(width) if column != comparison.column)
        statistics = KernelStatistics({**relations, _WANTED: self.wanted(np.empty((0, width), np.int32))})
        self.again = []
        for clause in stratum.clauses:
            wanted = Scan(_WANTED, tuple(clause.head_terms[column] for column in self.key))
            self.again.append(DeltaVariant(plan_wanted(clause, wanted, statistics), dictionary, source))

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs."""
        relations[self.name].index(self.key)
        for variants in (*self.forward.values(), self.again):
            for variant in variants:
                variant.prepare(relations)

    def wanted(self, facts: Matrix) -> KernelRelation:
        """The relation of the keys of some facts."""
        relation = KernelRelation(_WANTED, len(self.key), is_annotated=True)
        relation.load(np.ascontiguousarray(facts[:, self.key]))
        return relation

    def values(self, facts: Matrix) -> np.ndarray:
        """What decides about facts: of two values the lesser is the better one."""
        values: np.ndarray = self.dictionary.integers(facts[:, self.comparison.column])
        return values if self.comparison.is_least else ~values


class BestUpdate:
    """An update of such a stratum under way."""

    def __init__(self, plan: BestPlan, impulse: Impulse) -> None:
        self.own = (plan.name,)
        self._plan = plan
        self._relations = dict(impulse.relations)
        self._relation = impulse.relations[plan.name]
        self._below = impulse.below
        self._deleted, self._inserted = impulse.deleted.get(plan.name), impulse.inserted.get(plan.name)
        self._watch = impulse.watch
        self._setting = Setting(self._relations, plan.flat, Scratch(impulse.watch))
        self._found: list[Matrix] = []

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        gone = self._delete()
        entered = self._insert_explicit()
        self._look_again(gone)
        self._run_changes(NOW)
        self._settle(entered)

    def end(self) -> dict[str, Vector]:
        """The entries of the relation that changed."""
        changed = transaction.changed_entries(self._relation, is_level_change=False)
        return {self._plan.name: changed} if len(changed) else {}

    def abandon(self) -> None:
        """What is under way needs nothing but a rollback."""

    # --- what goes -------------------------------------------------------------------------------------------------

    def _delete(self) -> Matrix:
        """Deletes whatever is derived, by whatever way, from what goes. Returns it."""
        relation = self._relation
        rows = np.empty(0, np.int32) if self._deleted is None else relation.find(self._deleted)
        self._run_changes(BEFORE)
        deleted = []
        while len(rows := np.concatenate((rows, self._derived_rows(self._take()[0])))):
            entries = transaction.touch(relation, rows)
            transaction.set_annotation(relation, entries, 0, is_present=False)
            deleted.append(rows)
            self._run_own(entries, BEFORE)
            rows = rows[:0]
        return relation.rows[np.concatenate(deleted)] if deleted else relation.rows[:0]

    def _derived_rows(self, facts: Matrix) -> Vector:
        """The rows of those of some facts that are there and not explicit, each once."""
        rows = np.unique(self._relation.find(facts))
        rows = rows[rows >= 0]
        levels = levels_now(self._relation, rows)
        return rows[(levels > 0) & (levels < ABSENT)]

    # --- what comes ------------------------------------------------------------------------------------------------

    def _insert_explicit(self) -> Vector:
        """Explicit facts come, and what they dominate leaves. Returns their entries."""
        if self._inserted is None:
            return np.empty(0, np.int32)
        places, rows = rows_by_key(self._relation, self._plan.key, self._keys(self._inserted))
        is_worse = self._plan.values(self._relation.rows[rows]) > self._plan.values(self._inserted)[places]
        self._dismiss(np.unique(rows[is_worse]))
        return self._add(self._inserted, 0)

    def _look_again(self, gone: Matrix) -> None:
        """Offers what is derived still of keys that have lost a fact."""
        if not len(gone):
            return
        plan = self._plan
        wanted = self._relations[_WANTED] = plan.wanted(gone)
        for variant in plan.again:
            variant.run_range(self._setting, 0, wanted.used, None, self._offer)

    def _settle(self, entered: Vector) -> None:
        """Has the best of what is offered enter, and offers what follows from it, as long as there is any."""
        self._run_own(entered, NOW)
        facts, levels = self._take()
        while len(facts):
            is_next = at_once(self._plan.values(facts))
            entered = self._enter(facts[is_next], levels[is_next])
            self._run_own(entered, NOW)
            more, more_levels = self._take()
            facts = np.concatenate((facts[~is_next], more))
            levels = np.concatenate((levels[~is_next], more_levels))

    def _enter(self, facts: Matrix, levels: Vector) -> Vector:
        """Of each key the best of some facts enters if it is better than what is there. Returns their entries."""
        facts, levels = self._best(facts, levels)
        values = self._plan.values(facts)
        places, rows = rows_by_key(self._relation, self._plan.key, self._keys(facts))
        enters = np.ones(len(facts), np.bool_)
        enters[places[self._plan.values(self._relation.rows[rows]) <= values[places]]] = False
        self._dismiss(rows[enters[places]])
        return self._add(facts[enters], levels[enters])

    def _best(self, facts: Matrix, levels: Vector) -> tuple[Matrix, Vector]:
        """Of each key the best fact, at its least level."""
        columns = [facts[:, column] for column in self._plan.key]
        order = np.lexsort((levels, self._plan.values(facts), *columns))
        keys = self._keys(facts)[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        chosen = order[is_first]
        return facts[chosen], levels[chosen]

    def _dismiss(self, rows: Vector) -> None:
        """Facts leave, unless they are explicit."""
        rows = rows[levels_now(self._relation, rows) > 0]
        transaction.set_annotation(self._relation, transaction.touch(self._relation, rows), 0, is_present=False)

    def _add(self, facts: Matrix, levels: Vector | int) -> Vector:
        if not len(facts):
            return np.empty(0, np.int32)
        entries = transaction.touch(self._relation, transaction.add_rows(self._relation, facts))
        transaction.set_annotation(self._relation, entries, levels, is_present=True)
        return entries

    def _keys(self, facts: Matrix) -> Matrix:
        return np.ascontiguousarray(facts[:, self._plan.key])

    # --- derivations -----------------------------------------------------------------------------------------------

    def _run_changes(self, phase: Phase) -> None:
        """Offers the heads of what fired through what has gone, or fires through what has come."""
        for name, changed in self._below.items():
            for variant in self._plan.forward.get(name, ()):
                self._run([variant], variant.concerned(self._relations[name], changed, phase), phase)

    def _run_own(self, entries: Vector, phase: Phase) -> None:
        self._run(self._plan.forward.get(self._plan.name, ()), entries, phase)

    def _run(self, variants: Iterable[DeltaVariant], entries: Vector, phase: Phase) -> None:
        if len(entries):
            for variant in variants:
                variant.run(self._setting, entries, phase, self._offer)

    def _offer(self, block: Matrix, used: int) -> None:
        """A sink for derivations."""
        self._watch.derived(used)
        width = self._relation.width
        found = np.empty((used, width + 1), np.int32)
        found[:, :width] = block[:used, :width]
        found[:, width] = block[:used, -LEVELS]
        self._found.append(found)

    def _take(self) -> tuple[Matrix, Vector]:
        """What is offered, and the levels at which it would enter."""
        width = self._relation.width
        found = np.concatenate(self._found) if self._found else np.empty((0, width + 1), np.int32)
        self._found.clear()
        return np.ascontiguousarray(found[:, :width]), found[:, width] + 1
