"""The update of a stratum in which equivalences form classes: classes that a change may concern are formed anew, with
all that follows from them, and the others stay.

Levels say how far that goes. A derivation fires one above the highest level that it rests on, that of a pair being the
level at which its members came together. If what it rests on changes, so may its head, but only if it fired at the
head's level: other derivations are not why the head is where it is. So

    what changes below, and whatever fired through it at the level of its head, and so on, is forgotten: facts, and
    whole classes;
    what is forgotten is looked for in what is left, and comes back in the order of levels, with what follows from it.

What comes out lower than it was though it had not been forgotten, or joins a class that had not, has *escaped*. It is
taken for what it will be, to see what else escapes; then all of that is forgotten too, and it begins again. A
derivation may be found twice: in such a stratum every count is 1.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from elastalog.backends.kernel.execution.aggregates import rows_of_keys
from elastalog.backends.kernel.execution.classes import MEMBER, Members, rows_of_classes
from elastalog.backends.kernel.execution.level_views import BEFORE, NOW
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.merging.merging_plan import MergingDerivations, MergingLevels, MergingPlan
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT, OLD, REFERENCE, ROW
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.rows import are_in, distinct
from elastalog.backends.watch import BudgetExceeded
from elastalog.settings import SETTINGS

Facts = dict[str, Matrix]


class MergingUpdate:
    """An update of such a stratum under way."""

    def __init__(self, plan: MergingPlan, stratum_delta: StratumDelta, workspace: Workspace) -> None:
        self.own = plan.own
        self._plan = plan
        self._relations = dict(stratum_delta.relations)
        self._below, self._deleted, self._inserted = stratum_delta.below, stratum_delta.deleted, stratum_delta.inserted
        self._watch = stratum_delta.watch
        self._levels = MergingLevels(plan.classes, self._relations)
        self._derivations = MergingDerivations(plan, self._relations, self._levels, stratum_delta.watch, workspace)
        self._escaped: dict[str, list[Matrix]] = {}

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        concerned = self._first_concerned()
        for _ in range(SETTINGS.merging_attempts):
            self._forget(concerned)
            if self._settle():
                self._name_classes()
                return
            for name in self.own:
                transaction.rollback(self._relations[name])
            for name, facts in self._escaped.items():
                _add_to(concerned, name, np.concatenate(facts))
        raise BudgetExceeded("other classes were concerned again and again")

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        return transaction.changed_members(self._relations, self.own)

    def abandon(self) -> None:
        """What is under way needs nothing but a rollback."""

    # --- what is concerned -----------------------------------------------------------------------------------------

    def _first_concerned(self) -> Facts:
        """The facts that are concerned by what has changed below, and those that are explicit no more, or now."""
        self._derivations.through_changes(self._below, BEFORE)
        found = self._dependent(is_loss=True)
        self._derivations.through_changes(self._below, NOW)
        for facts in (self._dependent(is_loss=False), self._deleted, self._inserted):
            for name, some in facts.items():
                _add_to(found, name, some)
        return found

    def _dependent(self, *, is_loss: bool) -> Facts:
        """The heads of derivations just found that depend on them: their level differs without, or with them."""
        found = {}
        for name, (facts, fires) in self._derivations.take().items():
            if is_loss:
                depends = fires <= self._levels.of_heads(name, facts)
            else:
                depends = fires < self._levels.of_facts(name, facts)
            if depends.any():
                found[name] = facts[depends]
        return found

    def _forget(self, concerned: Facts) -> None:
        """Forgets some facts, and whole classes of pairs; and, to its end, what depends on what is forgotten."""
        self._levels.begin()
        while concerned:
            for name, facts in concerned.items():
                if name in self._plan.classes:
                    self._touch_classes(name, facts)
                else:
                    rows = np.unique(self._relations[name].find(facts))
                    self._touch(self._relations[name], rows[rows >= 0])
            concerned = self._dependent(is_loss=True)
        for name in self.own:
            relation = self._relations[name]
            every = np.arange(relation.touched_used, dtype=np.int32)
            transaction.set_annotation(relation, every, 0, is_present=False)
        self._levels.is_forgetting = False

    def _touch_classes(self, name: str, pairs: Matrix) -> None:
        classes, stored = self._relations[self._plan.classes[name]], self._relations[name]
        rows = rows_of_classes(classes, pairs)
        rows = rows[classes.level[rows] < REFERENCE]
        transaction.touch(stored, self._stored_rows(name, classes.rows[rows, 0]))
        self._touch(classes, rows)

    def _stored_rows(self, name: str, members: Vector) -> Vector:
        """The rows of the pairs that generate some classes, given their members."""
        self._watch.derived(0, len(members))
        return rows_of_keys(self._relations[name], MEMBER, np.ascontiguousarray(members.reshape(-1, 1)))

    def _touch(self, relation: KernelRelation, rows: Vector) -> None:
        """Forgets rows, if they are there, and finds what fired through them."""
        entries = transaction.touch(relation, rows[relation.level[rows] < ABSENT])
        self._derivations.through(relation.name, entries, BEFORE)

    # --- what comes back, and what comes ---------------------------------------------------------------------------

    def _settle(self) -> bool:
        """Has what is found enter in the order of levels, and finds what follows from it, until nothing new follows.
        False if something has escaped."""
        self._escaped = {}
        waiting: dict[int, dict[str, list[Matrix]]] = {0: self._explicit()}
        self._look_again()
        self._derivations.through_changes(self._below, NOW)
        while True:
            for name, (facts, fires) in self._derivations.take().items():
                for level in set(fires.tolist()):
                    waiting.setdefault(level, {}).setdefault(name, []).append(facts[fires == level])
            if not waiting:
                return not self._escaped
            self._levels.reached = min(waiting)
            entered = [
                (relation, entries)
                for name, parts in waiting.pop(self._levels.reached).items()
                for relation, entries in self._enter(name, distinct(np.concatenate(parts)))
            ]
            for relation, entries in entered:
                self._derivations.through(relation, entries, NOW)

    def _explicit(self) -> dict[str, list[Matrix]]:
        """The explicit facts among what is forgotten, and those that come."""
        found = {name: [facts] for name, facts in self._inserted.items()}
        for name in (*self._plan.classes, *self._plan.plain):
            relation = self._relations[name]
            touched = relation.touched[: relation.touched_used]
            facts = relation.rows[touched[touched[:, OLD] == 0, ROW]]
            if name in self._deleted and len(facts):
                facts = facts[~are_in(facts, self._deleted[name])]
            if len(facts):
                found.setdefault(name, []).append(facts)
        return found

    def _look_again(self) -> None:
        """Finds what is derived still of what is forgotten."""
        for name in self._plan.again:
            relation = self._relations[self._plan.classes.get(name, name)]
            if relation.touched_used:
                self._derivations.of(name, relation.rows[relation.touched[: relation.touched_used, ROW]])

    def _enter(self, name: str, facts: Matrix) -> Iterable[tuple[str, Vector]]:
        """Facts enter at the level that is reached. Returns the entries that others may follow from, by relation."""
        if name in self._plan.classes:
            return self._join(name, facts)
        relation, level = self._relations[name], self._levels.reached
        rows = transaction.add_rows(relation, facts)
        levels = levels_now(relation, rows)
        self._let_escape(name, facts[(levels > level) & (levels < ABSENT)])
        return [(name, _set(relation, rows[levels > level], level))]

    def _join(self, name: str, pairs: Matrix) -> Iterable[tuple[str, Vector]]:
        level, merging = self._levels.reached, self._levels.mergings[name]
        one, other = self._levels.are_outside(name, pairs).T
        if (one | other).any():
            both = one & other
            has_escaped = one ^ other
            has_escaped[both] = self._levels.of_facts(name, pairs[both]) > level
            if has_escaped.any():
                self._let_escape(name, pairs[has_escaped])
                merging.join(self._stored_with(name, pairs[has_escaped]))
            pairs = pairs[~(one | other) | has_escaped]
        new = merging.join(pairs)
        kept = pairs if level == 0 else new  # all that are explicit
        if len(kept):
            _set(self._relations[name], transaction.add_rows(self._relations[name], kept), level)
        moved = merging.moved()
        if not len(moved):
            return []
        self._watch.derived(0, len(moved))
        classes = self._relations[self._plan.classes[name]]
        return [(classes.name, _set(classes, transaction.add_rows(classes, moved), 1))]

    def _stored_with(self, name: str, pairs: Matrix) -> Matrix:
        """The pairs that generate the classes of members of some."""
        classes = self._relations[self._plan.classes[name]]
        members = Members(classes.rows[rows_of_classes(classes, pairs), 0])
        stored: Matrix = self._relations[name].rows[self._stored_rows(name, members.words)]
        return stored

    def _let_escape(self, name: str, facts: Matrix) -> None:
        if len(facts):
            self._escaped.setdefault(name, []).append(facts)

    def _name_classes(self) -> None:
        """Leaves, of the rows by which classes have grown, one for each member, with the least of its class."""
        for pairs, merging in self._levels.mergings.items():
            classes = self._relations[self._plan.classes[pairs]]
            every = np.arange(classes.touched_used, dtype=np.int32)
            transaction.set_annotation(classes, every, 0, is_present=False)
            rows = merging.rows()
            if len(rows):
                _set(classes, transaction.add_rows(classes, rows), 1)


def _set(relation: KernelRelation, rows: Vector, level: int) -> Vector:
    """Rows are there from now on, at a level. Returns their entries."""
    entries = transaction.touch(relation, rows)
    transaction.set_annotation(relation, entries, level, is_present=True)
    return entries


def _add_to(facts: Facts, name: str, more: Matrix) -> None:
    facts[name] = np.concatenate((facts[name], more)) if name in facts else more
