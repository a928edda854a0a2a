"""Finds proofs in a state that is being tried, and adds them to those that are known.

A derivation by a clause with negations is one as long as the negated facts stay absent, one of an aggregate as long as
no further member comes. What could change that is its guard: nothing, if the fact cannot hold in any state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import Backend, ChangedWords
from elastalog.debugging.known_proofs import Guarded, KnownProofs
from elastalog.debugging.open_corners import OpenCorners
from elastalog.debugging.open_switches import NOTHING, Concern, OpenSwitches
from elastalog.debugging.polarity import BOTH, POSITIVE, Dependencies
from elastalog.debugging.reasons import bound_words, steps_of
from elastalog.debugging.word_set import WordSet
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.explain import Setting
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import Steps


class HasSteps(Protocol):
    @property
    def steps(self) -> Steps:
        """Steps of proofs in the base."""


class ProofGrowth:
    """`signs`: how relations depend on those whose explicit facts may change."""

    def __init__(
        self,
        setting: Setting,
        reading: Reading,
        switches: OpenSwitches,
        signs: Dependencies,
        corners: OpenCorners,
        proofs: KnownProofs,
        base: HasSteps,
    ) -> None:
        self._setting = setting
        self._reading = reading
        self._switches = switches
        self._signs = signs
        self._corners = corners
        self._proofs = proofs
        self._base = base

    @property
    def _backend(self) -> Backend:
        return self._setting.backend

    def grow(self, roots: Iterable[WordFact], flipped: frozenset[int], changes: ChangedWords) -> None:
        """Adds a proof of each of some facts, which hold in the state that is being tried; it differs from the base in
        the switches flipped and in `changes`. Raises NeedsCorner."""
        known = self._proofs.state(flipped)
        went = WordSet(self._backend.program)
        for name, (_, old) in changes.items():
            went.add(name, old)
        state = _State(self, flipped, went)
        steps = steps_of(self._setting, self._reading, is_any=True) if flipped else self._base.steps
        frontier = [fact for fact in dict.fromkeys(roots) if not known.holds(fact)]
        met = set(frontier)
        found: list[Guarded] = []
        explicit: list[WordFact] = []
        while frontier:
            following: list[WordFact] = []
            steps.find(fact for fact in frontier if fact[0] not in self._reading.aggregates)
            for fact in frontier:
                if fact[0] in self._reading.aggregates:
                    derivation = state.folded(fact)
                else:
                    step = steps.known[fact]
                    if step.is_explicit:
                        explicit.append(fact)
                        continue
                    assert step.clause is not None
                    derivation = Guarded(fact, step.bodies, state.guard(step.clause, fact, step.bodies), flipped)
                found.append(derivation)
                for body in derivation.bodies:
                    if body not in met:
                        met.add(body)
                        if not known.holds(body):
                            following.append(body)
            frontier = following
        # Only now, when all of it is known: in the order of the proof, so that what is next to the facts comes first.
        for fact in explicit:
            self._proofs.add_explicit(fact)
        for derivation in found:
            self._proofs.add(derivation)


class _State:
    """Guards in one state."""

    def __init__(self, growth: ProofGrowth, flipped: frozenset[int], went: WordSet) -> None:
        self._growth = growth
        self._flipped = flipped
        self._went = went

    def guard(self, clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> Concern:
        found = NOTHING
        if head[0] in self._growth._reading.rivalled:  # to be derived is not enough
            found = self._concern(head[0], BOTH)
        for goal in clause.goals:
            if isinstance(goal, Absent) and self._growth._signs[goal.relation]:
                found |= self._of_absence(goal, clause, head, bodies)
        return found

    def _of_absence(self, goal: Absent, clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> Concern:
        words = bound_words(clause, head, bodies)
        bases = self._growth._backend.program.relations[goal.relation].bases
        row: list[int] = []
        for term, base in zip(goal.terms, bases, strict=True):
            if isinstance(term, Constant):
                word = self._growth._setting.dictionary.find_value(base, term.value)
            else:
                word = words.get(term)
            if word is None:  # computed, or met in no fact so far: any fact of the relation may be meant
                return self._concern(goal.relation, POSITIVE)
            row.append(word)
        fact = goal.relation, tuple(row)
        if not self._growth._corners.can_hold(fact, holds_in_base=self._went.has(*fact)):
            return NOTHING
        return self._concern(goal.relation, POSITIVE)

    def folded(self, fact: WordFact) -> Guarded:
        """A fact of an aggregate, from all members of its group."""
        aggregate = self._growth._reading.aggregates[fact[0]]
        group = fact[1][: aggregate.groups]
        members = self._growth._backend.select(
            aggregate.members, tuple(range(aggregate.groups)), np.array(group, np.int32)
        )
        bodies = [(aggregate.members, tuple(row)) for row in members.words.tolist()]
        if aggregate.domain is not None:
            bodies.append((aggregate.domain, tuple(group)))
        sought = BOTH if aggregate.is_numbering else POSITIVE
        return Guarded(fact, tuple(bodies), self._concern(aggregate.members, sought), self._flipped)

    def _concern(self, relation: str, sought: int) -> Concern:
        growth = self._growth
        return growth._switches.concern(growth._signs, relation, sought, self._flipped)
