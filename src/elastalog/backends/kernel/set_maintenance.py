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
from elastalog.backends.kernel.maintenance import MaintenancePlan
from elastalog.backends.kernel.marks import COUNT, DELTA, IS, MARKS, NEW, OTHER, PENDING, REFERENCE, ROW, WAS, view
from elastalog.backends.kernel.memory import NO_WORDS, Matrix, Vector
from elastalog.backends.kernel.pipeline import Scratch, Sink
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.kernel.set_operators import DERIVED, RECURSIVE
from elastalog.backends.kernel.statistics import KernelStatistics
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Facts, Mark, Rules, Support
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Clause, LogicalStratum
from elastalog.planning.variants import plan_backward, plan_full
from elastalog.relations.words import Dictionary

_SURVIVING = Phase(True, view(WAS | IS, 0), view(WAS | IS, DELTA), view(0, WAS | IS), view(0, WAS | IS | DELTA))
PHASES: Mapping[Evaluation, Phase] = {
    Evaluation.OLD: Phase(True, view(WAS, 0), view(WAS, DELTA), view(0, WAS), view(0, WAS | DELTA)),
    Evaluation.SURVIVING: _SURVIVING,
    Evaluation.NEW: Phase(False, view(IS, 0), view(IS, DELTA), view(0, IS), view(0, IS | DELTA)),
    Evaluation.PROVED: _SURVIVING,
}
"""PROVED also needs to know the relations of the stratum, see `StratumSets`."""

_MANY = 8
"""So many heads are found faster by enumerating a clause once than by going through a relation for each of them."""

_PROVED = view(WAS | IS | PENDING, 0)
_PROVED_BEFORE = view(WAS | IS | PENDING, DELTA)


