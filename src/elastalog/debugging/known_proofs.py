"""The part of the derivation graph that proofs have led through so far: what follows from it follows, and there may be
more. So what it takes to cut all proofs in it is a lower bound of what it takes to cut all there are.

`ProofGrowth` finds proofs in a state that is being tried, and adds them. A derivation by a clause with negations is one
as long as the negated facts stay absent, one of an aggregate as long as no further member comes. What could change that
is its guard: nothing, if the fact cannot hold in any state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import Backend, ChangedWords, ClauseDerivations
from elastalog.debugging.dependencies import BOTH, POSITIVE, Dependencies
from elastalog.debugging.sandbox import WordSet
from elastalog.debugging.switches import NOTHING, Concern, Condition, Corners, Switches
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.explain import Setting
from elastalog.provenance.metrics import HEIGHT
from elastalog.provenance.ranks import ComputedSteps
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import AnnotatedSteps, Steps

EXPLICIT = -1
"""Stands for a derivation of an explicit fact."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A derivation of a fact from others. It is one wherever `guard` stands as in the state in which it was met, where
    the switches in `flipped` were flipped."""

    head: WordFact
    bodies: tuple[WordFact, ...]
    guard: Concern
    flipped: frozenset[int]


class KnownProofs:
    """Grows by derivations."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self._derivations: list[Guarded] = []
        self._met: set[tuple[WordFact, tuple[WordFact, ...], Concern, frozenset[int]]] = set()
        self._uses: dict[WordFact, list[int]] = {}
        self._bare: list[int] = []
        self._leaves: dict[WordFact, int | None] = {}

    def add_explicit(self, fact: WordFact) -> None:
        """A fact that is explicit in a state."""
        if fact not in self._leaves:
            self._leaves[fact] = self._switches.number(fact)

    def add(self, derivation: Guarded) -> None:
        flipped = derivation.flipped if derivation.guard else frozenset[int]()
        key = derivation.head, derivation.bodies, derivation.guard, flipped
        if key in self._met:
            return
        self._met.add(key)
        number = len(self._derivations)
        self._derivations.append(derivation)
        for body in set(derivation.bodies):
            self._uses.setdefault(body, []).append(number)
        if not derivation.bodies:
            self._bare.append(number)

    def state(self, flipped: frozenset[int]) -> KnownState:
        """What follows where some switches are flipped."""
        by: dict[WordFact, int] = {}
        missing = [len(set(derivation.bodies)) for derivation in self._derivations]
        pending = [fact for fact, switch in self._leaves.items() if self._is_on(switch, flipped)]
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

    def _is_on(self, switch: int | None, flipped: frozenset[int]) -> bool:
        return switch is None or self._switches.known[switch].is_on(switch in flipped)

    def _fire(self, number: int, flipped: frozenset[int], by: dict[WordFact, int], pending: list[WordFact]) -> None:
        derivation = self._derivations[number]
        if derivation.head not in by and self._is_guarded(derivation, flipped):
            by[derivation.head] = number
            pending.append(derivation.head)

    def _is_guarded(self, derivation: Guarded, flipped: frozenset[int]) -> bool:
        guard = derivation.guard
        if not guard:
            return True
        differing = flipped ^ derivation.flipped
        return not differing or differing.isdisjoint((*guard.switches, *self._switches.deletions(guard.relations)))

    def derivation(self, number: int) -> Guarded:
        return self._derivations[number]

    def switch(self, fact: WordFact) -> int | None:
        """The switch of an explicit fact that was met."""
        return self._leaves[fact]


class KnownState:
    """What follows from the known part of the graph in one state, and by which derivation."""

    def __init__(self, proofs: KnownProofs, by: dict[WordFact, int]) -> None:
        self._proofs = proofs
        self._by = by

    def holds(self, fact: WordFact) -> bool:
        return fact in self._by

    def concern(self, fact: WordFact) -> Concern:
        """What a fact rests on here."""
        switches: set[int] = set()
        guards = NOTHING
        for used in self._proof(fact):
            number = self._by[used]
            if number == EXPLICIT:
                switch = self._proofs.switch(used)
                if switch is not None:
                    switches.add(switch)
            else:
                guards |= self._proofs.derivation(number).guard
        return guards | Concern(frozenset(switches))

    def _proof(self, root: WordFact) -> Iterator[WordFact]:
        """The facts of a proof, each once, from above."""
        met = {root}
        pending = [root]
        for fact in pending:
            yield fact
            number = self._by[fact]
            bodies: Sequence[WordFact] = () if number == EXPLICIT else self._proofs.derivation(number).bodies
            for body in bodies:
                if body not in met:
                    met.add(body)
                    pending.append(body)


def conditions_on(
    proofs: KnownProofs, roots: Iterable[WordFact], flipped: frozenset[int], most: int
) -> list[Condition]:
    """What is wrong with a choice of switches, going by the known part of the graph: nothing if none of some facts
    follows. After each condition it goes on as if that were fulfilled, so that several on different switches come out
    at once."""
    found: list[Condition] = []
    wanted = tuple(roots)
    turned = frozenset[int]()
    while len(found) < most:
        here = flipped | turned
        state = proofs.state(here)
        new = [state.concern(fact).condition(here) for fact in wanted if state.holds(fact)]
        found += new
        # Only deletions: what is turned back may bring other facts about.
        fresh = frozenset(i for condition in new for i in condition.switches) - flipped - turned
        if not fresh:
            break
        turned |= fresh
    return list(dict.fromkeys(found))


