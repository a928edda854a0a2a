"""The part of the derivation graph that proofs have led through so far. What follows from it does follow, and more may:
what it takes to cut all known proofs is a lower bound of what it takes to cut all.

`ProofGrowth` finds proofs in a state that is being tried, and adds them. A derivation by a clause with negations stands
as long as the negated facts stay absent, one of an aggregate as long as no further member comes. What could change that
is its guard: nothing, if the fact cannot hold in any state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.bracket import instances, places
from elastalog.debugging.dependencies import BOTH, NEGATIVE, POSITIVE
from elastalog.debugging.investigation import limits_for
from elastalog.debugging.problem import NOTHING, Concern, Problem, Switches
from elastalog.debugging.sandbox import NoState, WordSet, update_of
from elastalog.evaluation.changes import Update
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.explain import Setting
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import written_out
from elastalog.settings import SETTINGS

EXPLICIT = -1
"""Stands for a derivation of an explicit fact."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A derivation of a fact from others. It stands wherever `guard` is as in the state in which it was met, where the
    switches in `flipped` were flipped."""

    head: WordFact
    bodies: tuple[WordFact, ...]
    guard: Concern
    flipped: frozenset[int]


class KnownProofs:
    """Grows by derivations."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self.derivations: list[Guarded] = []
        self._met: set[Guarded] = set()
        self._uses: dict[WordFact, list[int]] = {}
        self._bare: list[int] = []
        self.leaves: dict[WordFact, int | None] = {}
        """The explicit facts that were met, with their switches."""

    def add(self, derivation: Guarded) -> None:
        if derivation in self._met:
            return
        self._met.add(derivation)
        number = len(self.derivations)
        self.derivations.append(derivation)
        for body in set(derivation.bodies):
            self._uses.setdefault(body, []).append(number)
        if not derivation.bodies:
            self._bare.append(number)

    def state(self, flipped: frozenset[int]) -> KnownState:
        """What follows where some switches are flipped."""
        by: dict[WordFact, int] = {}
        missing = [len(set(derivation.bodies)) for derivation in self.derivations]
        switches = self._switches.known
        is_on = (n is None or switches[n].is_on(n in flipped) for n in self.leaves.values())
        pending = list(compress(self.leaves, is_on))
        by.update(dict.fromkeys(pending, EXPLICIT))
        for number in self._bare:
            self._fire(number, flipped, by, pending)
        place = 0
        while place < len(pending):  # first in, first out: proofs are low
            for number in self._uses.get(pending[place], ()):
                missing[number] -= 1
                if not missing[number]:
                    self._fire(number, flipped, by, pending)
            place += 1
        return KnownState(self, by)

    def _fire(self, number: int, flipped: frozenset[int], by: dict[WordFact, int], pending: list[WordFact]) -> None:
        derivation = self.derivations[number]
        if derivation.head not in by and self._is_guarded(derivation, flipped):
            by[derivation.head] = number
            pending.append(derivation.head)

    def _is_guarded(self, derivation: Guarded, flipped: frozenset[int]) -> bool:
        guard = derivation.guard
        if not guard:
            return True
        differing = flipped ^ derivation.flipped
        return not differing or differing.isdisjoint((*guard.switches, *self._switches.deletions(guard.relations)))


@dataclass(frozen=True, slots=True)
class KnownState:
    """What follows from the known part of the graph in one state, and by which derivation."""

    _proofs: KnownProofs
    _by: dict[WordFact, int]

    def holds(self, fact: WordFact) -> bool:
        return fact in self._by

    def concern(self, fact: WordFact) -> Concern:
        """What a fact rests on here."""
        switches: set[int] = set()
        guards = NOTHING
        for used in self._proof(fact):
            number = self._by[used]
            if number == EXPLICIT:
                switch = self._proofs.leaves[used]
                if switch is not None:
                    switches.add(switch)
            else:
                guards |= self._proofs.derivations[number].guard
        return guards | Concern(frozenset(switches))

    def _proof(self, root: WordFact) -> Iterator[WordFact]:
        """The facts of a proof, each once, from above."""
        met = {root}
        pending = [root]
        for fact in pending:
            yield fact
            number = self._by[fact]
            bodies: Sequence[WordFact] = () if number == EXPLICIT else self._proofs.derivations[number].bodies
            for body in bodies:
                if body not in met:
                    met.add(body)
                    pending.append(body)


# --- further proofs --------------------------------------------------------------------------------------------------


