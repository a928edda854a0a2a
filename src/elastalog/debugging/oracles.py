"""Oracles say whether a choice of switches is a solution, and if not, what any solution must do differently.

A *condition* is a set of switches and a state: at least one of them must stand otherwise than there. Every condition
given here holds for every solution. So the best choice under the known conditions is a lower bound, and if it is a
solution, it is a smallest one. The program need not be monotone.

`GraphOracle` asks the derivation graph. `ProofOracle`, for any program, looks whether the choice cuts all known proofs,
tries it on the engine, and adds the proofs that are left.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.dependencies import BOTH, POSITIVE
from elastalog.debugging.graph import Model
from elastalog.debugging.known_proofs import Corners, KnownProofs, NeedsCorner, ProofGrowth
from elastalog.debugging.problem import Concern, Condition, Problem
from elastalog.debugging.sandbox import Goals, NoState, are_present
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.epochs import TrialLimits
from elastalog.provenance.reading import WordFact
from elastalog.settings import SETTINGS


class Oracle(ABC):
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._sandbox = problem.sandbox

    def conditions(
        self, flipped: frozenset[int], first_limits: Callable[[], TrialLimits | None] = lambda: None
    ) -> list[Condition]:
        """The conditions that a choice does not fulfil; none if it is a solution. Raises BudgetExceeded when trying it
        goes beyond the first limits."""
        with self._sandbox.seconds.spent_on("provenance"):
            found = self._known_conditions(flipped)
        # Nothing that is only known has the last word: the choice is really tried.
        return found or self._by_trial(flipped, first_limits)

    def _known_conditions(self, flipped: frozenset[int]) -> list[Condition]:
        """What is known to be wrong with a choice. After each condition it goes on as if that were fulfilled, so that
        several conditions on different switches are found at once."""
        found: dict[Condition, None] = {}
        turned = frozenset[int]()
        while len(found) < SETTINGS.conditions_at_once:
            self._sandbox.backend.watch.step()
            new = self._wrong_at(flipped ^ turned)
            found |= dict.fromkeys(new)
            # Later states are made up: only what was not turned before counts, or the search could go in circles.
            fresh = frozenset(switch for condition in new for switch in condition.concern.switches) - turned
            if not fresh or not all(condition.concern.switches for condition in new):
                break
            turned |= fresh
        return list(found)

    @abstractmethod
    def _wrong_at(self, state: frozenset[int]) -> list[Condition]:
        """What is known to be wrong with a state."""

    @abstractmethod
    def _by_trial(self, flipped: frozenset[int], first_limits: Callable[[], TrialLimits | None]) -> list[Condition]:
        """What is wrong with a choice when it is tried."""

    def _without_state(self, flipped: frozenset[int]) -> list[Condition]:
        """A choice under which rules have no result; any other may have one."""
        switches = self._problem.switches
        return [Condition(Concern(frozenset(range(len(switches.known))), frozenset(switches.explicit)), flipped)]


class OthersFit(Exception):
    """Facts that are not in the derivation graph come to fit a pattern."""

    def __init__(self, goals: Goals) -> None:
        super().__init__(goals)
        self.goals = goals


class GraphOracle(Oracle):
    """Asks the derivation graph, which is exact for the facts in it."""

    def __init__(self, problem: Problem, model: Model) -> None:
        super().__init__(problem)
        self._model = model
        self._nodes = {fact: model.graph.node_of(fact) for fact in problem.goals.all}

    def _by_trial(self, flipped: frozenset[int], first_limits: Callable[[], TrialLimits | None]) -> list[Condition]:
        try:
            wrong, lacking = self._sandbox.look(flipped, self._problem.limits, lambda _: self._problem.unmet())
        except NoState:
            return self._without_state(flipped)
        if not self._nodes.keys() >= {*wrong}:
            raise OthersFit(self._problem.goals)
        if wrong or lacking:
            raise InternalError("debugging", f"the derivation graph and the engine disagree about {[*wrong, *lacking]}")
        return []

    def _wrong_at(self, state: frozenset[int]) -> list[Condition]:
        now, goals, switches = self._model.evaluate(state), self._problem.goals, self._model.switches
        wrong, lacking = goals.unmet([now.holds(self._nodes[fact]) for fact in goals.all])
        reasons = (now.reason(self._nodes[fact]) for fact in (*wrong, *lacking))
        return [Condition(Concern(frozenset(switches(reason))), state) for reason in reasons]


class ProofOracle(Oracle):
    """Learns from trials."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._proofs = KnownProofs(problem.switches)
        self._corners = Corners(problem)
        self._growth = ProofGrowth(problem, self._corners, self._proofs)

    def _wrong_at(self, state: frozenset[int]) -> list[Condition]:
        known = self._proofs.state(state)
        return [Condition(known.concern(fact), state) for fact in self._problem.goals.absent if known.holds(fact)]

    def _by_trial(self, flipped: frozenset[int], first_limits: Callable[[], TrialLimits | None]) -> list[Condition]:
        first = first_limits()
        while True:
            try:
                if first is None:
                    limits = self._problem.limits
                    return self._sandbox.look(flipped, limits, lambda changes: self._wrong(flipped, changes))
                with self._sandbox.moved((), flipped, first) as changes:
                    return self._wrong(flipped, changes)
            except NeedsCorner as needed:
                self._corners.try_corner(needed.relation)
            except NoState:
                return self._without_state(flipped)

    def _wrong(self, flipped: frozenset[int], changes: ChangedWords) -> list[Condition]:
        wrong, lacking = self._problem.unmet()
        if not wrong and not lacking:
            self._problem.connecting.look(changes)
            return []
        found = [*self._proved(wrong, flipped, [changes]), *(self._lacking(fact, flipped, changes) for fact in lacking)]
        return [Condition(each, flipped) for each in dict.fromkeys(found)]

    def _proved(
        self, facts: Sequence[WordFact], state: frozenset[int], changes: Sequence[ChangedWords]
    ) -> list[Concern]:
        """What some facts rest on, which hold in the state that is being tried."""
        with self._sandbox.seconds.spent_on("provenance"):
            self._growth.grow(facts, state, changes)
            known = self._proofs.state(state)
        return [known.concern(fact) for fact in facts]

    def _lacking(self, fact: WordFact, flipped: frozenset[int], changes: ChangedWords) -> Concern:
        """What keeps a fact from holding in a state that is being tried. Of the switches on which its relation depends
        in one way only, those are left out that can all be turned together without the fact coming about. Proofs in
        states where too many are turned tell which to leave, and then trials without halves of the rest, quarters, and
        so on."""
        switches, signs = self._problem.switches, self._problem.signs
        concern = switches.concern(signs, fact[0], POSITIVE, flipped)
        one_way = frozenset(i for i in concern.switches if signs[fact[0]][switches.known[i].fact[0]] != BOTH)
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
        """The switches in `turned` on which a fact then rests: none if it does not hold, all if that is unknown."""
        state = flipped ^ turned
        if time.monotonic() > self._problem.deadline:
            return turned
        try:
            with self._sandbox.moved(flipped, state, self._problem.limits) as further:
                if not turned or not are_present(self._sandbox.backend, [fact])[0]:
                    return frozenset()
                (rests_on,) = self._proved([fact], state, [changes, further])
                return rests_on.switches & turned or turned
        except (NoState, BudgetExceeded):
            return turned
