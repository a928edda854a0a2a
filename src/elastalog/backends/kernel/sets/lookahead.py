"""Look-ahead in the kernel: derivations tell whether the next update will question their heads, or bring them back (see
`set_operators` for how, and `backends.sets` for what)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.set_facts import TouchedFacts
from elastalog.backends.kernel.sets.set_operators import ASSURED, IF_CERTAIN, IF_QUESTIONED, IF_TOUCHED, MARKED, NOTHING
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import COUNT, IS, NEW, REFERENCE, WAS
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.sets import Evaluation, Facts, Mark
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

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
        state = self._lists.state
        state[bookkeeping.TOUCHED_USED] = stored.touched_used
        try:
            number = set_operators.expect(
                rows, kept, stored.level, stored.count, stored.touched, EXPECTED, entries, state
            )
        finally:
            # As in `touch`.
            try:
                stored.touched_used = int(state[bookkeeping.TOUCHED_USED])
            except KeyboardInterrupt:
                stored.touched_used = int(state[bookkeeping.TOUCHED_USED])
                raise
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
