"""Oracles say whether a choice of switches is a solution, and if not, what any solution must do differently.

A *condition* is a set of switches and a state: at least one of them must stand differently from how it stands there.
Every condition given here holds for every solution, so the best choice under the conditions known is a lower bound, and
if it is a solution it is a smallest one. That needs no monotone program.

`GraphOracle` asks the derivation graph. `ProofOracle`, for any program, looks whether the choice cuts all known proofs,
tries it on the engine itself, and adds the proofs that are left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import Protocol, TypeAlias

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.dependencies import BOTH, POSITIVE, Dependencies
from elastalog.debugging.graph import Model
from elastalog.debugging.investigation import Case, limits_for
from elastalog.debugging.known_proofs import KnownProofs, ProofGrowth, conditions_on
from elastalog.debugging.sandbox import NoState, Sandbox, WordSet
from elastalog.debugging.switches import Concern, Condition, Corners, NeedsCorner, Switches
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.epochs import TrialLimits
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps

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
            return [Condition(frozenset(range(len(self._sandbox.switches))), flipped)]
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


@dataclass(kw_only=True)
class ProofOracle:
    """Learns from trials. `signs`: how relations depend on those of the switches. `limits`: how much of the program
    decides about the goals, None if all of it. `known_corners`: see `Corners`; those that are found are added."""

    case: Case
    sandbox: Sandbox
    switches: Switches
    signs: Dependencies
    goals: Goals
    limits: TrialLimits | None
    deadline: float
    witness: Witness
    base_steps: InitVar[Callable[[], Steps]]
    known_corners: InitVar[dict[str, WordSet | None]]

    def __post_init__(self, base_steps: Callable[[], Steps], known_corners: dict[str, WordSet | None]) -> None:
        case, switches, signs = self.case, self.switches, self.signs
        self._proofs = KnownProofs(switches)
        self._corners = Corners(self.sandbox, switches, signs, lambda name: limits_for(case, (name,)), known_corners)
        self._growth = ProofGrowth(case.setting, case.reading, switches, signs, self._corners, self._proofs, base_steps)

    def conditions(
        self, flipped: frozenset[int], first_limits: Callable[[], TrialLimits | None] = lambda: None
    ) -> list[Condition]:
        """See `Oracle`. Raises BudgetExceeded when trying a choice goes beyond first limits."""
        with self.sandbox.seconds.spent_on("provenance"):
            found = conditions_on(self._proofs, self.goals.absent, flipped, MOST_CONDITIONS)
        return found or self._by_trial(flipped, first_limits())

    def _by_trial(self, flipped: frozenset[int], first: TrialLimits | None) -> list[Condition]:
        """What is wrong with a choice when it is really tried."""
        while True:
            try:
                if first is None:
                    return self.sandbox.look(flipped, self.limits, lambda changes: self._wrong(flipped, changes))
                with self.sandbox.flipped(flipped, first) as changes:
                    return self._wrong(flipped, changes)
            except NeedsCorner as needed:
                self._corners.try_corner(needed.relation)
            except NoState:
                # Any other choice may have a result.
                every = frozenset(range(len(self.switches.known)))
                return [Condition(every, flipped, frozenset(self.switches.explicit))]

    def _wrong(self, flipped: frozenset[int], changes: ChangedWords) -> list[Condition]:
        wrong, lacking = self.goals.unmet(self.sandbox.are_present(self.goals.all))
        if not wrong and not lacking:
            self.witness(changes)
            return []
        found = [each.condition(flipped) for each in self._proved(wrong, flipped, [changes])]
        found += [self._lacking(fact, flipped, changes).condition(flipped) for fact in lacking]
        return list(dict.fromkeys(found))

    def _proved(
        self, facts: Sequence[WordFact], state: frozenset[int], changes: Sequence[ChangedWords]
    ) -> list[Concern]:
        """What some facts rest on, which hold in the state that is being tried."""
        with self.sandbox.seconds.spent_on("provenance"):
            self._growth.grow(facts, state, changes)
            known = self._proofs.state(state)
        return [known.concern(fact) for fact in facts]

    def _lacking(self, fact: WordFact, flipped: frozenset[int], changes: ChangedWords) -> Concern:
        """What keeps a fact from holding in a state that is being tried. Of the switches on which its relation depends
        in one way only, those are left out that can all be turned together without it coming about: which to leave
        tell proofs in the states where too many have been turned, and then trials without halves of these, quarters,
        and so on."""
        concern = self.switches.concern(self.signs, fact[0], POSITIVE, flipped)
        signs = self.signs[fact[0]]
        one_way = frozenset(i for i in concern.switches if signs[self.switches.known[i].fact[0]] != BOTH)
        needed = frozenset[int]()
        while used := self._used_after(fact, flipped, one_way - needed, changes):
            needed |= used
        size = len(needed)
        while size > 1:
            size = (size + 1) // 2
            rest = sorted(needed)
            for start in range(0, len(rest), size):
                piece = frozenset(rest[start : start + size])
                if piece < needed and not self._used_after(fact, flipped, one_way - needed | piece, changes):
                    needed -= piece
        return Concern(concern.switches - one_way | needed, concern.relations)

    def _used_after(
        self, fact: WordFact, flipped: frozenset[int], turned: frozenset[int], changes: ChangedWords
    ) -> frozenset[int]:
        """The switches in `turned` on which a fact then rests: none if it does not hold, all if that is not
        known."""
        state = flipped ^ turned
        if time.monotonic() > self.deadline:
            return turned
        try:
            with self.sandbox.moved(flipped, state, self.limits) as further:
                if not turned or not self.sandbox.are_present([fact])[0]:
                    return frozenset()
                (rests_on,) = self._proved([fact], state, [changes, further])
                return rests_on.switches & turned or turned
        except (NoState, BudgetExceeded):
            return turned
