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

A row of classes has no level: that of a pair is a matter of two members. So every variant tells, behind the head, the
two members of each pair that it reads of an equivalence of its own stratum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from elastalog.backends.kernel.bootstrap.merging import Merging
from elastalog.backends.kernel.execution.aggregates import rows_of_keys
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.execution.classes import MEMBER, Equivalence, Members, known_members, rows_of_classes
from elastalog.backends.kernel.execution.level_views import BEFORE, LEVELS, NOW
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting, Sink
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT, IS, MARKS, OLD, REFERENCE, ROW, WAS
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.kernel.store.transaction import StratumDelta
from elastalog.backends.rows import are_in, distinct
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum, Scan, Test
from elastalog.planning.variants import plan_from_goal, plan_wanted
from elastalog.settings import SETTINGS

_WANTED = "@wanted."
"""What the relation of heads that are looked for is called, before the name of theirs."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A variant that is enumerated. `width`: that of its head, behind which stand two members for each of the
    equivalences `read`. `is_repeated`: it starts at the second member of a pair; where whole classes are looked at, the
    one that starts at the first finds the same."""

    enumerator: Enumerator
    width: int
    read: tuple[str, ...]
    is_repeated: bool

    @property
    def head(self) -> str:
        return self.enumerator.variant.clause.head


class MergingPlan:
    """`classes`: by equivalence the relation of its classes. `forward`: variants by the relation that they start at;
    `again`: those that find what is derived, by the relation of their heads: of an equivalence with a first member that
    is wanted, of others the facts that are."""

    def __init__(self, stratum: LogicalStratum, binder: Binder) -> None:
        relations = binder.relations
        self.own = stratum.relations
        self.classes = {rule.pairs: rule.relation for rule in stratum.merges}
        self._equivalence_of = {rule.relation: rule.pairs for rule in stratum.merges}
        self.plain = tuple(n for n in self.own if n not in self.classes and n not in self._equivalence_of)
        """The relations that are no equivalences."""
        heads = (*self.classes, *self.plain)
        self._key_width = {name: 1 if name in self.classes else relations[name].width for name in heads}
        wanted = {self.wanted_name(name): self.wanted(name, relations[name].rows[:0]) for name in heads}
        self.flat = frozenset((*stratum.reads, *self._equivalence_of, *wanted))
        self._binder, self._statistics = binder, KernelStatistics({**relations, **wanted})
        self.forward: dict[str, list[Telling]] = {}
        self.again: dict[str, list[Telling]] = {name: [] for name in heads}
        for clause in stratum.clauses:
            self._add(clause, relations[clause.head].width)

    def _add(self, clause: Clause, width: int) -> None:
        pairs = self._pairs_read(clause)
        read = tuple(self._equivalence_of[relation] for relation, _ in pairs)
        # The members that these goals read the representatives of.
        told: list[Any] = [scan.terms[0] for scans in pairs.values() for _, scan in (scans[0], scans[-1])]
        telling = replace(clause, head_terms=(*clause.head_terms, *told))
        second = {position for scans in pairs.values() for position, _ in scans[1:]}
        for position, goal in enumerate(clause.goals):
            if not isinstance(goal, Test):
                started = Enumerator(self._binder.bind(plan_from_goal(telling, position, self._statistics)))
                found = Telling(started, width, read, position in second)
                self.forward.setdefault(goal.relation, []).append(found)
        name = clause.head
        wanted = Scan(self.wanted_name(name), clause.head_terms[: self._key_width[name]])
        again = Enumerator(self._binder.bind(plan_wanted(telling, wanted, self._statistics)))
        self.again[name].append(Telling(again, width, read, is_repeated=False))

    def _pairs_read(self, clause: Clause) -> dict[tuple[str, object], list[tuple[int, Scan]]]:
        """The goals that read classes of the stratum, with their positions, those of one pair together."""
        found: dict[tuple[str, object], list[tuple[int, Scan]]] = {}
        for position, goal in enumerate(clause.goals):
            if isinstance(goal, Scan) and goal.relation in self._equivalence_of:
                found.setdefault((goal.relation, goal.terms[1]), []).append((position, goal))
        return found

    def prepare(self, relations: Mapping[str, KernelRelation]) -> None:
        """Makes the indexes an update needs."""
        for variants in (*self.forward.values(), *self.again.values()):
            for telling in variants:
                telling.enumerator.variant.prepare(relations)
        for pairs, classes in self.classes.items():
            relations[pairs].index((0,))
            for column in (0, 1):
                relations[classes].index((column,))

    def wanted_name(self, relation: str) -> str:
        """What the relation of what is wanted of another is called."""
        return _WANTED + relation

    def wanted(self, name: str, facts: Matrix) -> KernelRelation:
        """What is wanted of a relation: some facts, of an equivalence their first members."""
        width = self._key_width[name]
        relation = KernelRelation(self.wanted_name(name), width, is_annotated=True)
        relation.load(np.ascontiguousarray(facts[:, :width]))
        return relation


