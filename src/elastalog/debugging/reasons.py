"""Why a fact holds or does not, in one state of a program with negation: switches that keep it so in every state that
agrees with this one on them.

A fact that holds has a proof: the switches among its leaves, together with the reasons why its negated facts do not
hold. A fact that does not hold has no such witness in this state alone. But if its relation depends on a switch's
relation only positively, only switches that are off can be the reason, and if only negatively, only those that are on.
And if it does not even hold in the state that is most favourable to its relation, there is no reason to be sought among
the switches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import ChangedWords, ClauseDerivations
from elastalog.debugging.dependencies import BOTH, NEGATIVE, POSITIVE, Dependencies
from elastalog.debugging.investigation import Case
from elastalog.debugging.sandbox import NoState, Sandbox, WordSet
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.explain import Setting
from elastalog.provenance.metrics import HEIGHT
from elastalog.provenance.ranks import ComputedSteps
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import AnnotatedSteps, Steps


class NeedsCorner(Exception):
    """The most favourable state of a relation has to be tried, from the base."""

    def __init__(self, relation: str) -> None:
        super().__init__(relation)
        self.relation = relation


class NeedsSafeFacts(Exception):
    """Proofs are so large that it pays to know which facts hold in every state."""


class Safety(Protocol):
    def has(self, fact: WordFact) -> bool:
        """Whether a fact that holds in the base holds in every state, as far as is known."""


MANY = 300
"""Facts of proofs that are looked at before it is asked which are safe."""


class Corners:
    """The states most favourable to relations that depend on the switches in one way only."""

    def __init__(self, sandbox: Sandbox, signs: Dependencies) -> None:
        self.sandbox = sandbox
        self.signs = signs
        self._came: dict[str, WordSet] = {}
        self._went: dict[str, WordSet] = {}
        self._unknown: set[str] = set()

    def try_corner(self, relation: str) -> None:
        """Tries the state most favourable to a relation. The backend must be in the base."""
        signs = self.signs[relation]
        corner = [
            i
            for i, switch in enumerate(self.sandbox.switches)
            if switch.fact[0] in signs and switch.adds == (signs[switch.fact[0]] == POSITIVE)
        ]
        program = self.sandbox.backend.program
        came, went = WordSet(program), WordSet(program)
        try:
            with self.sandbox.flipped(corner) as changes:
                if relation in changes:
                    came.add(relation, changes[relation][0])
                    went.add(relation, changes[relation][1])
        except NoState:
            self._unknown.add(relation)
        self._came[relation], self._went[relation] = came, went

    def is_one_way(self, relation: str) -> bool:
        """Whether a relation depends on each switch in one way at most, so that it has a most favourable state."""
        return BOTH not in self.signs[relation].values()

    def ensure(self, relation: str) -> None:
        """Tries the most favourable state of a relation unless that was done. Raises NoState if it has no result."""
        if relation not in self._came:
            self.try_corner(relation)
        if relation in self._unknown:
            raise NoState

    def gained(self, relation: str) -> list[WordFact]:
        """The facts that a relation has in its most favourable state and not in the base."""
        came = self._came[relation]
        return [(relation, tuple(row)) for row in came.words(relation).tolist()] if came.size(relation) else []

    def can_hold(self, fact: WordFact, holds_in_base: bool) -> bool:
        """Whether a fact holds in some state; True also where that is not known. Raises NeedsCorner."""
        name, row = fact
        if not self.signs[name]:
            return holds_in_base
        if BOTH in self.signs[name].values() or name in self._unknown:
            return True
        if name not in self._came:
            raise NeedsCorner(name)
        return self._came[name].has(name, row) or (holds_in_base and not self._went[name].has(name, row))


class Reasons:
    """The reasons in one state, which is being tried: `flipped` are the switches flipped, `changes` what that changed,
    `steps` finds proofs there."""

    def __init__(
        self,
        case: Case,
        corners: Corners,
        flipped: Collection[int],
        changes: ChangedWords,
        safe: Safety | None,
        steps: Steps,
    ) -> None:
        self._safe = safe
        self._switches = corners.sandbox.switches
        self._setting, self._reading = case.setting, case.reading
        self._signs = corners.signs
        self._corners = corners
        self._flipped = flipped
        self._came, self._went = WordSet.came_and_went(case.setting.backend.program, changes)
        self._steps = steps
        self._switch_of = {switch.fact: i for i, switch in enumerate(self._switches)}

    def why(self, facts: Sequence[WordFact], within: WordSet | None = None) -> list[set[int]]:
        """Switches that keep each of some facts that hold. With `within`, proofs are cut at facts outside of it: then
        these are only the switches that the facts in it rest on, which is a guess and no reason."""
        own: dict[WordFact, set[int]] = {}
        used: dict[WordFact, tuple[WordFact, ...]] = {}
        frontier = list(dict.fromkeys(facts))
        while frontier:
            if self._safe is None and within is None and len(own) + len(frontier) > MANY:
                raise NeedsSafeFacts
            frontier = [f for f in frontier if not self._is_safe(f) and (within is None or within.has(*f))]
            self._steps.find(f for f in frontier if f[0] not in self._reading.aggregates)
            for fact in frontier:
                own[fact], used[fact] = self._one_step(fact, is_guess=within is not None)
            following = dict.fromkeys(body for fact in frontier for body in used[fact])
            frontier = [body for body in following if body not in own]
        return [self._below(fact, own, used) for fact in facts]

    def _is_safe(self, fact: WordFact) -> bool:
        """Whether a fact that holds here is known to hold in every state."""
        if not self._signs[fact[0]]:
            return True
        return self._safe is not None and not self._came.has(*fact) and self._safe.has(fact)

    def _one_step(self, fact: WordFact, is_guess: bool) -> tuple[set[int], tuple[WordFact, ...]]:
        """The switches that the last step of a fact's proof rests on directly, and the facts that it uses."""
        if fact[0] in self._reading.aggregates:
            return self.concerning(fact[0], BOTH), ()
        step = self._steps.known[fact]
        if step.is_explicit:
            return ({self._switch_of[fact]} if fact in self._switch_of else set()), ()
        assert step.clause is not None
        # Where facts supersede each other, to be derived is not enough.
        found = self.concerning(fact[0], BOTH) if fact[0] in self._reading.rivalled else set[int]()
        for goal in step.clause.goals:
            if isinstance(goal, Absent) and self._signs[goal.relation] and not is_guess:
                found |= self._why_negated(goal, step.clause, fact, step.bodies)
        return found, step.bodies

    def _below(
        self, root: WordFact, own: Mapping[WordFact, set[int]], used: Mapping[WordFact, tuple[WordFact, ...]]
    ) -> set[int]:
        found: set[int] = set()
        pending = [root] if root in own else []
        met = set(pending)
        while pending:
            fact = pending.pop()
            found |= own[fact]
            for body in used[fact]:
                if body in own and body not in met:
                    met.add(body)
                    pending.append(body)
        return found

    def why_not(self, fact: WordFact) -> set[int]:
        """Switches that keep a fact that does not hold from holding."""
        if not self._corners.can_hold(fact, holds_in_base=self._went.has(*fact)):
            return set()
        return self.concerning(fact[0], POSITIVE)

    def concerning(self, relation: str, sought: int) -> set[int]:
        """The switches that could bring about facts of a relation (POSITIVE), or change them at all (BOTH), if
        turned."""
        found = set()
        signs = self._signs[relation]
        for i, switch in enumerate(self._switches):
            sign = signs.get(switch.fact[0], 0)
            turning = NEGATIVE if switch.is_on(i in self._flipped) else POSITIVE
            if sign and (sought == BOTH or sign & turning):
                found.add(i)
        return found

    def _why_negated(self, goal: Absent, clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> set[int]:
        fact = negated_fact(goal, clause, head, bodies, self._setting)
        # If it is not known, any fact of the relation may be meant.
        return self.concerning(goal.relation, POSITIVE) if fact is None else self.why_not(fact)


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
