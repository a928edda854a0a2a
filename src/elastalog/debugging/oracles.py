"""Oracles say whether a choice of switches is a solution, and if not, what any solution must do differently.

A *condition* is a set of switches and a state: at least one of them must stand differently from how it stands there.
Every condition given here holds for every solution, so the best choice under the conditions known is a lower bound, and
if it is a solution it is a smallest one. That needs no monotone program.

`GraphOracle` asks the derivation graph. `TrialOracle`, for any program, tries every choice on the engine itself, and
learns from the proofs found there; no proof need go below `SafeFacts`, which hold in every state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.dependencies import BOTH, POSITIVE, Dependencies
from elastalog.debugging.graph import Model
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.reasons import Corners, NeedsCorner, NeedsSafeFacts, Reasons, steps_of
from elastalog.debugging.sandbox import NoState, Sandbox, WordSet, words_by_relation
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import TrialLimits
from elastalog.planning.logical import Absent, LogicalProgram, Scan
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps
from elastalog.relations.pairs import written_out
from elastalog.relations.words import Dictionary

Witness: TypeAlias = Callable[[ChangedWords], None]
"""Called in the state of a solution, with what differs from the base there."""

MOST_CONDITIONS = 60
"""Conditions that are looked for at a time."""


@dataclass(frozen=True, slots=True)
class Goals:
    """Facts that must not hold, and facts that must."""

    absent: tuple[WordFact, ...]
    present: tuple[WordFact, ...]

    @property
    def all(self) -> tuple[WordFact, ...]:
        return (*self.absent, *self.present)

    def unmet(self, are_present: Sequence[bool]) -> tuple[list[WordFact], list[WordFact]]:
        """The facts that hold and must not, and those that must and do not, given which of `all` hold."""
        number = len(self.absent)
        wrong = [fact for fact, holds in zip(self.absent, are_present[:number], strict=True) if holds]
        return wrong, [fact for fact, holds in zip(self.present, are_present[number:], strict=True) if not holds]


@dataclass(frozen=True, slots=True)
class Condition:
    """At least one of `switches` must stand differently from how it stands where exactly those in `flipped` are
    flipped, or a further explicit fact of one of `relations` must be deleted."""

    switches: frozenset[int]
    flipped: frozenset[int]
    relations: frozenset[str] = frozenset()


def any_but(flipped: frozenset[int], number: int) -> Condition:
    """Rules out one choice among `number` switches and nothing else."""
    return Condition(frozenset(range(number)), flipped)


class Oracle(Protocol):
    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        """What is wrong with a choice; nothing if it is a solution. Conditions are not fulfilled by the choice."""


class GraphOracle:
    """Asks the derivation graph, which is exact for the facts in it. After each condition it goes on as if that were
    fulfilled, so that several conditions on different switches come out at once. `limits`: see `Investigation`."""

    def __init__(self, model: Model, goals: Goals, sandbox: Sandbox, limits: TrialLimits | None) -> None:
        self._model = model
        self._limits = limits
        self._goals = goals
        self._nodes = {fact: model.graph.node_of(fact) for fact in goals.all}
        self._sandbox = sandbox

    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        with self._sandbox.seconds.spent_on("provenance"):
            found = self._conditions(flipped)
        return found or self._verified(flipped)

    def _verified(self, flipped: frozenset[int]) -> list[Condition]:
        """No graph has the last word: the choice is really tried."""
        try:
            wrong, lacking = self._sandbox.look(
                flipped, self._limits, lambda _: self._goals.unmet(self._sandbox.are_present(self._goals.all))
            )
        except NoState:
            return [any_but(flipped, len(self._sandbox.switches))]
        if wrong or lacking:
            raise InternalError("debugging", f"the derivation graph and the engine disagree about {[*wrong, *lacking]}")
        return []

    def _conditions(self, flipped: frozenset[int]) -> list[Condition]:
        found: dict[Condition, None] = {}
        state = set(flipped)
        turned: set[int] = set()
        while len(found) < MOST_CONDITIONS:
            self._sandbox.backend.watch.step()
            now = self._model.evaluate(state)
            here = frozenset(state)
            wrong, lacking = self._goals.unmet([now.holds(self._nodes[fact]) for fact in self._goals.all])
            new = [
                Condition(frozenset(self._model.switches(now.reason(self._nodes[fact]))), here)
                for fact in (*wrong, *lacking)
            ]
            # Later states are made up: only what was not turned before counts, or the search could go in circles.
            fresh = {switch for condition in new for switch in condition.switches} - turned
            found |= dict.fromkeys(new)
            if not fresh or not all(condition.switches for condition in new):
                break
            state ^= fresh
            turned |= fresh
        return list(found)


class TrialOracle:
    """Conditions come from `Reasons`. Those for facts that should hold are made smaller by further trials."""

    def __init__(
        self, sandbox: Sandbox, investigation: Investigation, goals: Goals, deadline: float, witness: Witness
    ) -> None:
        self._sandbox = sandbox
        self._case = investigation.case
        self._signs = signs = investigation.signs
        self._goals = goals
        self._deadline = deadline
        self._corners = Corners(sandbox, signs)
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
                    self._safe = SafeFacts(self._sandbox, self._case.setting.dictionary, self._signs, self._corners)
        except NoState:
            return [any_but(flipped, len(self._sandbox.switches))]

    def _conditions(self, flipped: frozenset[int]) -> list[Condition]:
        with self._sandbox.flipped(flipped) as changes:
            wrong, lacking = self._goals.unmet(self._sandbox.are_present(self._goals.all))
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
            self._steps = {flipped: steps_of(self._case.setting, self._case.reading, is_any=True)}
        return Reasons(self._case, self._corners, flipped, changes, self._safe, self._steps[flipped])

    def _timed(self, reasons: Reasons, facts: Sequence[WordFact], within: WordSet | None = None) -> list[set[int]]:
        with self._sandbox.seconds.spent_on("provenance"):
            return reasons.why(facts, within)


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
        sandbox = oracle._sandbox
        one_way = [oracle._signs[relation] for relation, _ in facts]
        self._candidates = frozenset(
            i for i in switches if all(signs[sandbox.switches[i].fact[0]] != BOTH for signs in one_way)
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
            with oracle._sandbox.moved(self._flipped, state) as changes:
                are_present = oracle._sandbox.are_present(facts)
                holding = [fact for fact, holds in zip(facts, are_present, strict=True) if holds]
                came, _ = WordSet.came_and_went(oracle._sandbox.backend.program, changes)
                guesses = oracle._timed(oracle._reasons(state, changes), holding, came)
                return {fact: frozenset(guess) for fact, guess in zip(holding, guesses, strict=True)}
        except NoState:
            return {fact: frozenset() for fact in facts}

    def _is_late(self) -> bool:
        return time.monotonic() > self._oracle._deadline


class SafeFacts:
    """Facts that hold in every state. The backend must be in the base when this is made; `is_known`: whether anything
    is known.

    They are found in a state worse than any other: every switch is off, and every relation that is negated holds all
    facts that it can hold in any state, as if they were given. What follows even there follows everywhere: by induction
    over the strata, the facts it uses hold everywhere, and those whose absence it uses are absent everywhere. Given
    facts must not be used otherwise than by negations, and what an aggregate folds has no worst state: with either,
    nothing is known."""

    def __init__(self, sandbox: Sandbox, dictionary: Dictionary, signs: Dependencies, corners: Corners) -> None:
        self._program = sandbox.backend.program
        self._dictionary = dictionary
        self._lost, self._regained, self._given = (WordSet(self._program) for _ in range(3))
        negated = _negated(self._program, signs)
        self.is_known = all(map(corners.is_one_way, negated)) and not _folds_switches(self._program, signs)
        if self.is_known:
            try:
                self._try_worst(sandbox, corners, negated)
            except NoState:
                self.is_known = False

    def _try_worst(self, sandbox: Sandbox, corners: Corners, negated: list[str]) -> None:
        for name in negated:
            corners.ensure(name)
        off = [i for i, switch in enumerate(sandbox.switches) if not switch.adds]
        with sandbox.flipped(off) as changes:
            for name, (_, went) in changes.items():
                self._lost.add(name, went)
            possible = [fact for name in negated for fact in corners.gained(name)]
            for name in negated:
                if name in changes:
                    possible += [(name, tuple(row)) for row in written_out(changes[name][1]).tolist()]
            given = [fact for fact in possible if self._fits_any(fact, Absent)]
            if any(self._fits_any(fact, Scan) for fact in given):
                self.is_known = False
            elif given:
                by_relation = words_by_relation(given)
                for name, words in by_relation.items():
                    self._given.add(name, words)
                with sandbox.tried(Update({}, by_relation)) as further:
                    for name, (came, went) in further.items():
                        self._lost.add(name, went)
                        self._regained.add(name, came)

    def has(self, fact: WordFact) -> bool:
        """Whether a fact that holds in the base holds in every state, as far as is known."""
        if not self.is_known or self._given.has(*fact):
            return False
        return not self._lost.has(*fact) or self._regained.has(*fact)

    def _fits_any(self, fact: WordFact, kind: type[Absent] | type[Scan]) -> bool:
        """Whether some goal of a kind may mean a fact, going by its constants."""
        name, row = fact
        bases = self._program.relations[name].bases
        for goal in _goals(self._program):
            if isinstance(goal, kind) and goal.relation == name:
                constants = [
                    self._dictionary.find_value(base, term.value) == word
                    for term, base, word in zip(goal.terms, bases, row, strict=True)
                    if isinstance(term, Constant)
                ]
                if all(constants):
                    return True
        return False


def _goals(program: LogicalProgram) -> Iterable[object]:
    return (goal for stratum in program.strata for clause in stratum.clauses for goal in clause.goals)


def _negated(program: LogicalProgram, signs: Dependencies) -> list[str]:
    """The relations that are negated somewhere and depend on switches."""
    return sorted({goal.relation for goal in _goals(program) if isinstance(goal, Absent) and signs[goal.relation]})


def _folds_switches(program: LogicalProgram, signs: Dependencies) -> bool:
    """Whether an aggregate folds members that depend on switches."""
    return any(bool(signs[s.aggregate.members]) for s in program.strata if s.aggregate is not None)
