"""The maintenance of one stratum by the strategies that maintain sets (see `backends.sets`), on the kernel's relations.

A set of facts is a vector of touched entries by relation; membership in I, D, A and the sets of backward/forward
checking is a mark. Since a view is a set of mark combinations, every evaluation of the papers is a wave of pipelines
with the right views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from elastalog.backends.kernel import maintain, set_operators
from elastalog.backends.kernel.delta_pipeline import DeltaPipeline, Phase
from elastalog.backends.kernel.entry_lists import EntryLists
from elastalog.backends.kernel.marks import COUNT, DELTA, IS, NEW, OTHER, PENDING, REFERENCE, ROW, WAS, view
from elastalog.backends.kernel.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.pipeline import Scratch, Sink
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.set_needs import Needs
from elastalog.backends.kernel.set_operators import (
    ASSURED,
    DERIVED,
    IF_CERTAIN,
    IF_QUESTIONED,
    IF_TOUCHED,
    MARKED,
    NOTHING,
    RECURSIVE,
)
from elastalog.backends.kernel.set_plan import SetPlan, has_negation
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Facts, Mark, Rules, Support
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import LogicalStratum

_EXPECTED = int(Mark.EXPECTED)

_SURVIVING = Phase(False, view(WAS | IS, 0), view(WAS | IS, DELTA), view(0, WAS | IS), view(0, WAS | IS | DELTA))
PHASES: dict[Evaluation, Phase] = {
    Evaluation.OLD: Phase(False, view(WAS, 0), view(WAS, DELTA), view(0, WAS), view(0, WAS | DELTA)),
    Evaluation.SURVIVING: _SURVIVING,
    Evaluation.NEW: Phase(False, view(IS, 0), view(IS, DELTA), view(0, IS), view(0, IS | DELTA)),
    Evaluation.PROVED: replace(
        _SURVIVING, own_sees=view(WAS | IS | PENDING, 0), own_sees_before=view(WAS | IS | PENDING, DELTA)
    ),
}
"""PROVED sees the relations of the stratum otherwise. None is a phase of losses for the join: the levels that bindings
carry are always those of the present state, where look-ahead puts its marks."""

_UNEXPLORED = replace(
    PHASES[Evaluation.OLD],
    sees=view(WAS, 0) & ~view(WAS | _EXPECTED, IS),
    sees_before=view(WAS, DELTA) & ~view(WAS | _EXPECTED, IS),
)
"""OLD without derivations through dead facts that were expected to go."""

_FEW = 64
"""So few rows are compared with each other one by one."""

_MANY = 8
"""So many heads are found faster by enumerating a clause once than by going through a relation for each of them."""


class StratumSets:
    """See `backends.sets.SetMaintenance`. `below` are the changed entries of lower relations, `deleted` and
    `inserted` the rows of the stratum's explicit facts that go and come."""

    def __init__(
        self,
        stratum: LogicalStratum,
        plan: SetPlan,
        relations: Mapping[str, KernelRelation],
        support: Support,
        below: Facts,
        deleted: Mapping[str, Vector],
        inserted: Mapping[str, Vector],
        explicit: frozenset[str],
        watch: Watch,
        scratch: Scratch,
    ) -> None:
        self.number = stratum.number
        self.has_rules = bool(stratum.clauses)
        self.explicit = explicit
        self.own = stratum.relations
        self.below = below
        self._plan = plan
        self._relations = relations
        self._has_nonrecursive = support in (Support.NONRECURSIVE, Support.EVERY)
        self._has_recursive = support is Support.EVERY
        self._deleted = deleted
        self._inserted = inserted
        self._watch = watch
        self._scratch = scratch
        self._flat = plan.flat
        self._stamp = 0
        self._lists = EntryLists(watch)
        self._needs: Needs | None = None
        self._ahead: Facts = {}
        self._noted = NOTHING
        self._is_explored = False
        self._is_assuring = False
        self._assured: list[tuple[str, Vector]] = []

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

    def touch(self, relation: KernelRelation, rows: Vector) -> Vector:
        """The touched entries of rows, made where there are none."""
        relation.is_settled = False
        relation.touched = maintain.room(relation.touched, relation.touched_used + len(rows))
        entries = np.empty(len(rows), np.int32)
        state = self._lists.state
        state[maintain.TOUCHED] = relation.touched_used
        set_operators.touch_rows(rows, relation.level, relation.count, relation.touched, entries, state)
        relation.touched_used = int(state[maintain.TOUCHED])
        return entries

    # --- evaluation ------------------------------------------------------------------------------------------------

    def heads(
        self, evaluation: Evaluation, delta: Facts, rules: Rules = Rules.ALL, change: Change = Change.NOTHING
    ) -> Facts:
        return self._wave(evaluation, delta, {}, rules, change, is_gain=False)

    def heads_of_changes(self, evaluation: Evaluation, change: Change = Change.NOTHING) -> Facts:
        came = self._select(self.below, WAS | IS, IS)
        if evaluation is Evaluation.OLD:
            gone = self._select(self.below, WAS | IS | _EXPECTED if self._is_explored else WAS | IS, WAS)
            return self._wave(evaluation, gone, came, Rules.ALL, change, is_gain=False)
        gone = self._select(self.below, WAS | IS, WAS)
        return self._wave(evaluation, _joined(came, self._ahead), gone, Rules.ALL, change, is_gain=bool(self._ahead))

    def _wave(
        self, evaluation: Evaluation, delta: Facts, negated: Facts, rules: Rules, change: Change, *, is_gain: bool
    ) -> Facts:
        """Runs the versions that start at positive goals on one delta, those that start at negated ones on another."""
        if not delta and not negated:
            return {}
        phase = self._phase(evaluation)
        is_new = evaluation is Evaluation.NEW
        noted, flat = self._noting(evaluation, delta)
        forward = self._plan.forward[rules]
        self._stamp += 1
        for facts in (delta, negated):
            self._mark(facts, DELTA, 0)
        for facts, is_negated in ((delta, False), (negated, True)):
            for name, entries in facts.items():
                for pipeline in forward.get(name, ()):
                    if pipeline.is_negated_start == is_negated:
                        sink = self._head_sink(pipeline, is_new, change, is_gain, noted)
                        pipeline.run(self._relations, flat, entries, phase, self._scratch, sink)
        for facts in (delta, negated):
            self._mark(facts, 0, DELTA)
        if is_new:
            for name in self.own:
                self._relations[name].extend_indexes()
        return self._lists.take()

    def _phase(self, evaluation: Evaluation) -> Phase:
        if evaluation is Evaluation.OLD and self._is_explored:
            return _UNEXPLORED
        phase = self._plan.phases.get(evaluation)
        if phase is None:
            own = self.own if evaluation is Evaluation.PROVED else ()
            phase = self._plan.phases[evaluation] = replace(PHASES[evaluation], own=frozenset(own))
        return phase

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
        touched = self._relations[name].touched
        certain = entries[touched[entries, NEW] & ASSURED != 0]
        if len(certain):
            touched[certain, NEW] = 0
            self._assured.append((name, certain))

    def derivable(self, facts: Facts, rules: Rules) -> Facts:
        self._stamp += 2
        for name, entries in facts.items():
            relation = self._relations[name]
            rest = entries
            for pipeline in self._plan.backward[rules].get(name, ()):
                if not len(rest):
                    break
                clause = pipeline.variant.clause
                if len(rest) >= _MANY and not clause.is_recursive and _is_blind(pipeline):
                    relation.touched[rest, OTHER] = self._stamp - 1
                    sink = self._wanted_sink(relation)
                    self._plan.everything(clause).run_all(self._relations, self._flat, self._scratch, sink)
                else:
                    self._run_backwards(pipeline, rest, self._entry_sink(relation))
                # One derivation is enough: what this rule derives need not be looked for with the next.
                rest = rest[relation.touched[rest, OTHER] != self._stamp]
        return self._lists.take()

    def bodies(self, facts: Facts, *, is_linked: bool = False) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            for pipeline in self._plan.with_bodies.get(name, ()):
                self._run_backwards(pipeline, entries, self._body_sink(pipeline, name if is_linked else None))
        return self._lists.take()

    def demanded(self, facts: Facts) -> Facts:
        # OTHER tells what has been reached: in one search each fact is listed once.
        self._stamp += 1
        reached: dict[str, list[Vector]] = {}
        waiting = self.having(facts, NO_MARK, Mark.PROVED)
        while waiting:
            fresh: Facts = {}
            for name, entries in waiting.items():
                touched = self._relations[name].touched
                new = entries[touched[entries, OTHER] != self._stamp]
                if len(new):
                    touched[new, OTHER] = self._stamp
                    reached.setdefault(name, []).append(new)
                    fresh[name] = new
            waiting = self.having(self._needs.of(fresh), NO_MARK, Mark.PROVED) if self._needs and fresh else {}
        return {name: np.unique(np.concatenate(parts)) for name, parts in reached.items()}

    # --- sets ------------------------------------------------------------------------------------------------------

    def having(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK) -> Facts:
        return self._select(facts, int(required) | int(excluded), int(required))

    def move(
        self,
        facts: Facts,
        required: Mark,
        excluded: Mark = NO_MARK,
        *,
        added: Mark = NO_MARK,
        removed: Mark = NO_MARK,
    ) -> Facts:
        return self._select(facts, int(required) | int(excluded), int(required), int(added), int(removed))

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

    def rows_of(self, facts: Facts) -> dict[str, Vector]:
        return {name: self._relations[name].touched[entries, ROW].copy() for name, entries in facts.items()}

    def words_of(self, facts: Facts) -> dict[str, Matrix]:
        return {name: self._relations[name].rows[rows] for name, rows in self.rows_of(facts).items()}

    def facts_of_rows(self, rows: Mapping[str, Vector]) -> Facts:
        return {name: self.touch(self._relations[name], some) for name, some in rows.items() if len(some)}

    def end(self) -> Facts:
        """The entries of the stratum's relations that changed."""
        changed = {}
        state = self._lists.state
        for name in self.own:
            relation = self._relations[name]
            if relation.touched_used:
                entries = np.empty(relation.touched_used, np.int32)
                faults = set_operators.finish(
                    relation.touched, relation.touched_used, self._has_nonrecursive, self._has_recursive, entries, state
                )
                if faults:
                    raise InternalError("maintenance", f"{faults} facts of `{name}` have impossible counters")
                number = int(state[maintain.LISTED])
                if number:
                    changed[name] = entries[:number]
        return changed

    # --- look-ahead ------------------------------------------------------------------------------------------------

    def expect_deletion(self, relation: str, deleted: Matrix, inserted: Matrix | None) -> Facts:
        stored = self._relations[relation]
        rows = stored.find(deleted)
        kept = NO_WORDS if inserted is None else stored.find(inserted)
        if len(kept) > _FEW:
            rows[np.isin(rows, kept)] = -1
            kept = NO_WORDS
        stored.is_settled = False
        stored.touched = maintain.room(stored.touched, stored.touched_used + len(rows))
        entries = np.empty(len(rows), np.int32)
        state = self._lists.state
        state[maintain.TOUCHED] = stored.touched_used
        number = set_operators.expect(rows, kept, stored.level, stored.count, stored.touched, _EXPECTED, entries, state)
        stored.touched_used = int(state[maintain.TOUCHED])
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
            self._relations[name].touched[entries, NEW] = 0

    def leave_out_expected(self) -> None:
        self._is_explored = True

    def returning(self) -> Facts:
        if not self._is_assuring:
            return {}
        self._is_assuring = False
        for name, entries in self._assured:
            self._relations[name].touched[entries, NEW] = DERIVED | ASSURED
        return self._take_noted(ASSURED, 0, WAS)[0]

    def marked(self, any_of: Mark) -> tuple[Facts, Facts]:
        return ({}, {}) if self._noted == NOTHING else self._take_noted(MARKED, IS, int(any_of))

    def take_support(self, facts: Facts, numbers: Mapping[str, Vector]) -> None:
        for name, entries in facts.items():
            self._relations[name].touched[entries, COUNT] -= numbers[name]

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

    # --- within ----------------------------------------------------------------------------------------------------

    def _mark(self, facts: Facts, added: int, removed: int) -> None:
        for name, entries in facts.items():
            maintain.mark(entries, self._relations[name].touched, added, removed)

    def _select(self, facts: Facts, looked_at: int, wanted: int, added: int = 0, removed: int = 0) -> Facts:
        """Those with the marks wanted among those looked at; their marks change."""
        chosen = {}
        for name, entries in facts.items():
            found = np.empty(len(entries), np.int32)
            touched = self._relations[name].touched
            number = set_operators.select(entries, touched, looked_at, wanted, added, removed, found)
            if number:
                chosen[name] = found[:number]
        return chosen

    def _where(self, facts: Facts, column: int, is_wanted: Callable[[Vector], Vector]) -> Facts:
        chosen = {n: e[is_wanted(self._relations[n].touched[e, column])] for n, e in facts.items()}
        return {name: entries for name, entries in chosen.items() if len(entries)}

    def _run_backwards(self, pipeline: DeltaPipeline, entries: Vector, sink: Sink) -> None:
        pipeline.run(self._relations, self._flat, entries, PHASES[Evaluation.SURVIVING], self._scratch, sink)

    def _head_sink(self, pipeline: DeltaPipeline, is_new: bool, change: Change, is_gain: bool, noted: int) -> Sink:
        clause = pipeline.variant.clause
        if noted == IF_CERTAIN and has_negation(clause):
            noted = NOTHING
        head = self._relations[clause.head]
        column, step = -1, 0
        if change is not Change.NOTHING:
            if clause.is_recursive and self._has_recursive:
                column, step = NEW, RECURSIVE * change.value
            elif not clause.is_recursive and self._has_nonrecursive:
                column, step = COUNT, change.value

        def sink(block: Matrix, used: int) -> None:
            if is_new:
                head.reserve(head.used + used)
            listed, state = self._lists.begin(head, used)
            set_operators.apply_heads(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, column, step,
                is_new, is_gain, noted, self._stamp, listed, state,
            )  # fmt: skip
            self._lists.finish(head, used)

        return sink

    def _entry_sink(self, head: KernelRelation) -> Sink:
        is_marking = self._noted != NOTHING

        def sink(block: Matrix, used: int) -> None:
            listed, state = self._lists.begin(head, used)
            set_operators.list_entries(block, used, head.touched, is_marking, self._stamp, listed, state)
            self._lists.finish(head, used)

        return sink

    def _wanted_sink(self, head: KernelRelation) -> Sink:
        def sink(block: Matrix, used: int) -> None:
            listed, state = self._lists.begin(head, used)
            set_operators.list_wanted(
                block, used, head.rows, head.table, head.shift, head.level, head.touched, self._stamp - 1, self._stamp,
                listed, state,
            )  # fmt: skip
            self._lists.finish(head, used)

        return sink

    def _body_sink(self, pipeline: DeltaPipeline, linked: str | None) -> Sink:
        scans = pipeline.variant.clause.scans
        own = [(i + 1, self._relations[scan.relation]) for i, scan in enumerate(scans) if scan.relation in self.own]

        def sink(block: Matrix, used: int) -> None:
            for word, relation in own:
                listed, state = self._lists.begin(relation, used)
                set_operators.list_rows(
                    block, used, word, relation.level, relation.count, relation.touched, self._stamp, listed, state
                )
                self._lists.finish(relation, 0)
                if linked is not None:
                    self._needs = self._needs or Needs(self.own)
                    needed = relation.level[block[:used, word]] - REFERENCE
                    self._needs.add(linked, block[:used, 0], relation.name, needed)
            self._watch.derived(used)

        return sink


def _joined(facts: Facts, others: Facts) -> Facts:
    """The union of disjoint sets."""
    both = dict(facts)
    for name, entries in others.items():
        both[name] = np.concatenate((both[name], entries)) if name in both else entries
    return both


def _is_blind(pipeline: DeltaPipeline) -> bool:
    """Whether a backward version has to go through a whole relation for every head, because the head is computed."""
    first = pipeline.probes[0] if pipeline.probes else None
    return first is not None and not first.is_member and not first.key_columns
