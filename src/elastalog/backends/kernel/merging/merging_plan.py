"""How a stratum is maintained in which equivalences form classes: the variants that an update runs, the derivations
that they find, and the levels at which these fire.

A row of classes has no level: that of a pair is a matter of two members. So every variant tells, behind the head, the
two members of each pair that it reads of an equivalence of its own stratum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.kernel.bootstrap.merging import Merging
from elastalog.backends.kernel.execution.aggregates import rows_by_key
from elastalog.backends.kernel.execution.bound_variant import Binder
from elastalog.backends.kernel.execution.classes import MEMBER, Equivalence, Members
from elastalog.backends.kernel.execution.level_views import BEFORE, LEVELS, Phase
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting, Sink
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.annotations import ABSENT, IS, MARKS, REFERENCE, WAS
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation, levels_now
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.rows import distinct
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum, Scan, Test
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_from_goal, plan_wanted

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
        told = [_member(clause, goal) for goals in pairs.values() for goal in (goals[0], goals[-1])]
        telling = replace(clause, head_terms=(*clause.head_terms, *told))
        second = {goal for goals in pairs.values() for goal in goals[1:]}
        for position, goal in enumerate(clause.goals):
            if not isinstance(goal, Test):
                started = self._bound(plan_from_goal(telling, position, self._statistics))
                found = Telling(started, width, read, position in second)
                self.forward.setdefault(goal.relation, []).append(found)
        name = clause.head
        wanted = Scan(self.wanted_name(name), clause.head_terms[: self._key_width[name]])
        again = self._bound(plan_wanted(telling, wanted, self._statistics))
        self.again[name].append(Telling(again, width, read, is_repeated=False))

    def _pairs_read(self, clause: Clause) -> dict[tuple[str, object], list[int]]:
        """The goals that read classes of the stratum, those of one pair together."""
        found: dict[tuple[str, object], list[int]] = {}
        for position, goal in enumerate(clause.goals):
            if isinstance(goal, Scan) and goal.relation in self._equivalence_of:
                found.setdefault((goal.relation, goal.terms[1]), []).append(position)
        return found

    def _bound(self, planned: Variant) -> Enumerator:
        return Enumerator(self._binder.bind(planned))

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


def _member(clause: Clause, goal: int) -> str | Constant:
    """The member that a goal reads the representative of."""
    literal = clause.goals[goal]
    assert isinstance(literal, Scan)
    member = literal.terms[0]
    assert member is not None
    return member


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

    def of_heads(self, name: str, facts: Matrix) -> Vector:
        """The levels of heads of derivations that fired before, which are there for that reason."""
        return self.of_pairs_read(name, facts) if name in self._equivalences else self.of_facts(name, facts)

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
        members = Members(pairs)
        places, _ = rows_by_key(self._classes[name], MEMBER, members.words.reshape(-1, 1))
        is_member = np.zeros(len(members), np.bool_)
        is_member[places] = True
        is_outside: Vector = is_member & ~self.mergings[name].knows(members.words)
        found: Matrix = is_outside[members.places(pairs)]
        return found

    def are_news(self, name: str, facts: Matrix) -> Vector:
        """Which of some heads say anything: those that are not forgotten yet, while others are; and later, of pairs,
        those that are not in one class yet."""
        if not self.is_forgetting:
            is_equivalence = name in self._classes
            return ~self.mergings[name].are_joined(facts) if is_equivalence else np.ones(len(facts), np.bool_)
        if name in self._classes:
            return ~self._are_forgotten(name, facts[:, 0])
        relation = self._relations[name]
        rows = relation.find(facts)
        are_news: Vector = (rows < 0) | (relation.level[rows] < REFERENCE)
        return are_news

    def _are_forgotten(self, name: str, members: Vector) -> Vector:
        """Which of some members are of classes that are forgotten."""
        classes, known = self._classes[name], Members(members)
        places, rows = rows_by_key(classes, MEMBER, known.words.reshape(-1, 1))
        is_forgotten = np.zeros(len(known), np.bool_)
        is_forgotten[places] = classes.level[rows] >= REFERENCE
        found: Vector = is_forgotten[known.places(members)]
        return found


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
        self._held: dict[int, tuple[Telling, list[Matrix]]] = {}
        self._number = 0
        self._found: dict[str, list[Matrix]] = {}

    def through_changes(self, below: Mapping[str, Vector], phase: Phase) -> None:
        """What fired through what has gone below, or fires through what has come."""
        for name, changed in below.items():
            marks = self._relations[name].touched[changed, MARKS] & (WAS | IS)
            for telling in self._plan.forward.get(name, ()):
                is_gone = (phase is BEFORE) != telling.enumerator.variant.is_negated_start
                self._run([telling], changed[marks == (WAS if is_gone else IS)], phase)

    def through(self, relation: str, entries: Vector, phase: Phase) -> None:
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

    def _run(self, tellings: Iterable[Telling], entries: Vector, phase: Phase) -> None:
        if len(entries):
            for telling in tellings:
                sink = self._sink(telling)
                telling.enumerator.of_entries(self._setting, entries, phase, sink)

    def _sink(self, telling: Telling) -> Sink:
        _, held = self._held.setdefault(id(telling), (telling, []))
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
        for telling, held in self._held.values():
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
