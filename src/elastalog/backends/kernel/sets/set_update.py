"""The maintenance of one stratum by the strategies that maintain sets (see `backends.sets`), on the kernel's relations.

A set of facts is a vector of touched entries by relation; membership in I, D, A and the sets of backward/forward
checking is a mark. Since a view is a set of mark combinations, every evaluation of the papers is a wave of variants
with the right views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.execution.level_views import BOTH_EPOCHS, GAINS, Phase
from elastalog.backends.kernel.machine import layout, set_rounds
from elastalog.backends.kernel.machine.enumeration import Sink
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.sets import set_operators
from elastalog.backends.kernel.sets.heads_backward import BackwardSearch
from elastalog.backends.kernel.sets.set_facts import EXPECTED, LookAhead
from elastalog.backends.kernel.sets.set_operators import IF_CERTAIN, NOTHING, RECURSIVE
from elastalog.backends.kernel.sets.set_plan import SetPlan, has_negation
from elastalog.backends.kernel.store.annotations import COUNT, DELTA, DERIVED, IS, NEW, OTHER, PENDING, WAS, view
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Facts, Mark, Propagation, Rules, joined
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import Clause
from elastalog.settings import SETTINGS

PHASES: dict[Evaluation, Phase] = {
    Evaluation.OLD: Phase(False, view(WAS, 0), view(WAS, DELTA), view(0, WAS), view(0, WAS | DELTA)),
    Evaluation.SURVIVING: BOTH_EPOCHS,
    Evaluation.NEW: GAINS,
    Evaluation.PROVED: replace(
        BOTH_EPOCHS, own_sees=view(WAS | IS | PENDING, 0), own_sees_before=view(WAS | IS | PENDING, DELTA)
    ),
}
"""PROVED sees the relations of the stratum otherwise. None is a phase of losses for the join: the levels that bindings
carry are always those of the present state, where look-ahead puts its marks."""

_UNEXPLORED = replace(
    PHASES[Evaluation.OLD],
    sees=view(WAS, 0) & ~view(WAS | EXPECTED, IS),
    sees_before=view(WAS, DELTA) & ~view(WAS | EXPECTED, IS),
)
"""OLD without derivations through dead facts that were expected to go."""


class StratumSets(LookAhead):
    """See `backends.sets.SetMaintenance`. `explicit`: the relations without rules among those of the stratum and those
    that it reads."""

    def __init__(
        self,
        plan: SetPlan,
        stratum_delta: StratumDelta,
        support: Support,
        explicit: frozenset[str],
        workspace: Workspace,
    ) -> None:
        stratum, relations, watch = stratum_delta.stratum, stratum_delta.relations, stratum_delta.watch
        super().__init__(relations, stratum.relations, stratum_delta.below, plan.flat, watch)
        self.number = stratum.number
        self.has_rules = bool(stratum.clauses)
        self.explicit = explicit
        self._plan = plan
        self._has_nonrecursive = support in (Support.NONRECURSIVE, Support.EVERY)
        self._has_recursive = support is Support.EVERY
        self._deleted, self._inserted = stratum_delta.rows()
        self._watch = watch
        self._workspace = workspace
        self._stamp = 0
        self._backward = BackwardSearch(plan, relations, self.own, PHASES[Evaluation.SURVIVING], workspace, watch)

    def abandon(self) -> None:
        """What is under way needs nothing but a rollback."""

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

    # --- evaluation ------------------------------------------------------------------------------------------------

    def heads(
        self, evaluation: Evaluation, delta: Facts, rules: Rules = Rules.ALL, change: Change = Change.NOTHING
    ) -> Facts:
        return self._wave(evaluation, delta, {}, rules, change, is_gain=False)

    def propagate(self, found: Facts, evaluation: Evaluation, change: Change, how: Propagation) -> Facts:
        deltas: list[Facts] = []
        is_new = evaluation is Evaluation.NEW
        is_noting = self._noted != NOTHING if is_new else self._is_assuring
        while delta := self._next_delta(found, how):
            if len(deltas) >= SETTINGS.set_machine_after and not is_noting:
                column, step = self._counted(change, is_recursive=True)
                task = set_rounds.PropagationTask(
                    column, step, is_new, self._stamp + 1, int(how.required) | int(how.excluded), int(how.required),
                    how.is_unsupported, int(how.added), int(how.removed),
                )  # fmt: skip
                phase = layout.GAINING if is_new else layout.SURVIVING
                rounds, relations, watch = self._plan.propagation, self._relations, self._watch
                deltas.append(rounds.run(set_rounds.propagate, task, phase, delta, relations, watch))
                self._stamp = task.stamp
                self._extend_indexes()
                break
            found = self.heads(evaluation, delta, Rules.RECURSIVE, change)
            self._mark(delta, 0, int(how.removed))
            deltas.append(delta)
        return joined(*deltas)

    def heads_of_changes(self, evaluation: Evaluation, change: Change = Change.NOTHING) -> Facts:
        came = self._select(self.below, WAS | IS, IS)
        if evaluation is Evaluation.OLD:
            gone = self._select(self.below, WAS | IS | EXPECTED if self._is_explored else WAS | IS, WAS)
            return self._wave(evaluation, gone, came, Rules.ALL, change, is_gain=False)
        gone = self._select(self.below, WAS | IS, WAS)
        return self._wave(evaluation, joined(came, self._ahead), gone, Rules.ALL, change, is_gain=bool(self._ahead))

    def derivable(self, facts: Facts, rules: Rules) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            relation = self._relations[name]
            rest = entries
            for backwards in self._plan.backward[rules].get(name, ()):
                if not len(rest):
                    break
                self._backward.run(backwards, self._flat, rest, self._entry_sink(relation))
                # One derivation is enough: what this rule derives need not be looked for with the next.
                rest = rest[relation.touched[rest, OTHER] != self._stamp]
        return self._lists.take()

    def bodies(self, facts: Facts) -> Facts:
        self._stamp += 1
        for name, entries in facts.items():
            for backwards in self._plan.with_bodies.get(name, ()):
                self._backward.run(backwards, self._flat, entries, self._body_sink(backwards.variant.clause))
        return self._lists.take()

    def delete_plainly(self, queries: Facts) -> tuple[Facts, int]:
        candidates = self.having(queries, NO_MARK, Mark.PROVED)
        fresh = self.having(candidates, NO_MARK, Mark.CHECKED)
        is_plain = not self.having(fresh, Mark.DELAYED) and not self.with_nonrecursive_support(fresh)
        if not is_plain or not self._backward.is_easy:
            return queries, 0
        rounds, forward, scans = self._plan.plain_rounds
        task = set_rounds.PlainRoundsTask(
            stamp=self._stamp + 1, is_backward_half=True, forward=forward, scans=address_of(scans),
            scans_size=scans.size, most_scans=scans.shape[1],
        )  # fmt: skip
        operator, phase, relations = set_rounds.delete_plainly, layout.SURVIVING, self._relations
        rest = rounds.run(operator, task, phase, candidates, relations, self._watch, is_left=True)
        self._stamp = task.stamp
        return rest, task.deletions

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

    def _wave(
        self, evaluation: Evaluation, delta: Facts, negated: Facts, rules: Rules, change: Change, *, is_gain: bool
    ) -> Facts:
        """Runs the variants that start at positive goals on one delta, those that start at negated ones on another."""
        if not delta and not negated:
            return {}
        is_explored = evaluation is Evaluation.OLD and self._is_explored
        phase = _UNEXPLORED if is_explored else PHASES[evaluation]
        is_new = evaluation is Evaluation.NEW
        noted, flat = self._noting(evaluation, delta)
        setting = self._plan.setting(self._relations, flat, self._workspace, self._watch)
        forward = self._plan.forward[rules]
        self._stamp += 1
        for facts in (delta, negated):
            self._mark(facts, DELTA, 0)
        for facts, is_negated in ((delta, False), (negated, True)):
            for name, entries in facts.items():
                for forwards in forward.get(name, ()):
                    if forwards.variant.is_negated_start == is_negated:
                        sink = self._head_sink(forwards.variant.clause, is_new, change, is_gain, noted)
                        forwards.of_entries(setting, entries, phase, sink)
        for facts in (delta, negated):
            self._mark(facts, 0, DELTA)
        if is_new:
            self._extend_indexes()
        return self._lists.take()

    def _next_delta(self, found: Facts, how: Propagation) -> Facts:
        if not how.is_unsupported:
            return self.move(found, how.required, how.excluded, added=how.added)
        delta = self.without_nonrecursive_support(self.having(found, how.required, how.excluded))
        self._mark(delta, int(how.added), 0)
        return delta

    def _extend_indexes(self) -> None:
        for name in self.own:
            self._relations[name].extend_indexes()

    def _head_sink(self, clause: Clause, is_new: bool, change: Change, is_gain: bool, noted: int) -> Sink:
        if noted == IF_CERTAIN and has_negation(clause):
            noted = NOTHING
        head = self._relations[clause.head]
        column, step = self._counted(change, clause.is_recursive)

        def sink(block: Matrix, used: int) -> None:
            if is_new:
                head.reserve(head.used + used)
            entries, listed = self._lists.begin(head, used)
            listed = set_operators.apply_heads(
                head.home, block, used, column, step, is_new, is_gain, noted, self._stamp, entries, listed
            )
            self._lists.finish(head, listed, used)

        return sink

    def _counted(self, change: Change, is_recursive: bool) -> tuple[int, int]:
        """The column that counts derivations by recursive rules or others (-1: none does), and by how much each of them
        changes it."""
        if change is Change.NOTHING or not (self._has_recursive if is_recursive else self._has_nonrecursive):
            return -1, 0
        return (NEW, RECURSIVE * change.value) if is_recursive else (COUNT, change.value)

    def _entry_sink(self, head: KernelRelation) -> Sink:
        is_marking = self._noted != NOTHING

        def sink(block: Matrix, used: int) -> None:
            entries, listed = self._lists.begin(head, used)
            listed = set_operators.list_entries(block, used, head.touched, is_marking, self._stamp, entries, listed)
            self._lists.finish(head, listed, used)

        return sink

    def _body_sink(self, clause: Clause) -> Sink:
        scans = clause.scans
        own = [(i + 1, self._relations[scan.relation]) for i, scan in enumerate(scans) if scan.relation in self.own]

        def sink(block: Matrix, used: int) -> None:
            for word, relation in own:
                entries, listed = self._lists.begin(relation, used)
                listed = set_operators.list_rows(relation.home, block, used, word, self._stamp, entries, listed)
                self._lists.finish(relation, listed, 0)
            self._watch.derived(used)

        return sink