class MergingLevels:
    """First facts and classes are forgotten, which means that their rows are touched: all levels are those of the
    epoch before. Later these classes grow anew, in `mergings`, up to the level that is `reached`; all others are
    *outside*, and as they were."""

    def __init__(self, classes: Mapping[str, str], relations: Mapping[str, KernelRelation]) -> None:
        self._classes = {pairs: relations[name] for pairs, name in classes.items()}
        self._relations = relations
        self._equivalences = {
            pairs: Equivalence(relations[pairs], held, has_levels=True, is_merged=True)
            for pairs, held in self._classes.items()
        }
        self.begin()

    def begin(self) -> None:
        """Nothing is forgotten yet."""
        self.mergings = {pairs: Merging() for pairs in self._classes}
        self.is_forgetting = True
        self.reached = 0

    def of_facts(self, name: str, facts: Matrix) -> Vector:
        """The levels of some facts, ABSENT of those that are not there; of pairs that are outside those at which their
        members came together."""
        levels: Vector = np.full(len(facts), ABSENT, np.int32)
        if name in self._equivalences:
            is_there = self._equivalences[name].contains(facts)
            if is_there.any():
                levels[is_there] = self._equivalences[name].levels_of_chains(facts[is_there])
            return levels
        rows = self._relations[name].find(facts)
        is_known = rows >= 0
        levels[is_known] = np.minimum(levels_now(self._relations[name], rows[is_known]), ABSENT)
        return levels

    def of_pairs_read(self, name: str, pairs: Matrix) -> Vector:
        """The levels at which the members of pairs, which are there, came together; 0 in a class that grows, where it
        is no more than what is reached."""
        levels: Vector = np.zeros(len(pairs), np.int32)
        is_outside = ~self.mergings[name].knows(pairs[:, 0])
        if is_outside.any():
            levels[is_outside] = self._equivalences[name].levels_of_chains(pairs[is_outside])
        return levels

    def are_outside(self, name: str, pairs: Matrix) -> Matrix:
        """Which members of pairs are in classes that have not been forgotten."""
        members, rows = known_members(self._classes[name], pairs)
        is_outside: Vector = (rows >= 0) & ~self.mergings[name].knows(members.words)
        found: Matrix = is_outside[members.places(pairs)]
        return found

    def are_news(self, name: str, facts: Matrix) -> Vector:
        """Which of some heads say anything: those that are not forgotten yet, while others are; and later, of pairs,
        those that are not in one class yet."""
        if not self.is_forgetting:
            is_equivalence = name in self._classes
            return ~self.mergings[name].are_joined(facts) if is_equivalence else np.ones(len(facts), np.bool_)
        if name in self._classes:
            members, rows = known_members(self._classes[name], facts[:, 0])
            is_forgotten: Vector = (rows >= 0) & (self._classes[name].level[rows] >= REFERENCE)
            return ~is_forgotten[members.places(facts[:, 0])]
        relation = self._relations[name]
        rows = relation.find(facts)
        are_news: Vector = (rows < 0) | (relation.level[rows] < REFERENCE)
        return are_news


_MOST = 1 << 20
"""Derivations that are held before they are looked at: to ask for levels takes a look at whole classes."""


