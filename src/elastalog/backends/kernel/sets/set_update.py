"""The maintenance of one stratum by the strategies that maintain sets (see `backends.sets`), on the kernel's relations.

A set of facts is a vector of touched entries by relation; membership in I, D, A and the sets of backward/forward
checking is a mark. Since a view is a set of mark combinations, every evaluation of the papers is a wave of variants
with the right views. With look-ahead, derivations tell whether the next update will question their heads, or bring
them back (see `set_operators` for how).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.execution.level_views import GAINING, OLD, PROVING, SURVIVING, UNEXPLORED
from elastalog.backends.kernel.machine.enumeration import Sink
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.machine.set_rounds import (
    ASSURED,
    IF_CERTAIN,
    IF_QUESTIONED,
    IF_TOUCHED,
    MARKED,
    NOTHING,
    SetRoundsTask,
)
from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.heads_backward import BackwardSearch
from elastalog.backends.kernel.sets.set_operators import RECURSIVE
from elastalog.backends.kernel.sets.set_plan import SetPlan
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.annotations import COUNT, DERIVED, IS, NEW, OTHER, REFERENCE, ROW, WAS
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector, with_room
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import StratumDelta, add_rows, touch
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Facts, Mark, Propagation, joined
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import Clause
from elastalog.settings import SETTINGS

EXPECTED = int(Mark.EXPECTED)

PHASES = {
    Evaluation.OLD: OLD,
    Evaluation.SURVIVING: SURVIVING,
    Evaluation.NEW: GAINING,
    Evaluation.PROVED: PROVING,
}
"""None is a phase of losses for the join: the levels that bindings carry are always those of the present state, where
look-ahead puts its marks."""


class StratumSets:
    """See `backends.sets.SetMaintenance`. `own`: the relations of the stratum; `below`: the entries that have changed
    in those that it reads; `explicit`: those without rules among all of these."""

    def __init__(
        self,
        plan: SetPlan,
        stratum_delta: StratumDelta,
        support: Support,
        explicit: frozenset[str],
        workspace: Workspace,
    ) -> None:
        stratum, relations, watch = stratum_delta.stratum, stratum_delta.relations, stratum_delta.watch
        self.own = stratum.relations
        self.below = stratum_delta.below
        self.number = stratum.number
        self.has_rules = bool(stratum.clauses)
        self.explicit = explicit
        self._plan = plan
        self._has_nonrecursive = support in (Support.NONRECURSIVE, Support.EVERY)
        self._has_recursive = support is Support.EVERY
        self._deleted = {name: relations[name].find(words) for name, words in stratum_delta.deleted.items()}
        self._inserted = {name: add_rows(relations[name], words) for name, words in stratum_delta.inserted.items()}
        self._relations = relations
        self._watch = watch
        self._lists: dict[str, tuple[Vector, int]] = {}
        self._stamp = 0
        self._setting = partial(plan.setting, relations, workspace, watch)
        self._backward = BackwardSearch(plan, self.own, self._setting)
        # Of looking ahead. Facts of relations that derivations need know nothing of are `flat`.
        self._flat = plan.flat
        self._ahead: Facts = {}
        self._noted = NOTHING
        self._is_explored = False
        self._is_assuring = False
        self._assured: list[tuple[str, Vector, Vector]] = []

    def abandon(self) -> None:
        """What is under way needs nothing but a rollback."""

    # --- facts and their marks ---------------------------------------------------------------------------------------

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

    def mark(self, facts: Facts, added: int, removed: int = 0) -> None:
        for name, entries in facts.items():
            bookkeeping.mark(entries, self._relations[name].touched, added, removed)

    def explicit_ones(self, facts: Facts) -> Facts:
        return self._where(facts, NEW, lambda level: (level & DERIVED) == 0)

    def without_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, COUNT, lambda count: count == 0)

    def with_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, COUNT, lambda count: count > 0)

    def with_recursive_support(self, facts: Facts) -> Facts:
        return self._where(facts, NEW, lambda level: level >= RECURSIVE)

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

    def _list_of(self, relation: KernelRelation, used: int) -> tuple[Vector, int]:
        """The list of a relation, in which operators note entries while they apply derivations, with room for `used`
        more; and how many are in it."""
        relation.is_settled = False
        relation.reserve_touched(used)
        entries, listed = self._lists.get(relation.name, (NO_WORDS, 0))
        entries = with_room(entries, listed + used)
        self._lists[relation.name] = entries, listed
        return entries, listed

    def _listed(self, relation: KernelRelation, entries: Vector, listed: int, derivations: int) -> None:
        """An operator has applied so many derivations, and listed so many entries in all."""
        self._lists[relation.name] = entries, listed
        self._watch.derived(derivations)

    def _take_lists(self) -> Facts:
        """What has been listed, by relation, where anything was; the lists are empty again."""
        found = {name: entries[:listed].copy() for name, (entries, listed) in self._lists.items() if listed}
        self._lists = {name: (entries, 0) for name, (entries, _) in self._lists.items()}
        return found

    # --- explicit facts --------------------------------------------------------------------------------------------

    def explicit_losses(self) -> Facts:
        return self._make_explicit(self._deleted, is_explicit=False)

    def explicit_gains(self) -> Facts:
        return self._make_explicit(self._inserted, is_explicit=True)

    def _make_explicit(self, changed: Mapping[str, Vector], is_explicit: bool) -> Facts:
        facts = {name: self.touch(self._relations[name], rows) for name, rows in changed.items()}
        for name, entries in facts.items():
            touched = self._relations[name].touched
            if is_explicit:
                touched[entries, NEW] &= ~DERIVED
            else:
                touched[entries, NEW] |= DERIVED
            if self._has_nonrecursive:
                touched[entries, COUNT] += 1 if is_explicit else -1
        return facts

    # --- looking ahead -----------------------------------------------------------------------------------------------

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
            self._ahead = self._select(questioned, WAS | IS, WAS | IS)
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
                return NOTHING, self._plan.flat
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

    # --- evaluation ------------------------------------------------------------------------------------------------

    def heads(self, evaluation: Evaluation, delta: Facts) -> Facts:
        return self._wave(evaluation, delta, Change.NOTHING)

    def propagate(self, found: Facts, evaluation: Evaluation, change: Change, how: Propagation) -> Facts:
        delta = self._next_delta(found, how)
        if not self._is_assuring or evaluation is Evaluation.NEW:
            return self._run_rounds(self._task(evaluation, change, how), evaluation, delta) if delta else {}
        # Between rounds it is passed on which facts are certain.
        deltas: list[Facts] = []
        while delta:
            found = self._wave(evaluation, delta, change)
            self.mark(delta, 0, how.removed)
            deltas.append(delta)
            delta = self._next_delta(found, how)
        return joined(*deltas)

    def heads_of_changes(self, evaluation: Evaluation, change: Change = Change.NOTHING) -> Facts:
        # Of these, each goal sees what concerns it.
        changed = self._select(self.below, WAS | IS, WAS), self._select(self.below, WAS | IS, IS)
        if evaluation is Evaluation.OLD:
            return self._wave(evaluation, joined(*changed), change)
        return self._wave(evaluation, joined(*changed, self._ahead), change, is_gain=bool(self._ahead))

    def derivable(self, facts: Facts, *, by_recursive: bool) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            relation = self._relations[name]
            rest = entries
            for backwards in self._plan.backward.get(name, ()):
                if not len(rest):
                    break
                if backwards.variant.clause.is_recursive and not by_recursive:
                    continue
                self._backward.run(backwards, self._flat, rest, self._entry_sink(relation))
                # One derivation is enough: what this rule derives need not be looked for with the next.
                rest = rest[relation.touched[rest, OTHER] != self._stamp]
        return self._take_lists()

    def bodies(self, facts: Facts) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            for backwards in self._plan.with_bodies.get(name, ()):
                self._backward.run(backwards, self._flat, entries, self._body_sink(backwards.variant.clause))
        return self._take_lists()

    def delete_plainly(self, queries: Facts) -> tuple[Facts, int]:
        candidates = self.having(queries, NO_MARK, Mark.PROVED)
        fresh = self.having(candidates, NO_MARK, Mark.CHECKED)
        is_plain = not self.having(fresh, Mark.DELAYED) and not self.with_nonrecursive_support(fresh)
        if not is_plain or not self._backward.is_easy:
            return queries, 0
        rounds, forward, scans = self._plan.plain_rounds
        deleting = Propagation(Mark.PRESENT, Mark.PROVED, removed=Mark.PRESENT)
        task = self._task(Evaluation.SURVIVING, Change.NOTHING, deleting)
        task.is_checking = task.is_backward_half = True
        task.forward, task.scans, task.scans_size, task.most_scans = (
            forward,
            address_of(scans),
            scans.size,
            scans.shape[1],
        )
        rounds.run(task, SURVIVING, candidates, self._plan.flat, self._relations, self._watch)
        self._stamp = task.stamp
        return rounds.deltas(self._relations, is_left=True), task.deletions

    def end(self) -> Facts:
        """The entries of the stratum's relations that changed."""
        changed = {}
        for name in self.own:
            relation = self._relations[name]
            if relation.touched_used:
                entries = np.empty(relation.touched_used, np.int32)
                number = set_operators.finish(
                    relation.touched, relation.touched_used, self._has_nonrecursive, self._has_recursive, entries
                )
                if number < 0:
                    raise InternalError("maintenance", f"{-number} facts of `{name}` have impossible counters")
                if number:
                    changed[name] = entries[:number]
        return changed

    # --- within ----------------------------------------------------------------------------------------------------

    def _task(
        self, evaluation: Evaluation, change: Change, how: Propagation | None, *, is_gain: bool = False
    ) -> SetRoundsTask:
        """Rounds of variants; one, if it is not said how the next delta is found."""
        self._stamp += 1
        task = SetRoundsTask(is_new=evaluation is Evaluation.NEW, is_gain=is_gain, stamp=self._stamp)
        task.recursive_step = RECURSIVE * change.value if self._has_recursive else 0
        task.other_step = change.value if self._has_nonrecursive else 0
        task.is_one_round = how is None
        if how is not None:
            task.looked_at, task.wanted = int(how.required) | int(how.excluded), int(how.required)
            task.is_unsupported, task.added, task.removed = how.is_unsupported, int(how.added), int(how.removed)
        return task

    def _wave(self, evaluation: Evaluation, delta: Facts, change: Change, *, is_gain: bool = False) -> Facts:
        """One round of the variants that start at a delta."""
        if not delta:
            return {}
        self._run_rounds(self._task(evaluation, change, None, is_gain=is_gain), evaluation, delta)
        return self._plan.rounds.heads()

    def _run_rounds(self, task: SetRoundsTask, evaluation: Evaluation, delta: Facts) -> Facts:
        """Runs rounds of variants from a delta on. Returns all deltas."""
        rounds, relations = self._plan.rounds, self._relations
        phase = UNEXPLORED if evaluation is Evaluation.OLD and self._is_explored else PHASES[evaluation]
        task.noted, flat = self._noting(evaluation, delta)
        rounds.run(task, phase, delta, flat, relations, self._watch)
        self._stamp = task.stamp
        if task.is_new:
            for name in self.own:
                relations[name].extend_indexes()
        return rounds.deltas(relations)

    def _next_delta(self, found: Facts, how: Propagation) -> Facts:
        if not how.is_unsupported:
            return self.move(found, how.required, how.excluded, added=how.added)
        delta = self.without_nonrecursive_support(self.having(found, how.required, how.excluded))
        self.mark(delta, how.added)
        return delta

    def _entry_sink(self, head: KernelRelation) -> Sink:
        is_marking = self._noted != NOTHING

        def sink(block: Matrix, used: int) -> None:
            entries, listed = self._list_of(head, used)
            listed = set_operators.list_entries(block, used, head.touched, is_marking, self._stamp, entries, listed)
            self._listed(head, entries, listed, used)

        return sink

    def _body_sink(self, clause: Clause) -> Sink:
        scans = clause.scans
        own = [(i + 1, self._relations[scan.relation]) for i, scan in enumerate(scans) if scan.relation in self.own]

        def sink(block: Matrix, used: int) -> None:
            for word, relation in own:
                entries, listed = self._list_of(relation, used)
                listed = set_operators.list_rows(relation.home, block, used, word, self._stamp, entries, listed)
                self._listed(relation, entries, listed, 0)
            self._watch.derived(used)

        return sink
