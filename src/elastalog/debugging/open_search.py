"""The smallest set of explicit facts to delete, and of candidates to insert, that reaches some goals.

Conditions that every solution fulfils are collected as for an update (`search`), but by the question and not by the
database: solve the 0/1 program of the conditions known, look whether the choice cuts all known proofs, try it, and add
the proofs that are left. Explicit facts that no proof has led to can matter where rules negate; a condition then also
has their relation, as a variable of its own that costs as much as one fact does at the least. A solution that weighs no
more than the best choice with such variables is a smallest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.dependencies import BOTH, POSITIVE, Dependencies
from elastalog.debugging.known_proofs import KnownProofs, OpenCondition, ProofGrowth, conditions_on
from elastalog.debugging.open_switches import Concern, OpenCorners, OpenSwitches
from elastalog.debugging.oracles import MOST_CONDITIONS, Goals, Witness
from elastalog.debugging.reasons import NeedsCorner
from elastalog.debugging.sandbox import NoState, Sandbox
from elastalog.debugging.search import RESERVED, Found, News, NoSolution, minimise
from elastalog.debugging.zero_one import TOLERANCE, Choice, OutOfTime, ZeroOneProgram, is_solver_installed
from elastalog.evaluation.trials import Limits
from elastalog.provenance.reading import WordFact

FEW_DERIVATIONS = 20_000
"""Derivations that the trial of a choice may cost while there may be others as good; ten times as many when each of
those has cost more."""

MOST_DEAR = 12
"""Switches of choices that cost more, before more is allowed."""

A_LITTLE = 1e-4

OTHER_FACTS = "other facts that rules negate may do with fewer"


@dataclass(frozen=True, slots=True)
class OpenTask:
    """What to search for. `limits`: how much of the program decides about the goals, None if all of it."""

    sandbox: Sandbox
    switches: OpenSwitches
    signs: Dependencies
    goals: Goals
    proofs: KnownProofs
    growth: ProofGrowth
    corners: OpenCorners
    limits: Limits | None
    seconds_allowed: float
    news: News
    witness: Witness


def open_search(task: OpenTask) -> Found | NoSolution:
    """A smallest solution, or as small a one as the time allows."""
    started = time.monotonic()
    search = _Search(task, started + task.seconds_allowed * (1 - RESERVED))
    why = "highspy is not installed"
    if is_solver_installed():
        try:
            return search.run()
        except OutOfTime:
            why = "the time was over"
    return search.fall_back(why, started + task.seconds_allowed)


class _Search:
    def __init__(self, task: OpenTask, deadline: float) -> None:
        self._task = task
        self._deadline = deadline
        self._conditions: dict[OpenCondition, None] = {}
        self._lately = frozenset[int]()
        self._bound = 0.0
        self._dear = frozenset[int]()
        """Switches of choices whose trial was broken off: there may be others that do as well."""
        self._allowed = FEW_DERIVATIONS

    # --- smallest --------------------------------------------------------------------------------------------------

    def run(self) -> Found | NoSolution:
        """Raises OutOfTime."""
        while True:
            choice = self._cheapest()
            if choice is None:
                if self._close():
                    continue
                return NoSolution(is_proven=self._solve(with_others=True) is None)
            self._lately = choice.flipped
            self._bound = choice.bound
            try:
                new = self._by_known_proofs(choice.flipped) or self._by_trial(
                    choice.flipped, self._first_limits(choice)
                )
            except BudgetExceeded:
                self._dear |= choice.flipped
                continue
            if not new:
                best = self._solve(with_others=True)
                if best is not None and best.bound < choice.bound - TOLERANCE:
                    if self._close():
                        continue
                    return Found(choice.flipped, best.bound, OTHER_FACTS)
                return Found(choice.flipped, choice.bound, None if choice.is_best else "the time was over")
            for condition in new:
                if not condition.concern:
                    return NoSolution(is_proven=True)
            self._conditions |= dict.fromkeys(new)
            self._task.news(f"at least {choice.bound:g}; {len(self._conditions):,} conditions")

    def _first_limits(self, choice: Choice) -> Limits | None:
        """Tight limits for a choice to which there may be another as good; None if it may cost what it does."""
        limits = self._task.limits
        if limits is None or not choice.flipped:
            return None
        is_last = choice.flipped <= self._dear
        if self._allowed >= limits.derivations:
            return None if is_last else limits
        if is_last or len(self._dear) >= MOST_DEAR:
            self._allowed *= 10
            self._dear = frozenset()
        return replace(limits, derivations=min(self._allowed, limits.derivations))

    def _cheapest(self) -> Choice | None:
        """A best choice by the conditions known, of those as good one without switches that are dear to try."""
        choice = self._solve()
        if choice is None or choice.flipped.isdisjoint(self._dear):
            return choice
        other = self._solve(is_sparing=True)
        if other is None or self._weight(other.flipped) > self._weight(choice.flipped) + TOLERANCE:
            return choice
        return replace(choice, flipped=other.flipped)

    def _weight(self, flipped: Iterable[int]) -> float:
        return sum(self._task.switches.weights[i] for i in flipped)

    def _others(self) -> list[str]:
        """The relations of which explicit facts that are no switches may matter."""
        named = (name for condition in self._conditions for name in condition.concern.relations)
        return sorted(self._task.switches.are_open(named))

    def _close(self) -> bool:
        """Makes switches of the facts that may matter. Returns whether there were any."""
        return self._task.switches.close(self._others())

    def _solve(self, with_others: bool = False, is_sparing: bool = False) -> Choice | None:
        """A best choice by the conditions known: with a variable for each relation of which other facts may matter, or
        where what is dear to try weighs a little more."""
        began = time.perf_counter()
        switches = self._task.switches
        names = self._others() if with_others else ()
        others = {name: len(switches.known) + i for i, name in enumerate(names)}
        weights = [*switches.weights, *[switches.least_weight] * len(others)]
        for i in self._dear if is_sparing else ():
            weights[i] *= 1 + A_LITTLE
        program = ZeroOneProgram(weights)
        for condition in self._conditions:
            concern, flipped = condition.concern, condition.flipped
            deletions = [i for i in switches.deletions(concern.relations) if i not in flipped]
            unmet = [others[name] for name in concern.relations if name in others]
            program.add_clause({*concern.switches, *deletions, *unmet}, flipped)
        try:
            return program.solve(self._deadline)
        finally:
            self._task.sandbox.seconds.solving += time.perf_counter() - began

    def _by_known_proofs(self, flipped: frozenset[int]) -> list[OpenCondition]:
        began = time.perf_counter()
        try:
            return conditions_on(self._task.proofs, self._task.goals.absent, flipped, MOST_CONDITIONS)
        finally:
            self._task.sandbox.seconds.provenance += time.perf_counter() - began

    def _by_trial(self, flipped: frozenset[int], first: Limits | None = None) -> list[OpenCondition]:
        """What is wrong with a choice when it is really tried. Raises BudgetExceeded beyond first limits."""
        while True:
            try:
                if first is None:
                    return self._tried(flipped, lambda changes: self._wrong(flipped, changes))
                with self._task.sandbox.flipped(flipped, first) as changes:
                    return self._wrong(flipped, changes)
            except NeedsCorner as needed:
                self._task.corners.try_corner(needed.relation)
            except NoState:
                # Any other choice may have a result.
                every = Concern(
                    frozenset(range(len(self._task.switches.known))), frozenset(self._task.switches.explicit)
                )
                return [OpenCondition(every, flipped)]

    def _tried(
        self, flipped: frozenset[int], look: Callable[[ChangedWords], list[OpenCondition]]
    ) -> list[OpenCondition]:
        try:
            with self._task.sandbox.flipped(flipped, self._task.limits) as changes:
                return look(changes)
        except BudgetExceeded:
            with self._task.sandbox.flipped(flipped) as changes:
                return look(changes)

    def _wrong(self, flipped: frozenset[int], changes: ChangedWords) -> list[OpenCondition]:
        task = self._task
        wrong, lacking = task.goals.unmet(task.sandbox.are_present(task.goals.all))
        if not wrong and not lacking:
            task.witness(changes)
            return []
        began = time.perf_counter()
        task.growth.grow(wrong, flipped, changes)
        state = task.proofs.state(flipped)
        task.sandbox.seconds.provenance += time.perf_counter() - began
        found = [state.condition(fact) for fact in wrong]
        return found + [OpenCondition(self._lacking(fact, flipped), flipped) for fact in lacking]

    def _lacking(self, fact: WordFact, flipped: frozenset[int]) -> Concern:
        """What keeps a fact from holding in a state that is being tried: of the switches on which its relation depends
        in one way only, those that can all be turned together without it coming about are left out."""
        task = self._task
        concern = task.switches.concern(task.signs, fact[0], POSITIVE, flipped)
        signs = task.signs[fact[0]]
        one_way = [i for i in sorted(concern.switches) if signs[task.switches.known[i].fact[0]] != BOTH]
        needed = set(one_way)
        size = len(one_way)
        while size >= 1:
            rest = sorted(needed)
            for start in range(0, len(rest), size):
                piece = set(rest[start : start + size])
                if self._holds_after(fact, flipped, frozenset(one_way) - (needed - piece)):
                    continue
                needed -= piece
            size = size // 2
        return Concern(concern.switches - frozenset(one_way) | needed, concern.relations)

    def _holds_after(self, fact: WordFact, flipped: frozenset[int], turned: frozenset[int]) -> bool:
        """Whether a fact holds after turning some switches, or that is not known."""
        if not turned:
            return False
        if time.monotonic() > self._deadline:
            return True
        task = self._task
        try:
            with task.sandbox.moved(flipped, flipped ^ turned, task.limits):
                return task.sandbox.are_present([fact])[0]
        except (NoState, BudgetExceeded):
            return True

    # --- any -------------------------------------------------------------------------------------------------------

    def fall_back(self, why: str, end: float) -> Found | NoSolution:
        """A solution that may not be a smallest: from the last choice on, all that a condition names is turned, until
        no goal is missed; then delta debugging."""
        task = self._task
        chosen = self._lately
        while new := self._by_known_proofs(chosen) or self._by_trial(chosen):
            turned = frozenset(i for condition in new for i in condition.concern.switches) - chosen
            if not turned:
                return NoSolution(is_proven=False)
            chosen |= turned
        task.news(f"{why}: delta debugging")
        order = sorted(chosen, key=lambda i: -task.switches.weights[i])
        kept, _ = minimise(order, lambda part: self._is_solution(frozenset(part)), end)
        self._by_trial(frozenset(kept))
        weight = self._weight(kept)
        bound = task.switches.least_weight
        if not self._others():
            bound = max(bound, self._bound)
        return Found(frozenset(kept), bound, None if weight <= bound + TOLERANCE else why)

    def _is_solution(self, flipped: frozenset[int]) -> bool:
        try:
            return not self._tried(flipped, lambda _: self._unmet(flipped))
        except NoState:
            return False

    def _unmet(self, flipped: frozenset[int]) -> list[OpenCondition]:
        task = self._task
        wrong, lacking = task.goals.unmet(task.sandbox.are_present(task.goals.all))
        return [OpenCondition(Concern(), flipped)] if wrong or lacking else []