# --- further proofs --------------------------------------------------------------------------------------------------


MOST_MEMBERS = 1_000
"""Members of an aggregate that are proved each; of more, whatever they may depend on keeps the result."""


@dataclass(frozen=True, slots=True)
class ProofGrowth:
    """`signs`: how relations depend on those of the switches. `base_steps` gives the steps of proofs in the base."""

    _setting: Setting
    _reading: Reading
    _switches: Switches
    _signs: Dependencies
    _corners: Corners
    _proofs: KnownProofs
    _base_steps: Callable[[], Steps]

    @property
    def _backend(self) -> Backend:
        return self._setting.backend

    def grow(self, roots: Iterable[WordFact], flipped: frozenset[int], changes: Sequence[ChangedWords]) -> None:
        """Adds a proof of each of some facts, which hold in the state that is being tried; it differs from the base in
        the switches flipped, and in `changes`, one after the other. Raises NeedsCorner."""
        known = self._proofs.state(flipped)
        went = WordSet(self._backend.program)
        for each in changes:
            for name, (_, gone) in each.items():
                went.add(name, gone)
        state = _State(self, flipped, went)
        steps = steps_of(self._setting, self._reading, is_any=True) if flipped else self._base_steps()
        frontier = [fact for fact in dict.fromkeys(roots) if not known.holds(fact)]
        met = set(frontier)
        found: list[Guarded] = []
        explicit: list[WordFact] = []
        while frontier:
            following: list[WordFact] = []
            explicit += [fact for fact in frontier if not self._signs[fact[0]]]  # or is there in every state
            frontier = [fact for fact in frontier if self._signs[fact[0]]]
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
        fact = negated_fact(goal, clause, head, bodies, self._growth._setting)
        # If it is not known, any fact of the relation may be meant.
        if fact is None or self._growth._corners.can_hold(fact, holds_in_base=self._went.has(*fact)):
            return self._concern(goal.relation, POSITIVE)
        return NOTHING

    def folded(self, fact: WordFact) -> Guarded:
        """A fact of an aggregate, from all members of its group unless they are very many."""
        aggregate = self._growth._reading.aggregates[fact[0]]
        group = fact[1][: aggregate.groups]
        members = self._growth._backend.select(
            aggregate.members, tuple(range(aggregate.groups)), np.array(group, np.int32)
        )
        if len(members.words) > MOST_MEMBERS:
            return Guarded(fact, (), self._concern(fact[0], BOTH), self._flipped)
        bodies = [(aggregate.members, tuple(row)) for row in members.words.tolist()]
        if aggregate.domain is not None:
            bodies.append((aggregate.domain, tuple(group)))
        sought = BOTH if aggregate.is_numbering else POSITIVE
        return Guarded(fact, tuple(bodies), self._concern(aggregate.members, sought), self._flipped)

    def _concern(self, relation: str, sought: int) -> Concern:
        growth = self._growth
        return growth._switches.concern(growth._signs, relation, sought, self._flipped)


def negated_fact(
    goal: Absent, clause: Clause, head: WordFact, bodies: Sequence[WordFact], setting: Setting
) -> WordFact | None:
    """The fact whose absence a derivation uses; None if a value of it is computed, or met in no fact so far."""
    words = _bound_words(clause, head, bodies)
    bases = setting.backend.program.relations[goal.relation].bases
    row = [
        setting.dictionary.find_value(base, term.value) if isinstance(term, Constant) else words.get(term)
        for term, base in zip(goal.terms, bases, strict=True)
    ]
    return None if None in row else (goal.relation, tuple(word for word in row if word is not None))


def _bound_words(clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> Mapping[str, int]:
    """The words of the variables that the facts of a derivation bind."""
    found: dict[str, int] = {}
    for scan, (_, row) in zip(clause.scans, bodies, strict=True):
        for term, word in zip(scan.terms, row, strict=True):
            if isinstance(term, str):
                found.setdefault(term, word)
    for term, word in zip(clause.head_terms, head[1], strict=True):
        if isinstance(term, str):
            found.setdefault(term, word)
    return found


class AnySteps(AnnotatedSteps):
    """Takes whichever derivation comes first: reasons need no particular proof."""

    def _smallest(self, found: ClauseDerivations, usable: Any) -> Any:
        return usable[np.unique(found.heads[usable], return_index=True)[1]]


def steps_of(setting: Setting, reading: Reading, is_any: bool = False) -> Steps:
    """Steps of proofs in the present state of the backend; with `is_any` those that are found fastest."""
    if setting.is_annotated:
        kind = AnySteps if is_any else AnnotatedSteps
        return kind(setting.backend, setting.dictionary, reading, setting.is_global)
    return ComputedSteps(setting.backend, reading, HEIGHT, "all" if setting.is_global else "stratum")