class SetPlan:
    """The versions of a stratum's clauses that maintain sets: those of `MaintenancePlan`, and backwards with body
    facts."""

    def __init__(
        self,
        stratum: LogicalStratum,
        plan: MaintenancePlan,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        source: Source,
    ) -> None:
        self.forward = plan.forward
        self.backward = plan.backward
        self._stratum = stratum
        self._relations = relations
        self._dictionary = dictionary
        self._source = source
        self._with_bodies: dict[str, list[DeltaPipeline]] | None = None
        self._everything: dict[int, DeltaPipeline] = {}

    def everything(self, clause: Clause) -> DeltaPipeline:
        """The version of a clause that enumerates all its derivations; planned when first used."""
        pipeline = self._everything.get(clause.number)
        if pipeline is None:
            variant = plan_full(clause, KernelStatistics(self._relations))
            pipeline = self._everything[clause.number] = DeltaPipeline(variant, self._dictionary, self._source)
        return pipeline

    @property
    def with_bodies(self) -> dict[str, list[DeltaPipeline]]:
        """Backward versions of the recursive clauses that give the row of every body fact, by head; planned when
        first used."""
        if self._with_bodies is None:
            self._with_bodies = {}
            statistics = KernelStatistics(self._relations)
            for clause in self._stratum.clauses:
                if clause.is_recursive:
                    variant = plan_backward(clause, statistics, with_rows=True)
                    pipeline = DeltaPipeline(variant, self._dictionary, self._source)
                    self._with_bodies.setdefault(clause.head, []).append(pipeline)
        return self._with_bodies


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
        self.stratum = stratum
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
        self._flat = frozenset(relations)
        self._proved = replace(_SURVIVING, own=frozenset(self.own), own_sees=_PROVED, own_sees_before=_PROVED_BEFORE)
        self._stamp = 0
        self._lists: dict[str, Vector] = {}
        self._listed: dict[str, int] = {}
        self._state: Vector = np.zeros(8, np.int64)
        self._needs: dict[tuple[str, int], list[tuple[str, Vector]]] = {}

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
        self._state[maintain.TOUCHED] = relation.touched_used
        set_operators.touch_rows(rows, relation.level, relation.count, relation.touched, entries, self._state)
        relation.touched_used = int(self._state[maintain.TOUCHED])
        return entries

    # --- evaluation ------------------------------------------------------------------------------------------------

    def heads(
        self,
        evaluation: Evaluation,
        delta: Facts,
        rules: Rules = Rules.ALL,
        change: Change = Change.NOTHING,
        *,
        is_every_head_known: bool = False,
    ) -> Facts:
        is_new = evaluation is Evaluation.NEW and not is_every_head_known
        phase = self._proved if evaluation is Evaluation.PROVED else PHASES[evaluation]
        self._stamp += 1
        self._mark(delta, DELTA, 0)
        for name, entries in delta.items():
            for pipeline in self._plan.forward.get(name, ()):
                if _is_among(pipeline.variant.clause, rules):
                    self._run(pipeline, entries, phase, self._head_sink(pipeline, is_new, change))
        self._mark(delta, 0, DELTA)
        for name in self.own:
            self._relations[name].extend_indexes()
        return self._take_lists()

    def derivable(self, facts: Facts, rules: Rules) -> Facts:
        self._stamp += 2
        for name, entries in facts.items():
            relation = self._relations[name]
            rest = entries
            for pipeline in self._plan.backward.get(name, ()):
                clause = pipeline.variant.clause
                if not len(rest) or not _is_among(clause, rules):
                    continue
                if len(rest) >= _MANY and not clause.is_recursive and _is_blind(pipeline):
                    relation.touched[rest, OTHER] = self._stamp - 1
                    sink = self._wanted_sink(relation)
                    self._plan.everything(clause).run_all(self._relations, self._flat, self._scratch, sink)
                else:
                    self._run(pipeline, rest, _SURVIVING, self._entry_sink(relation))
                # One derivation is enough: what this rule derives need not be looked for with the next.
                rest = rest[relation.touched[rest, OTHER] != self._stamp]
        return self._take_lists()

    def bodies(self, facts: Facts, *, is_linked: bool = False) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            for pipeline in self._plan.with_bodies.get(name, ()):
                self._run(pipeline, entries, _SURVIVING, self._body_sink(pipeline, name if is_linked else None))
        return self._take_lists()

    def demanded(self, facts: Facts) -> Facts:
        reached: dict[str, set[int]] = {}
        waiting = self.having(facts, NO_MARK, Mark.PROVED)
        while waiting:
            found: dict[str, set[int]] = {}
            for name, entries in waiting.items():
                known = reached.setdefault(name, set())
                for entry in entries.tolist():
                    if entry not in known:
                        known.add(entry)
                        for needed, needs in self._needs.get((name, entry), ()):
                            found.setdefault(needed, set()).update(needs.tolist())
            fresh = {
                name: np.array(sorted(wanted - reached.get(name, set())), np.int32) for name, wanted in found.items()
            }
            waiting = self.having({name: wanted for name, wanted in fresh.items() if len(wanted)}, NO_MARK, Mark.PROVED)
        return {name: np.array(sorted(entries), np.int32) for name, entries in reached.items() if entries}

    # --- sets ------------------------------------------------------------------------------------------------------

    def having(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK) -> Facts:
        wanted, looked_at = int(required), int(required | excluded)
        return self._select(facts, MARKS, lambda marks: (marks & looked_at) == wanted)

    def mark(self, facts: Facts, added: Mark, removed: Mark = NO_MARK) -> None:
        self._mark(facts, int(added), int(removed))

    def explicit_ones(self, facts: Facts) -> Facts:
        return self._select(facts, NEW, lambda level: (level & DERIVED) == 0)

    def without_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._select(facts, COUNT, lambda count: count == 0)

    def with_nonrecursive_support(self, facts: Facts) -> Facts:
        return self._select(facts, COUNT, lambda count: count > 0)

    def with_recursive_support(self, facts: Facts) -> Facts:
        return self._select(facts, NEW, lambda level: level >= RECURSIVE)

    def every(self) -> Facts:
        used = {name: self._relations[name].touched_used for name in self.own}
        return {name: np.arange(number, dtype=np.int32) for name, number in used.items() if number}

    def rows_of(self, facts: Facts) -> dict[str, Vector]:
        return {name: self._relations[name].touched[entries, ROW].copy() for name, entries in facts.items()}

    def facts_of_rows(self, rows: Mapping[str, Vector]) -> Facts:
        return {name: self.touch(self._relations[name], some) for name, some in rows.items() if len(some)}

    def find(self, words: Mapping[str, Matrix]) -> Facts:
        rows = {}
        for name, some in words.items():
            found = np.unique(self._relations[name].find(some))
            rows[name] = found[found >= 0]
        return self.facts_of_rows(rows)

    def end(self) -> Facts:
        """The entries of the stratum's relations that changed."""
        changed = {}
        for name in self.own:
            relation = self._relations[name]
            if relation.touched_used:
                entries = np.empty(relation.touched_used, np.int32)
                faults = set_operators.finish(
                    relation.touched, relation.touched_used, self._has_nonrecursive, self._has_recursive, entries,
                    self._state,
                )  # fmt: skip
                if faults:
                    raise InternalError("maintenance", f"{faults} facts of `{name}` have impossible counters")
                number = int(self._state[maintain.LISTED])
                if number:
                    changed[name] = entries[:number]
        return changed

    # --- within ----------------------------------------------------------------------------------------------------

    def _mark(self, facts: Facts, added: int, removed: int) -> None:
        for name, entries in facts.items():
            maintain.mark(entries, self._relations[name].touched, added, removed)

    def _select(self, facts: Facts, column: int, is_wanted: Callable[[Vector], Vector]) -> Facts:
        chosen = {n: e[is_wanted(self._relations[n].touched[e, column])] for n, e in facts.items()}
        return {name: entries for name, entries in chosen.items() if len(entries)}

    def _run(self, pipeline: DeltaPipeline, entries: Vector, phase: Phase, sink: Sink) -> None:
        pipeline.run(self._relations, self._flat, entries, phase, self._scratch, sink)

    def _head_sink(self, pipeline: DeltaPipeline, is_new: bool, change: Change) -> Sink:
        clause = pipeline.variant.clause
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
            listed, state = self._begin(head, used)
            set_operators.apply_heads(
                block, used, head.rows, head.table, head.shift, head.level, head.count, head.touched, column, step,
                is_new, self._stamp, listed, state,
            )  # fmt: skip
            self._finish(head, used)

        return sink

    def _entry_sink(self, head: KernelRelation) -> Sink:
        def sink(block: Matrix, used: int) -> None:
            listed, state = self._begin(head, used)
            set_operators.list_entries(block, used, head.touched, self._stamp, listed, state)
            self._finish(head, used)

        return sink

    def _wanted_sink(self, head: KernelRelation) -> Sink:
        def sink(block: Matrix, used: int) -> None:
            listed, state = self._begin(head, used)
            set_operators.list_wanted(
                block, used, head.rows, head.table, head.shift, head.level, head.touched, self._stamp - 1, self._stamp,
                listed, state,
            )  # fmt: skip
            self._finish(head, used)

        return sink

    def _body_sink(self, pipeline: DeltaPipeline, linked: str | None) -> Sink:
        scans = pipeline.variant.clause.scans
        own = [(i + 1, self._relations[scan.relation]) for i, scan in enumerate(scans) if scan.relation in self.own]

        def sink(block: Matrix, used: int) -> None:
            for word, relation in own:
                listed, state = self._begin(relation, used)
                set_operators.list_rows(
                    block, used, word, relation.level, relation.count, relation.touched, self._stamp, listed, state
                )
                self._finish(relation, 0)
                if linked is not None:
                    self._remember(
                        linked, block[:used, 0], relation.name, relation.level[block[:used, word]] - REFERENCE
                    )
            self._watch.derived(used)

        return sink

    def _remember(self, name: str, heads: Vector, needed: str, entries: Vector) -> None:
        order = np.argsort(heads, kind="stable")
        heads, entries = heads[order], entries[order]
        first = np.flatnonzero(np.concatenate(([True], heads[1:] != heads[:-1])))
        for start, part in zip(first.tolist(), np.split(entries, first[1:]), strict=True):
            self._needs.setdefault((name, int(heads[start])), []).append((needed, np.unique(part)))

    def _begin(self, relation: KernelRelation, used: int) -> tuple[Vector, Vector]:
        relation.is_settled = False
        relation.touched = maintain.room(relation.touched, relation.touched_used + used)
        listed = self._listed.get(relation.name, 0)
        array = maintain.room(self._lists.get(relation.name, NO_WORDS), listed + used)
        self._lists[relation.name] = array
        state = self._state
        state[maintain.USED] = relation.used
        state[maintain.TOUCHED] = relation.touched_used
        state[maintain.LISTED] = listed
        return array, state

    def _finish(self, relation: KernelRelation, used: int) -> None:
        state = self._state
        relation.used = int(state[maintain.USED])
        relation.touched_used = int(state[maintain.TOUCHED])
        self._listed[relation.name] = int(state[maintain.LISTED])
        self._watch.derived(used)

    def _take_lists(self) -> Facts:
        lists = {name: self._lists[name][:listed].copy() for name, listed in self._listed.items() if listed}
        self._listed.clear()
        return lists


def _is_blind(pipeline: DeltaPipeline) -> bool:
    """Whether a backward version has to go through a whole relation for every head, because the head is computed."""
    first = pipeline.probes[0] if pipeline.probes else None
    return first is not None and not first.is_member and not first.key_columns


def _is_among(clause: Clause, rules: Rules) -> bool:
    return rules is Rules.ALL or clause.is_recursive == (rules is Rules.RECURSIVE)