class MergingDerivations:
    """Runs variants, and keeps the heads that they find until these are taken. A derivation may be found twice."""

    def __init__(
        self,
        plan: MergingPlan,
        relations: dict[str, KernelRelation],
        levels: MergingLevels,
        watch: Watch,
        workspace: Workspace,
    ) -> None:
        self._plan = plan
        self._relations = relations
        self._levels = levels
        self._watch = watch
        self._setting = Setting(relations, plan.flat, workspace, watch)
        self._held: dict[Telling, list[Matrix]] = {}
        self._number = 0
        self._found: dict[str, list[Matrix]] = {}

    def through_changes(self, below: Mapping[str, Vector], phase: int) -> None:
        """What fired through what has gone below, or fires through what has come."""
        for name, changed in below.items():
            marks = self._relations[name].touched[changed, MARKS] & (WAS | IS)
            for telling in self._plan.forward.get(name, ()):
                is_gone = (phase == BEFORE) != telling.enumerator.variant.is_negated_start
                self._run([telling], changed[marks == (WAS if is_gone else IS)], phase)

    def through(self, relation: str, entries: Vector, phase: int) -> None:
        """What fired, or fires, through facts of the stratum."""
        tellings = self._plan.forward.get(relation, ())
        whole = self._levels.is_forgetting  # classes, and not some rows of them
        self._run([telling for telling in tellings if not (whole and telling.is_repeated)], entries, phase)

    def of(self, name: str, facts: Matrix) -> None:
        """What has some heads still; of an equivalence, what is a pair of a member of these."""
        plan = self._plan
        wanted = self._relations[plan.wanted_name(name)] = plan.wanted(name, facts)
        for telling in plan.again[name]:
            sink = self._sink(telling)
            telling.enumerator.of_rows(self._setting, (0, wanted.used), sink)

    def take(self) -> dict[str, tuple[Matrix, Vector]]:
        """The heads that have been found, and the levels at which their derivations fire, by relation."""
        self._look()
        found = {name: np.concatenate(parts) for name, parts in self._found.items()}
        self._found.clear()
        return {name: (np.ascontiguousarray(heads[:, :-1]), heads[:, -1]) for name, heads in found.items()}

    def _run(self, tellings: Iterable[Telling], entries: Vector, phase: int) -> None:
        if len(entries):
            for telling in tellings:
                sink = self._sink(telling)
                telling.enumerator.of_entries(self._setting, entries, phase, sink)

    def _sink(self, telling: Telling) -> Sink:
        held = self._held.setdefault(telling, [])
        name, width = telling.head, telling.width

        def hold(block: Matrix, used: int) -> None:
            self._watch.derived(used)
            some = block[:used]
            some = some[self._levels.are_news(name, np.ascontiguousarray(some[:, :width]))]
            if len(some):
                held.append(some)
                self._number += len(some)
                if self._number > _MOST:
                    self._look()

        return hold

    def _look(self) -> None:
        """Finds out where the derivations fire that are held."""
        for telling, held in self._held.items():
            if held:
                some = held[0] if len(held) == 1 else np.concatenate(held)
                held.clear()
                self._found.setdefault(telling.head, []).append(distinct(self._firing(telling, some)))
        self._number = 0

    def _firing(self, telling: Telling, some: Matrix) -> Matrix:
        """Heads, and behind each the level at which its derivation fires."""
        width = telling.width
        highest = np.maximum(some[:, -LEVELS], self._levels.reached)
        for i, name in enumerate(telling.read):
            pairs = np.ascontiguousarray(some[:, width + 2 * i : width + 2 * i + 2])
            highest = np.maximum(highest, self._levels.of_pairs_read(name, pairs))
        found = np.empty((len(some), width + 1), np.int32)
        found[:, :width], found[:, width] = some[:, :width], highest + 1
        return found


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
            # A derivation that fired before has its head there for that reason.
            is_there = is_loss and name in self._plan.classes
            levels = self._levels.of_pairs_read(name, facts) if is_there else self._levels.of_facts(name, facts)
            depends = fires <= levels if is_loss else fires < levels
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
            _take_all_away(self._relations[name])
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
        return [(name, transaction.put(relation, rows[levels > level], level))]

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
            transaction.put(self._relations[name], transaction.add_rows(self._relations[name], kept), level)
        moved = merging.moved()
        if not len(moved):
            return []
        self._watch.derived(0, len(moved))
        classes = self._relations[self._plan.classes[name]]
        return [(classes.name, transaction.put(classes, transaction.add_rows(classes, moved), 1))]

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
            _take_all_away(classes)
            rows = merging.rows()
            if len(rows):
                transaction.put(classes, transaction.add_rows(classes, rows), 1)


def _take_all_away(relation: KernelRelation) -> None:
    """What has been touched is absent."""
    every = np.arange(relation.touched_used, dtype=np.int32)
    transaction.set_annotation(relation, every, 0, is_present=False)


def _add_to(facts: Facts, name: str, more: Matrix) -> None:
    facts[name] = np.concatenate((facts[name], more)) if name in facts else more
