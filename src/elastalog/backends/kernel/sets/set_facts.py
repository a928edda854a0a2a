"""Sets of facts in the kernel, for the strategies that maintain sets: vectors of touched entries by relation, with
marks (see `backends.sets`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.entry_lists import EntryLists
from elastalog.backends.kernel.sets.set_operators import RECURSIVE
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import COUNT, DERIVED, NEW, ROW
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import touch
from elastalog.backends.sets import NO_MARK, Facts, Mark
from elastalog.backends.watch import Watch


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

    def abandon(self) -> None:
        """Nothing more will come; what was done will be taken back."""
        self._lists.keep()

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
        """Those with the marks wanted among those looked at; they have more marks then."""
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
