"""The oracle for any program: tries every choice on the engine itself, and learns from the proofs found there."""

from __future__ import annotations

import time

from elastalog.debugging.bracket import Bracket
from elastalog.debugging.laboratory import Laboratory, NoState
from elastalog.debugging.oracles import Condition, Goals, any_but
from elastalog.debugging.polarity import BOTH, Dependencies
from elastalog.debugging.reasons import Corners, Reasons
from elastalog.provenance.explain import Setting
from elastalog.provenance.reading import Reading, WordFact


class TrialOracle:
    """Conditions come from `Reasons`. Those for facts that should hold are made smaller by further trials."""

    def __init__(
        self, laboratory: Laboratory, setting: Setting, bracket: Bracket, signs: Dependencies, goals: Goals, deadline: float
    ) -> None:
        self._laboratory = laboratory
        self._setting = setting
        self._bracket = bracket
        self._signs = signs
        self._goals = goals
        self._deadline = deadline
        self._reading = Reading(setting.backend, setting.dictionary)
        self._corners = Corners(laboratory, bracket, signs)

    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        try:
            return self._conditions(flipped)
        except NoState:
            return [any_but(flipped, len(self._laboratory.switches))]

    def _conditions(self, flipped: frozenset[int]) -> list[Condition]:
        with self._laboratory.flipped(flipped) as changes:
            wrong, lacking = self._goals.unmet(self._laboratory.are_present(self._goals.all))
            if not wrong and not lacking:
                return []
            began = time.perf_counter()
            reasons = Reasons(
                self._laboratory, self._setting, self._reading, self._bracket, self._signs, self._corners, flipped, changes
            )
            found = [Condition(frozenset(reasons.why(fact)), flipped) for fact in wrong]
            self._laboratory.seconds.provenance += time.perf_counter() - began
            for fact in lacking:
                found.append(Condition(frozenset(self._narrowed(fact, reasons.why_not(fact), flipped)), flipped))
        return list(dict.fromkeys(found))

    def _narrowed(self, fact: WordFact, switches: set[int], flipped: frozenset[int]) -> set[int]:
        """Leaves out switches that are no reason: those which can all be turned together without the fact coming about. That is
        sound for switches on which the relation depends in one way only, since they have been turned in its favour."""
        signs = self._signs[fact[0]]
        candidates = sorted(i for i in switches if signs[self._laboratory.switches[i].fact[0]] != BOTH)
        turned: list[int] = []
        size = len(candidates)
        while size and candidates:
            left: list[int] = []
            for start in range(0, len(candidates), size):
                piece = candidates[start : start + size]
                is_over = time.monotonic() > self._deadline
                if not is_over and not self._holds(fact, flipped, flipped.symmetric_difference([*turned, *piece])):
                    turned += piece
                else:
                    left += piece
            candidates = left
            size //= 2
        return switches.difference(turned)

    def _holds(self, fact: WordFact, flipped: frozenset[int], other: frozenset[int]) -> bool:
        try:
            with self._laboratory.moved(flipped, other):
                return self._laboratory.are_present([fact])[0]
        except NoState:
            return True  # nothing is known: as if it held