@dataclass
class ProofGrowth:
    """Finds proofs in states that are being tried."""

    _problem: Problem
    _corners: Corners
    _proofs: KnownProofs

    def __post_init__(self) -> None:
        self._case, self._signs = self._problem.case, self._problem.signs
        self._flipped = frozenset[int]()
        self._went = WordSet(self._case.setting.backend.program)

    def grow(self, roots: Iterable[WordFact], flipped: frozenset[int], changes: Sequence[ChangedWords]) -> None:
        """Adds a proof of each of some facts that hold in the state being tried, which differs from the base in the
        switches flipped, and in `changes`, one after the other. Raises NeedsCorner."""
        known, aggregates = self._proofs.state(flipped), self._case.reading.aggregates
        self._flipped, self._went = flipped, WordSet(self._case.setting.backend.program)
        for each in changes:
            for name, (_, gone) in each.items():
                self._went.add(name, gone)
        steps = self._case.steps(is_any=True) if flipped else self._problem.base_steps()
        frontier = [fact for fact in dict.fromkeys(roots) if not known.holds(fact)]
        met = set(frontier)
        found: list[Guarded] = []
        explicit: list[WordFact] = []
        while frontier:
            following: list[WordFact] = []
            explicit += [fact for fact in frontier if not self._signs[fact[0]]]  # or is there in every state
            frontier = [fact for fact in frontier if self._signs[fact[0]]]
            steps.find(fact for fact in frontier if fact[0] not in aggregates)
            for fact in frontier:
                if fact[0] in aggregates:
                    derivation = self._folded(fact)
                else:
                    step = steps.known[fact]
                    if step.is_explicit:
                        explicit.append(fact)
                        continue
                    assert step.clause is not None
                    derivation = self._guarded(fact, step.bodies, self._guard(step.clause, fact, step.bodies))
                found.append(derivation)
                for body in derivation.bodies:
                    if body not in met:
                        met.add(body)
                        if not known.holds(body):
                            following.append(body)
            frontier = following
        # Only now, when all of it is known: in the order of the proof, so that what is next to the facts comes first.
        for fact in explicit:
            if fact not in self._proofs.leaves:
                self._proofs.leaves[fact] = self._problem.switches.number(fact)
        for derivation in found:
            self._proofs.add(derivation)

    def _guarded(self, head: WordFact, bodies: tuple[WordFact, ...], guard: Concern) -> Guarded:
        return Guarded(head, bodies, guard, self._flipped if guard else frozenset())

    def _guard(self, clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> Concern:
        found = NOTHING
        rivalled = self._case.reading.rivalled
        if head[0] in rivalled and head[0] not in self._problem.indifferent:  # to be derived is not enough
            found = self._concern(head[0], BOTH)
        for goal in clause.goals:
            if isinstance(goal, Absent) and self._signs[goal.relation]:
                fact = negated_fact(goal, clause, head, bodies, self._case.setting)
                # If it is not known, any fact of the relation may be meant.
                if fact is None or self._corners.can_hold(fact, holds_in_base=self._went.has(fact)):
                    found |= self._concern(goal.relation, POSITIVE)
        return found

    def _folded(self, fact: WordFact) -> Guarded:
        """A fact of an aggregate, from all members of its group unless they are very many."""
        aggregate = self._case.reading.aggregates[fact[0]]
        group = fact[1][: aggregate.groups]
        columns = tuple(range(aggregate.groups))
        members = self._case.setting.backend.select(aggregate.members, columns, np.array(group, np.int32))
        if len(members.words) > SETTINGS.members_proved:
            return self._guarded(fact, (), self._concern(fact[0], BOTH))
        bodies = [(aggregate.members, tuple(row)) for row in members.words.tolist()]
        if aggregate.domain is not None:
            bodies.append((aggregate.domain, tuple(group)))
        sought = BOTH if aggregate.is_numbering else POSITIVE
        return self._guarded(fact, tuple(bodies), self._concern(aggregate.members, sought))

    def _concern(self, relation: str, sought: int) -> Concern:
        return self._problem.switches.concern(self._signs, relation, sought, self._flipped)


def negated_fact(
    goal: Absent, clause: Clause, head: WordFact, bodies: Sequence[WordFact], setting: Setting
) -> WordFact | None:
    """The fact whose absence a derivation uses; None if a value of it is computed, or met in no fact so far."""
    place, facts = places(clause), (*bodies, head)

    def word_of(variable: str) -> int | None:
        scan, column = place.get(variable, (None, 0))
        return None if scan is None else facts[scan][1][column]

    row = instances(goal.terms, setting.backend.program.relations[goal.relation].bases, word_of, 1, setting.dictionary)
    return None if row is None else (goal.relation, tuple(row[0].tolist()))


class NeedsCorner(Exception):
    """The most favourable state of a relation has to be tried, from the base."""

    def __init__(self, relation: str) -> None:
        super().__init__(relation)
        self.relation = relation


class Corners:
    """Tells whether a fact that a rule negates can hold in any state: it is looked up in the state most favourable to
    its relation, if the relation depends on each relation of switches in one way only. The facts gained there are the
    corners of the problem; None where they are not known."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._came = problem.corners
        self._program = problem.case.setting.backend.program

    def can_hold(self, fact: WordFact, holds_in_base: bool) -> bool:
        """Whether a fact holds in some state; True also where that is not known. Raises NeedsCorner."""
        name = fact[0]
        if holds_in_base or BOTH in self._problem.signs[name].values():
            return True
        if name not in self._came:
            if self._favourable(name).size:
                raise NeedsCorner(name)
            self._came[name] = WordSet(self._program)
        came = self._came[name]
        return came is None or came.has(fact)

    def _favourable(self, relation: str) -> Update:
        """What leads from the base to the state most favourable to a relation."""
        signs, switches = self._problem.signs[relation], self._problem.switches
        given = [
            switch
            for switch in switches.known[: switches.number_given]
            if switch.fact[0] in signs and switch.adds == (signs[switch.fact[0]] == POSITIVE)
        ]
        deleted = {n: words for n, words in switches.explicit.items() if signs.get(n, 0) == NEGATIVE}
        update = update_of(*([switch.fact for switch in given if switch.adds == adds] for adds in (False, True)))
        return replace(update, deleted={**deleted, **update.deleted})

    def try_corner(self, relation: str) -> None:
        """Tries the state most favourable to a relation. The backend must be in the base."""
        self._came[relation] = None
        limits = limits_for(self._problem.case, (relation,))
        with suppress(NoState, BudgetExceeded):
            with self._problem.sandbox.tried(self._favourable(relation), limits) as changes:
                came = WordSet(self._program)
                if relation in changes:
                    came.add(relation, written_out(changes[relation][0]))
            self._came[relation] = came
