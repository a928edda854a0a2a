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
from contextlib import suppress
from typing import Any

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import ChangedWords, ClauseDerivations
from elastalog.debugging.bracket import Bracket, WordSet
from elastalog.debugging.laboratory import Laboratory, NoState
from elastalog.debugging.polarity import BOTH, NEGATIVE, POSITIVE, Dependencies
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.explain import Setting
from elastalog.provenance.metrics import HEIGHT
from elastalog.provenance.ranks import ComputedSteps
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import AnnotatedSteps, Steps

MOST_CORNERS = 8
"""Most favourable states that are tried."""


class Corners:
    """The states most favourable to the relations that are negated and depend on switches in one way only."""

    def __init__(self, laboratory: Laboratory, bracket: Bracket, signs: Dependencies) -> None:
        self._program = laboratory.backend.program
        negated = {
            goal.relation
            for stratum in self._program.strata
            for clause in stratum.clauses
            for goal in clause.goals
            if isinstance(goal, Absent) and goal.relation not in bracket.positive
        }
        by_corner: dict[frozenset[int], list[str]] = {}
        for name in sorted(negated):
            if signs[name] and BOTH not in signs[name].values():
                corner = [
                    i
                    for i, switch in enumerate(laboratory.switches)
                    if switch.fact[0] in signs[name] and switch.adds == (signs[name][switch.fact[0]] == POSITIVE)
                ]
                by_corner.setdefault(frozenset(corner), []).append(name)
        self._came: dict[str, WordSet] = {}
        self._went: dict[str, WordSet] = {}
        for corner, names in list(by_corner.items())[:MOST_CORNERS]:
            with suppress(NoState), laboratory.flipped(corner) as changes:
                for name in names:
                    self._came[name], self._went[name] = self._sets(changes, name)

    def _sets(self, changes: ChangedWords, name: str) -> tuple[WordSet, WordSet]:
        sides = WordSet(self._program), WordSet(self._program)
        for side, words in zip(sides, changes.get(name, ()), strict=False):
            side.add(name, words)
        return sides

    def can_hold(self, fact: WordFact, holds_in_base: bool) -> bool:
        """Whether a fact holds in some state; True also where that is not known."""
        name, row = fact
        if name not in self._came:
            return True
        return self._came[name].has(name, row) or (holds_in_base and not self._went[name].has(name, row))


class Reasons:
    """The reasons in one state, which is being tried: `flipped` are the switches flipped, `changes` what that
    changed."""

    def __init__(
        self,
        laboratory: Laboratory,
        setting: Setting,
        reading: Reading,
        bracket: Bracket,
        signs: Dependencies,
        corners: Corners,
        flipped: Collection[int],
        changes: ChangedWords,
    ) -> None:
        self._switches = laboratory.switches
        self._backend = laboratory.backend
        self._dictionary = setting.dictionary
        self._reading = reading
        self._bracket = bracket
        self._signs = signs
        self._corners = corners
        self._flipped = flipped
        self._went = WordSet(self._backend.program)
        for name, (_, went) in changes.items():
            self._went.add(name, went)
        self._steps = steps_of(setting, reading, is_any=True)
        self._switch_of = {switch.fact: i for i, switch in enumerate(self._switches)}

    def why(self, facts: Sequence[WordFact], within: WordSet | None = None) -> list[set[int]]:
        """Switches that keep each of some facts that hold. With `within`, proofs are cut at facts outside of it: then
        these are only the switches that the facts in it rest on, which is a guess and no reason."""
        own: dict[WordFact, set[int]] = {}
        used: dict[WordFact, tuple[WordFact, ...]] = {}
        frontier = list(dict.fromkeys(facts))
        while frontier:
            frontier = [f for f in frontier if not self._is_constant(f) and (within is None or within.has(*f))]
            self._steps.find(f for f in frontier if f[0] not in self._reading.aggregates)
            for fact in frontier:
                own[fact], used[fact] = self._one_step(fact)
            following = dict.fromkeys(body for fact in frontier for body in used[fact])
            frontier = [body for body in following if body not in own]
        return [self._below(fact, own, used) for fact in facts]

    def _one_step(self, fact: WordFact) -> tuple[set[int], tuple[WordFact, ...]]:
        """The switches that the last step of a fact's proof rests on directly, and the facts that it uses."""
        if fact[0] in self._reading.aggregates:
            return self._concerning(fact[0], BOTH), ()
        step = self._steps.known[fact]
        if step.is_explicit:
            return ({self._switch_of[fact]} if fact in self._switch_of else set()), ()
        assert step.clause is not None
        found: set[int] = set()
        for goal in step.clause.goals:
            if isinstance(goal, Absent) and self._signs[goal.relation]:
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
        relation, row = fact
        if relation in self._bracket.positive:
            if not self._bracket.varying.has(relation, row):
                return set()
        elif not self._corners.can_hold(fact, holds_in_base=self._went.has(relation, row)):
            return set()
        return self._concerning(relation, POSITIVE)

    def _is_constant(self, fact: WordFact) -> bool:
        """Whether a fact that holds here holds in all states, as far as that is known at once."""
        relation, row = fact
        if not self._signs[relation]:
            return True
        return relation in self._bracket.positive and not self._bracket.varying.has(relation, row)

    def _concerning(self, relation: str, sought: int) -> set[int]:
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
        words = bound_words(clause, head, bodies)
        bases = self._backend.program.relations[goal.relation].bases
        row: list[int] = []
        for term, base in zip(goal.terms, bases, strict=True):
            if isinstance(term, Constant):
                word = self._dictionary.find_value(base, term.value)
            else:
                word = words.get(term)
            if word is None:  # computed, or met in no fact so far: any fact of the relation may be meant
                return self._concerning(goal.relation, POSITIVE)
            row.append(word)
        return self.why_not((goal.relation, tuple(row)))


def bound_words(clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> Mapping[str, int]:
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
