"""The update of a stratum in which equivalences form classes: classes that a change may concern are formed anew, with
all that follows from them, and the others stay.

Levels say how far that goes. A derivation fires one above the highest level that it rests on, that of a pair being the
level at which its members came together. If what it rests on changes, so may its head, but only if it fired at the
head's level: other derivations than those are not why the head is where it is. So

    what changes below, and whatever fired through it at the level of its head, and so on, is forgotten: facts, and
    whole classes;
    what is forgotten is looked for in what is left, and comes back in the order of levels, with what follows from it.

What comes out lower than it was in something that had not been forgotten, or joins two such classes, is forgotten in
its turn, and all of it begins again. A derivation may be found twice: in such a stratum every count is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from elastalog.backends.kernel.bootstrap.merging import Merging
from elastalog.backends.kernel.execution.aggregates import rows_by_key, rows_of_keys
from elastalog.backends.kernel.execution.bound_variant import Scratch, Sink
from elastalog.backends.kernel.execution.classes import MEMBER, Members, rows_of_classes
from elastalog.backends.kernel.execution.delta_variant import BEFORE, NOW, Phase
from elastalog.backends.kernel.execution.equivalence import Equivalence
from elastalog.backends.kernel.execution.join_levels import LEVELS
from elastalog.backends.kernel.levels.merging_plan import MergingPlan, Telling
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT, OLD, REFERENCE, ROW
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import levels_now
from elastalog.backends.rows import are_in, distinct
from elastalog.backends.watch import BudgetExceeded, Watch

_ATTEMPTS = 8
"""How often more may be forgotten before all is."""

Facts = dict[str, Matrix]


class MergingUpdate:
    """An update of such a stratum under way. `below` are the changed entries of the relations it reads, `deleted` and
    `inserted` its explicit facts that go and come."""

    def __init__(
        self,
        plan: MergingPlan,
        relations: Mapping[str, KernelRelation],
        below: Mapping[str, Vector],
        deleted: Mapping[str, Matrix],
        inserted: Mapping[str, Matrix],
        watch: Watch,
        scratch: Scratch,
    ) -> None:
        self.own = plan.own
        self._plan = plan
        self._relations = dict(relations)
        self._below = below
        self._deleted = {name: facts for name, facts in deleted.items() if name in plan.own}
        self._inserted = {name: facts for name, facts in inserted.items() if name in plan.own}
        self._watch = watch
        self._scratch = scratch
        self._equivalences = {
            pairs: Equivalence(relations[pairs], relations[classes], has_levels=True, is_merged=True)
            for pairs, classes in plan.classes.items()
        }
        self._mergings = {pairs: Merging() for pairs in plan.classes}
        self._is_forgetting = True
        self._level = 0
        self._found: dict[str, list[tuple[Matrix, Vector]]] = {}
        self._escaped: dict[str, list[Matrix]] = {}

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        concerned = self._first_concerned()
        for _ in range(_ATTEMPTS):
            self._forget(concerned)
            if self._settle():
                self._name_classes()
                return
            for name in self.own:
                transaction.rollback(self._relations[name])
            for name, facts in self._escaped.items():
                concerned[name] = np.concatenate((*([concerned[name]] if name in concerned else []), *facts))
        raise BudgetExceeded("other classes were concerned again and again")

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        changed = {}
        for name in self.own:
            entries = transaction.changed_entries(self._relations[name], is_level_change=False)
            if len(entries):
                changed[name] = entries
        return changed

    def abandon(self) -> None:
        """What is under way needs nothing but a rollback."""

    # --- what is concerned -----------------------------------------------------------------------------------------

    def _first_concerned(self) -> Facts:
        """The facts that are concerned by what has changed below, and those that are explicit no more, or now."""
        self._run_changes(BEFORE)
        found = self._kept_by(self._take(), is_loss=True)
        self._run_changes(NOW)
        for facts in (self._kept_by(self._take(), is_loss=False), self._deleted, self._inserted):
            for name, some in facts.items():
                found[name] = np.concatenate((found[name], some)) if name in found else some
        return found

    def _kept_by(self, found: dict[str, tuple[Matrix, Vector]], *, is_loss: bool) -> Facts:
        """Of heads with the level at which a derivation fires those that depend on it: that it does not, or that it
        does, changes their level."""
        kept = {}
        for name, (facts, fires) in found.items():
            levels = self._levels(name, facts)
            depends = (fires <= levels) & (levels < ABSENT) if is_loss else fires < levels
            if depends.any():
                kept[name] = facts[depends]
        return kept

    def _forget(self, concerned: Facts) -> None:
        """Forgets some facts, and whole classes of pairs; and, to its end, what depends on what is forgotten."""
        self._is_forgetting = True
        self._mergings = {pairs: Merging() for pairs in self._plan.classes}
        while concerned:
            for name, facts in concerned.items():
                if name in self._plan.classes:
                    self._touch_classes(name, facts)
                else:
                    relation = self._relations[name]
                    rows = np.unique(relation.find(facts))
                    self._touch(relation, rows[rows >= 0])
            concerned = self._kept_by(self._take(), is_loss=True)
        for name in self.own:
            relation = self._relations[name]
            every = np.arange(relation.touched_used, dtype=np.int32)
            transaction.set_annotation(relation, every, 0, is_present=False)
        self._is_forgetting = False

    def _touch_classes(self, name: str, pairs: Matrix) -> None:
        classes, stored = self._relations[self._plan.classes[name]], self._relations[name]
        rows = rows_of_classes(classes, pairs)
        rows = rows[classes.level[rows] < REFERENCE]
        members = classes.rows[rows, :1]
        self._watch.derived(0, len(members))
        transaction.touch(stored, rows_of_keys(stored, MEMBER, np.ascontiguousarray(members)))
        self._touch(classes, rows)

    def _touch(self, relation: KernelRelation, rows: Vector) -> None:
        """Forgets rows that are there, and finds what follows from them."""
        rows = rows[relation.level[rows] < ABSENT]
        entries = transaction.touch(relation, rows)
        tellings = self._plan.forward.get(relation.name, ())
        self._run([telling for telling in tellings if not telling.is_repeated], entries, BEFORE)

    # --- what comes back, and what comes ---------------------------------------------------------------------------

    def _settle(self) -> bool:
        """Has what is found enter in the order of levels, and finds what follows from it, as long as there is any.
        False if something has `escaped`: it should have been forgotten, and was not."""
        self._level = 0
        self._escaped = {}
        waiting: dict[int, dict[str, list[Matrix]]] = {0: self._explicit()}
        self._look_again()
        self._run_changes(NOW)
        while True:
            for name, (facts, fires) in self._take().items():
                for level in set(fires.tolist()):
                    waiting.setdefault(level, {}).setdefault(name, []).append(facts[fires == level])
            if not waiting:
                return True
            self._level = min(waiting)
            entered = [
                (relation, entries)
                for name, parts in waiting.pop(self._level).items()
                for relation, entries in self._enter(name, distinct(np.concatenate(parts)))
            ]
            if self._escaped:
                return False
            for relation, entries in entered:
                self._run(self._plan.forward.get(relation, ()), entries, NOW)

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
        """Offers what is derived still of what is forgotten."""
        plan = self._plan
        for name, tellings in plan.again.items():
            relation = self._relations[plan.classes.get(name, name)]
            if not relation.touched_used:
                continue
            facts = relation.rows[relation.touched[: relation.touched_used, ROW]]
            wanted = self._relations[plan.wanted_name(name)] = plan.wanted(name, facts)
            for telling in tellings:
                telling.variant.run_range(
                    self._relations, plan.flat, 0, wanted.used, None, self._scratch, self._sink(telling)
                )

    def _enter(self, name: str, facts: Matrix) -> Iterable[tuple[str, Vector]]:
        """Facts enter at this level. Returns the entries that others may follow from, by relation."""
        if name in self._plan.classes:
            return self._join(name, facts)
        relation = self._relations[name]
        rows = transaction.add_rows(relation, facts)
        levels = levels_now(relation, rows)
        self._let_escape(name, facts[(levels > self._level) & (levels < ABSENT)])
        return [(name, self._add(relation, rows[levels >= ABSENT], self._level))]

    def _join(self, name: str, pairs: Matrix) -> Iterable[tuple[str, Vector]]:
        are_outside = self._are_outside(name, pairs)
        if are_outside.any():
            is_any, is_every = are_outside[:, 0] | are_outside[:, 1], are_outside[:, 0] & are_outside[:, 1]
            is_other = is_any & ~is_every
            is_other[is_every] = self._levels(name, pairs[is_every]) > self._level
            self._let_escape(name, pairs[is_other])
            pairs = pairs[~is_any]
        merging, stored = self._mergings[name], self._relations[name]
        new = merging.join(pairs)
        kept = pairs if self._level == 0 else new
        if len(kept):
            self._add(stored, transaction.add_rows(stored, kept), self._level)
        classes = self._relations[self._plan.classes[name]]
        moved = merging.moved()
        if not len(moved):
            return []
        self._watch.derived(0, len(moved))
        return [(classes.name, self._add(classes, transaction.add_rows(classes, moved), 1))]

    def _add(self, relation: KernelRelation, rows: Vector, level: int) -> Vector:
        entries = transaction.touch(relation, rows)
        transaction.set_annotation(relation, entries, level, is_present=True)
        return entries

    def _let_escape(self, name: str, facts: Matrix) -> None:
        if len(facts):
            self._escaped.setdefault(name, []).append(facts)

    def _name_classes(self) -> None:
        """Of the rows by which classes have grown one is left for each member, with the least of its class."""
        for pairs, name in self._plan.classes.items():
            classes = self._relations[name]
            every = np.arange(classes.touched_used, dtype=np.int32)
            transaction.set_annotation(classes, every, 0, is_present=False)
            rows = self._mergings[pairs].rows()
            if len(rows):
                self._add(classes, transaction.add_rows(classes, rows), 1)

    # --- levels ----------------------------------------------------------------------------------------------------

    def _levels(self, name: str, facts: Matrix) -> Vector:
        """The levels of some facts, ABSENT of those that are not there; of pairs of which neither member is forgotten,
        those at which they came together."""
        levels = np.full(len(facts), ABSENT, np.int32)
        if name in self._equivalences:
            is_there = self._equivalences[name].contains(facts)
            levels[is_there] = self._chains(name, facts[is_there])
            return levels
        rows = self._relations[name].find(facts)
        is_there = rows >= 0
        levels[is_there] = np.minimum(levels_now(self._relations[name], rows[is_there]), ABSENT)
        return levels

    def _chains(self, name: str, pairs: Matrix) -> Vector:
        """The levels at which the members of pairs came together; 0 in a class that has been forgotten, where it is no
        more than the level that is reached."""
        levels = np.zeros(len(pairs), np.int32)
        is_outside = ~self._mergings[name].knows(pairs[:, 0])
        if is_outside.any():
            levels[is_outside] = self._equivalences[name].levels_of_chains(pairs[is_outside])
        return levels

    def _are_outside(self, name: str, pairs: Matrix) -> Matrix:
        """Which members of pairs are in classes that have not been forgotten."""
        classes = self._relations[self._plan.classes[name]]
        members = Members(pairs)
        places, _ = rows_by_key(classes, MEMBER, members.words.reshape(-1, 1))
        is_member = np.zeros(len(members), np.bool_)
        is_member[places] = True
        is_outside: Vector = is_member & ~self._mergings[name].knows(members.words)
        found: Matrix = is_outside[members.places(pairs)]
        return found

    # --- derivations -----------------------------------------------------------------------------------------------

    def _run_changes(self, phase: Phase) -> None:
        """Offers the heads of what fired through what has gone, or fires through what has come."""
        for name, changed in self._below.items():
            for telling in self._plan.forward.get(name, ()):
                entries = telling.variant.concerned(self._relations[name], changed, phase)
                self._run([telling], entries, phase)

    def _run(self, tellings: Iterable[Telling], entries: Vector, phase: Phase) -> None:
        if len(entries):
            for telling in tellings:
                telling.variant.run(
                    self._relations, self._plan.flat, entries, phase, self._scratch, self._sink(telling)
                )

    def _sink(self, telling: Telling) -> Sink:
        """Takes derivations: their heads, and the levels at which they fire."""
        width, found = telling.width, self._found.setdefault(telling.head, [])

        def take(block: Matrix, used: int) -> None:
            self._watch.derived(used)
            facts = block[:used]
            facts = facts[self._are_news(telling.head, np.ascontiguousarray(facts[:, :width]))]
            if not len(facts):
                return
            fires = np.maximum(facts[:, -LEVELS], 0 if self._is_forgetting else self._level)
            for i, name in enumerate(telling.read):
                first = width + 2 * i
                fires = np.maximum(fires, self._chains(name, np.ascontiguousarray(facts[:, first : first + 2])))
            found.append((facts[:, :width].copy(), fires + np.int32(1)))

        return take

    def _are_news(self, name: str, facts: Matrix) -> Vector:
        """Which of some heads say anything: those that have not been forgotten yet, while others are; and later the
        pairs that are not in one class yet."""
        if self._is_forgetting:
            relation = self._relations[name]
            if name in self._plan.classes:
                return ~self._are_forgotten(name, facts[:, 0])
            rows = relation.find(facts)
            return (rows < 0) | (relation.level[rows] < REFERENCE)
        if name in self._plan.classes:
            return ~self._mergings[name].are_joined(facts)
        return np.ones(len(facts), np.bool_)

    def _are_forgotten(self, name: str, members: Vector) -> Vector:
        """Which of some members are of classes that are being forgotten."""
        classes = self._relations[self._plan.classes[name]]
        known = Members(members)
        places, rows = rows_by_key(classes, MEMBER, known.words.reshape(-1, 1))
        is_forgotten = np.zeros(len(known), np.bool_)
        is_forgotten[places] = classes.level[rows] >= REFERENCE
        found: Vector = is_forgotten[known.places(members)]
        return found

    def _take(self) -> dict[str, tuple[Matrix, Vector]]:
        """What has been found, by the relation of the head, with the level at which it fires."""
        found = {
            name: (np.concatenate([facts for facts, _ in parts]), np.concatenate([fires for _, fires in parts]))
            for name, parts in self._found.items()
            if parts
        }
        for parts in self._found.values():
            parts.clear()
        return found
