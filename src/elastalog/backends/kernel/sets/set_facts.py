"""Sets of facts in the kernel, for the strategies that maintain sets: vectors of touched entries by relation, with
marks (see `backends.sets`), and what look-ahead notes of them.

`EntryLists` collects the entries that operators list while they apply derivations. With look-ahead, derivations tell
whether the next update will question their heads, or bring them back (see `set_operators` for how).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.set_operators import (
    ASSURED,
    IF_CERTAIN,
    IF_QUESTIONED,
    IF_TOUCHED,
    MARKED,
    NOTHING,
    RECURSIVE,
)
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import COUNT, DERIVED, IS, NEW, REFERENCE, ROW, WAS
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector, with_room
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import touch
from elastalog.backends.sets import NO_MARK, Evaluation, Facts, Mark
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS


class TouchedFacts:
    """The facts that an update touches in the relations of a stratum (`own`) and below. `below` are the entries that
    have changed there."""

    def __init__(
        self, relations: Mapping[str, KernelRelation], own: tuple[str, ...], below: Facts, watch: Watch
    ) -> None:
        self.own = own
        self.below = below
        self._relations = relations
        self._lists = EntryLists(watch)

    def touch(self, relation: KernelRelation, rows: Vector) -> Vector:
        """The touched entries of rows, made where there are none."""
        return touch(relation, rows, DERIVED, 0)

    def facts_of_rows(self, rows: Mapping[str, Vector]) -> Facts:
        return {name: self.touch(self._relations[name], some) for name, some in rows.items() if len(some)}

    def rows_of(self, facts: Facts) -> dict[str, Vector]:
        return {name: self._relations[name].touched[entries, ROW].copy() for name, entries in facts.items()}

    def words_of(self, facts: Facts) -> dict[str, Matrix]:
        return {name: self._relations[name].rows[rows] for name, rows in self.rows_of(facts).items()}

    def having(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK) -> Facts:
        return self._select(facts, int(required) | int(excluded), int(required))

    def move(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK, *, added: Mark) -> Facts:
        return self._select(facts, int(required) | int(excluded), int(required), int(added))

    def mark(self, facts: Facts, added: Mark, removed: Mark = NO_MARK) -> None:
        self._mark(facts, int(added), int(removed))

    def explicit_ones(self, facts: Facts) -> Facts:
        return self._where(facts, NEW, lambda level: (level & DERIVED) == 0)

    def without_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, COUNT, lambda count: count == 0)

    def with_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, COUNT, lambda count: count > 0)

    def with_recursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, NEW, lambda level: level >= RECURSIVE)

    def _mark(self, facts: Facts, added: int, removed: int) -> None:
        for name, entries in facts.items():
            bookkeeping.mark(entries, self._relations[name].touched, added, removed)

    def _select(self, facts: Facts, looked_at: int, wanted: int, added: int = 0) -> Facts:
        """The facts that have, of the marks `looked_at`, exactly those `wanted`; they get the marks `added`."""
        chosen = {}
        for name, entries in facts.items():
            found = np.empty(len(entries), np.int32)
            touched = self._relations[name].touched
            number = set_operators.select(entries, touched, looked_at, wanted, added, found)
            if number:
                chosen[name] = found[:number]
        return chosen

    def _where(self, facts: Facts, column: int, is_wanted: Callable[[Vector], Vector]) -> Facts:
        chosen = {n: e[is_wanted(self._relations[n].touched[e, column])] for n, e in facts.items()}
        return {name: entries for name, entries in chosen.items() if len(entries)}


class EntryLists:
    """One list a relation. `begin` makes room for what a block may bring and hands out the list, and how many are in
    it; `finish` is told how many are now."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lists: dict[str, Vector] = {}
        self._listed: dict[str, int] = {}

    def begin(self, relation: KernelRelation, used: int) -> tuple[Vector, int]:
        """The list of a relation, with room for `used` more rows."""
        relation.is_settled = False
        relation.reserve_touched(used)
        listed = self._listed.get(relation.name, 0)
        array = with_room(self._lists.get(relation.name, NO_WORDS), listed + used)
        self._lists[relation.name] = array
        return array, listed

    def finish(self, relation: KernelRelation, listed: int, derivations: int) -> None:
        """The operator is done and has applied `derivations` derivations."""
        self._listed[relation.name] = listed
        self._watch.derived(derivations)

    def take(self) -> dict[str, Vector]:
        """What has been listed, by relation, where anything was; the lists are empty again."""
        lists = {name: self._lists[name][:listed].copy() for name, listed in self._listed.items() if listed}
        self._listed.clear()
        return lists


EXPECTED = int(Mark.EXPECTED)


