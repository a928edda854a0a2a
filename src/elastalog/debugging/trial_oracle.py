"""The oracle for any program: tries every choice on the engine itself, and learns from the proofs found there."""

from __future__ import annotations

import time
from collections.abc import Sequence

from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.laboratory import Laboratory, NoState
from elastalog.debugging.oracles import Condition, Goals, Witness, any_but
from elastalog.debugging.polarity import BOTH, POSITIVE, Dependencies
from elastalog.debugging.reasons import Corners, NeedsCorner, NeedsSafeFacts, Reasons, steps_of
from elastalog.debugging.safe import SafeFacts
from elastalog.debugging.word_set import WordSet
from elastalog.provenance.explain import Setting
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import Steps


class TrialOracle:
    """Conditions come from `Reasons`. Those for facts that should hold are made smaller by further trials."""

    def __init__(
        self,
        laboratory: Laboratory,
        setting: Setting,
        signs: Dependencies,
        goals: Goals,
        deadline: float,
        witness: Witness,
    ) -> None:
        self._laboratory = laboratory
        self._setting = setting
        self._signs = signs
        self._goals = goals
        self._deadline = deadline
        self._reading = Reading(setting.backend, setting.dictionary)
        self._corners = Corners(laboratory, signs)
        self._witness = witness
        self._safe: SafeFacts | None = None
        self._steps: dict[frozenset[int], Steps] = {}

    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        try:
            while True:
                try:
                    return self._conditions(flipped)
                except NeedsCorner as needed:
                    self._corners.try_corner(needed.relation)
                except NeedsSafeFacts:
                    self._safe = SafeFacts(self._laboratory, self._setting.dictionary, self._signs, self._corners)
        except NoState:
            return [any_but(flipped, len(self._laboratory.switches))]

    def _conditions(self, flipped: frozenset[int]) -> list[Condition]:
        with self._laboratory.flipped(flipped) as changes:
            wrong, lacking = self._goals.unmet(self._laboratory.are_present(self._goals.all))
            if not wrong and not lacking:
                self._witness(changes)
                return []
            reasons = self._reasons(flipped, changes)
            found = [Condition(frozenset(why), flipped) for why in self._timed(reasons, wrong)]
            groups: dict[frozenset[int], list[WordFact]] = {}
            for fact in lacking:
                groups.setdefault(frozenset(reasons.concerning(fact[0], POSITIVE)), []).append(fact)
            for switches, facts in groups.items():
                narrowed = _Narrowing(self, flipped, switches, facts).run()
                found += [Condition(frozenset(narrowed[fact]), flipped) for fact in facts]
        return list(dict.fromkeys(found))

    def _reasons(self, flipped: frozenset[int], changes: ChangedWords) -> Reasons:
        # A state may be tried again, to know more about it: what was found there still holds.
        if flipped not in self._steps:
            self._steps = {flipped: steps_of(self._setting, self._reading, is_any=True)}
        return Reasons(
            self._laboratory,
            self._setting,
            self._reading,
            self._signs,
            self._corners,
            flipped,
            changes,
            self._safe,
            self._steps[flipped],
        )

    def _timed(self, reasons: Reasons, facts: Sequence[WordFact], within: WordSet | None = None) -> list[set[int]]:
        began = time.perf_counter()
        try:
            return reasons.why(facts, within)
        finally:
            self._laboratory.seconds.provenance += time.perf_counter() - began


class _Narrowing:
    """Makes the reason why some facts do not hold smaller.

    Switches that can all be turned together without a fact coming about are no reason for its absence. That is sound
    for switches on which its relation depends in one way only, as turning them is in its favour. Which to leave is told
    by proofs in the states where too many have been turned."""

    def __init__(
        self, oracle: TrialOracle, flipped: frozenset[int], switches: frozenset[int], facts: Sequence[WordFact]
    ) -> None:
        self._oracle = oracle
        self._flipped = flipped
        self._switches = switches
        self._facts = facts
        laboratory = oracle._laboratory
        one_way = [oracle._signs[relation] for relation, _ in facts]
        self._candidates = frozenset(
            i for i in switches if all(signs[laboratory.switches[i].fact[0]] != BOTH for signs in one_way)
        )

    def run(self) -> dict[WordFact, frozenset[int]]:
        """The smaller reason of each fact."""
        left = dict.fromkeys(self._facts, frozenset[int]())
        is_done = not self._candidates
        while not is_done and not self._is_late():
            kept = frozenset[int]().union(*left.values())
            holding = self._try(self._candidates - kept, self._facts)
            for fact, used in holding.items():
                left[fact] |= (used & self._candidates) or self._candidates
            is_done = not holding
        if not is_done:
            return dict.fromkeys(self._facts, self._switches)
        kept = frozenset[int]().union(*left.values())
        return {fact: self._switches - self._candidates | self._own(fact, left[fact], kept) for fact in self._facts}

    def _own(self, fact: WordFact, used: frozenset[int], kept: frozenset[int]) -> frozenset[int]:
        """What is left of the reason that the facts have in common: first without what other facts use, then without
        halves of the rest, quarters, and so on."""
        kept = self._without(fact, kept - used, kept)
        size = len(kept)
        while size > 1:
            size = (size + 1) // 2
            rest = sorted(kept)
            for start in range(0, len(rest), size):
                kept = self._without(fact, frozenset(rest[start : start + size]), kept)
        return kept

    def _without(self, fact: WordFact, piece: frozenset[int], kept: frozenset[int]) -> frozenset[int]:
        """The reason without a piece, if that is still one."""
        smaller = kept - piece
        if not smaller or smaller == kept or self._is_late():
            return kept
        return kept if self._try(self._candidates - smaller, [fact]) else smaller

    def _try(self, turned: frozenset[int], facts: Sequence[WordFact]) -> dict[WordFact, frozenset[int]]:
        """The facts that hold after turning some switches, with the switches among the leaves of a proof; with none
        where the rules have no result."""
        oracle = self._oracle
        state = self._flipped ^ turned
        try:
            with oracle._laboratory.moved(self._flipped, state) as changes:
                are_present = oracle._laboratory.are_present(facts)
                holding = [fact for fact, holds in zip(facts, are_present, strict=True) if holds]
                came = WordSet(oracle._laboratory.backend.program)
                for name, (new, _) in changes.items():
                    came.add(name, new)
                guesses = oracle._timed(oracle._reasons(state, changes), holding, came)
                return {fact: frozenset(guess) for fact, guess in zip(holding, guesses, strict=True)}
        except NoState:
            return {fact: frozenset() for fact in facts}

    def _is_late(self) -> bool:
        return time.monotonic() > self._oracle._deadline