class LookAhead(TouchedFacts):
    """Sets of facts of a stratum whose derivations take notes. `flat`: all relations; facts of those that derivations
    need know nothing of count as level 0."""

    def __init__(
        self,
        relations: Mapping[str, KernelRelation],
        own: tuple[str, ...],
        below: Facts,
        flat: frozenset[str],
        watch: Watch,
    ) -> None:
        super().__init__(relations, own, below, watch)
        self._flat = flat
        self._knows_nothing = flat
        self._ahead: Facts = {}
        self._noted = NOTHING
        self._is_explored = False
        self._is_assuring = False
        self._assured: list[tuple[str, Vector, Vector]] = []

    def expect_deletion(self, relation: str, deleted: Matrix, inserted: Matrix | None) -> Facts:
        stored = self._relations[relation]
        rows = stored.find(deleted)
        kept = NO_WORDS if inserted is None else stored.find(inserted)
        if len(kept) > SETTINGS.few_looked_ahead:
            rows[np.isin(rows, kept)] = -1
            kept = NO_WORDS
        stored.is_settled = False
        stored.reserve_touched(len(rows))
        entries = np.empty(len(rows), np.int32)
        number = set_operators.expect(stored.home, rows, kept, EXPECTED, entries)
        return {relation: entries[:number]} if number else {}

    def expect_return(self, relation: str, inserted: Matrix) -> Facts:
        stored = self._relations[relation]
        rows = stored.find(inserted)
        rows = rows[rows >= 0]
        # What this update has deleted, it has touched.
        rows = rows[stored.level[rows] >= REFERENCE]
        return self.having(self.facts_of_rows({relation: rows}), Mark.WAS, Mark.PRESENT)

    def forget(self, facts: Facts) -> None:
        for name, entries in facts.items():
            self._relations[name].touched[entries, NEW] &= ~MARKED

    def look(self, questioned: Facts, *, is_complete: bool, is_transitive: bool) -> None:
        self._noted = IF_QUESTIONED if is_complete else IF_TOUCHED
        if is_complete:
            self._ahead = self._select(questioned, WAS, WAS)
        self._flat = self._flat.difference(questioned, self.own if is_transitive else ())

    def look_for_returns(self, certain: Facts) -> None:
        self._is_assuring = True
        for name, entries in certain.items():
            self._count_as_certain(name, entries)

    def leave_out_expected(self) -> None:
        self._is_explored = True

    def returning(self) -> Facts:
        if not self._is_assuring:
            return {}
        self._is_assuring = False
        for name, entries, levels in self._assured:
            self._relations[name].touched[entries, NEW] = levels
        self._assured.clear()
        return self._take_noted(ASSURED, 0, WAS)[0]

    def marked(self, any_of: Mark) -> tuple[Facts, Facts]:
        return ({}, {}) if self._noted == NOTHING else self._take_noted(MARKED, IS, int(any_of))

    def take_support(self, facts: Facts, numbers: Mapping[str, Vector]) -> None:
        for name, entries in facts.items():
            self._relations[name].touched[entries, COUNT] -= numbers[name]

    def _noting(self, evaluation: Evaluation, delta: Facts) -> tuple[int, frozenset[str]]:
        """What an evaluation notes of the heads, and the relations whose facts it knows nothing of."""
        if evaluation is Evaluation.OLD or evaluation is Evaluation.SURVIVING:
            if not self._is_assuring:
                return NOTHING, self._knows_nothing
            for name in self.own:
                if name in delta:
                    self._pass_on_assurance(name, delta[name])
            return IF_CERTAIN, frozenset()
        if evaluation is Evaluation.NEW:
            return self._noted, self._flat
        return min(self._noted, IF_TOUCHED), self._flat

    def _pass_on_assurance(self, name: str, entries: Vector) -> None:
        """Facts that are being deleted and will certainly be back count as certain."""
        certain = entries[self._relations[name].touched[entries, NEW] & ASSURED != 0]
        if len(certain):
            self._count_as_certain(name, certain)

    def _count_as_certain(self, name: str, entries: Vector) -> None:
        """Until `returning`: whether a fact is explicit is known there only, and a stratum that is evaluated anew after
        this one must not see what is gone."""
        touched = self._relations[name].touched
        self._assured.append((name, entries, touched[entries, NEW]))
        touched[entries, NEW] = 0

    def _take_noted(self, noted: int, presence: int, any_of: int) -> tuple[Facts, Facts]:
        found: Facts = {}
        counts: Facts = {}
        for name in self.own:
            relation = self._relations[name]
            used = relation.touched_used
            if used:
                entries, numbers = np.empty(used, np.int32), np.empty(used, np.int32)
                listed = set_operators.take_noted(relation.touched, used, noted, presence, any_of, entries, numbers)
                if listed:
                    found[name], counts[name] = entries[:listed], numbers[:listed]
        return found, counts
