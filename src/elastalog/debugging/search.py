"""The smallest set of switches that reaches some goals, by implicit hitting sets.

Conditions that every solution fulfils are collected one after the other: solve the 0/1 program of the known ones, ask
what is wrong with the choice, add that, and repeat. The first choice with which nothing is wrong is a smallest
solution. When the time is over, delta debugging finds a solution that was tried, and the last lower bound says how far
from the smallest it may be.

Switches are the elements of an update, or all explicit facts of an epoch. Of the latter, facts that no proof has
reached can matter where rules negate. A condition then also has their relation, as a variable that costs as much as the
lightest fact. A solution that weighs no more than the best choice with such variables is a smallest one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging import zero_one
from elastalog.debugging.connections import proofs_in
from elastalog.debugging.graph import Model
from elastalog.debugging.oracles import GraphOracle, Oracle, ProofOracle
from elastalog.debugging.problem import Condition, Problem
from elastalog.debugging.sandbox import NoState, Seconds
from elastalog.debugging.zero_one import TOLERANCE, Choice, OutOfTime, is_solver_installed
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.epochs import TrialLimits
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import WordFact
from elastalog.settings import SETTINGS

A_LITTLE = 1e-4
"""How much more a switch weighs that is expensive to try, as a part of its weight."""

News = Callable[[str], None]

TIME_OVER = "time ran out"
_OTHER_FACTS = "other facts that rules negate may do with fewer"
_LEFT_OUT = "states that took too long were left out"
_NO_SOLVER = "highspy is not installed"

WHAT_MAY_HELP = {
    TIME_OVER: "allow more time",
    _OTHER_FACTS: "say which facts may change: as `candidates`",
    _LEFT_OUT: "bound the rules that may grow without end (`elastalog check` lists them)",
    _NO_SOLVER: "install highspy, or allow more time",
}
"""What to do where nothing was found, by the reason."""


@dataclass(frozen=True, slots=True)
class Found:
    """A solution that was tried, None if none was found. `bound`: no solution weighs less. `why_not_proven`: None if
    this is a smallest one, or if there is none."""

    flipped: frozenset[int] | None
    bound: float
    why_not_proven: str | None


NO_SOLUTION = Found(None, math.inf, None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found, the facts that are flipped, None without a solution, proofs that connect them with the goals, and
    where the time went."""

    found: Found
    seconds: Seconds
    flipped: tuple[WordFact, ...] | None = None
    proofs: tuple[Proof, ...] = ()

    @property
    def is_proven(self) -> bool:
        """Whether nothing smaller does, or nothing at all."""
        return self.found.why_not_proven is None


class WantsModel(Exception):
    """Trials have taught little so far: a derivation graph may help."""


@dataclass
class Search:
    """Conditions come from the model, if there is one, otherwise from trials. `patience`: after so many
    choices it raises WantsModel."""

    problem: Problem
    news: News
    model: Model | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        problem = self.problem
        self._switches, self._sandbox = problem.switches, problem.sandbox
        self._known: dict[Condition, None] = {}
        self._last = frozenset[int]()
        """The last choice."""
        self._bound = 0.0
        """No choice weighs less that fulfils the conditions known."""
        self._choices = 0
        self._dear = frozenset[int]()
        """Switches of choices whose trial was broken off: there may be others that do as well."""
        self._allowed = SETTINGS.first_trial_derivations

    @cached_property
    def _oracle(self) -> Oracle:
        if self.model is None:
            return ProofOracle(self.problem)
        graph = self.model.graph
        self.news(f"{counted(graph.size, 'fact')} may vary, by {counted(len(graph.heads), 'derivation')}")
        return GraphOracle(self.problem, self.model)

    def outcome(self, is_baseline: bool = False) -> Outcome:
        """A smallest solution, or as small a one as the time allows; by delta debugging alone if `is_baseline`. The
        backend must be in the base."""
        found, seconds = (
            self._any("it was found by delta debugging") if is_baseline else self._search(),
            self._sandbox.seconds,
        )
        case, goals, facts = self.problem.case, self.problem.goals, self._switches.known
        left_out = None
        if self._sandbox.has_given_up:
            left_out = TIME_OVER if self.problem.would_try_longer else _LEFT_OUT
        if found.flipped is None:
            return Outcome(replace(found, why_not_proven=found.why_not_proven or left_out), seconds)
        if left_out and self._weight(found.flipped) > self._least_weight + TOLERANCE:
            found = Found(found.flipped, self._least_weight, found.why_not_proven or left_out)
        flipped = [facts[i].fact for i in found.flipped or ()]
        flipped.sort(key=lambda fact: (fact[0], case.reading.sort_key(fact)))
        if self.model is None:
            proofs = self.problem.connecting.all()
        else:
            proofs = proofs_in(self.model, goals, found.flipped or (), case)
        return Outcome(found, seconds, tuple(flipped), proofs)

    # --- the loop ---

    def _search(self) -> Found:
        why = _NO_SOLVER
        if is_solver_installed():
            try:
                return self._smallest()
            except OutOfTime as over:
                self._bound, why = max(self._bound, over.bound), TIME_OVER
        return self._any(why)

    def _smallest(self) -> Found:
        while True:
            self._sandbox.backend.watch.check()
            choice = self._best()
            if choice is None:
                if self._switches.close(self._others()):
                    continue
                is_proven = not self._others() or self._solve(with_others=True) is None
                return NO_SOLUTION if is_proven else replace(NO_SOLUTION, why_not_proven=_OTHER_FACTS)
            self._last, self._bound = choice.flipped, choice.bound
            new = self._wrong_with(choice)
            if new is None:
                continue
            if not new:
                best = self._solve(with_others=True) if self._others() else choice
                least = math.inf if best is None else best.bound
                if least >= choice.bound - TOLERANCE:
                    return Found(choice.flipped, choice.bound, None if choice.is_best else TIME_OVER)
                if self._switches.close(self._others()):
                    continue
                return Found(choice.flipped, least, _OTHER_FACTS)
            if not all(condition.concern for condition in new):
                return NO_SOLUTION
            self._known |= dict.fromkeys(new)
            self.news(f"at least {choice.bound:g} to change; {counted(len(self._known), 'condition')} so far")

    def _wrong_with(self, choice: Choice) -> list[Condition] | None:
        """Conditions that a choice does not fulfil; none if it is a solution. None: it is not tried for now."""
        try:
            return self._oracle.conditions(choice.flipped, lambda: self._first_limits(choice))
        except BudgetExceeded:
            self._dear |= choice.flipped
            return None

    def _first_limits(self, choice: Choice) -> TrialLimits | None:
        """Tight limits for a choice to which there may be another as good; None if it may cost what it does."""
        limits = self.problem.limits
        if limits is None or not choice.flipped:
            return None
        is_last = choice.flipped <= self._dear
        if self._allowed >= limits.derivations:
            return None if is_last else limits
        if is_last or len(self._dear) >= SETTINGS.dear_switches:
            self._allowed *= 10
            self._dear = frozenset()
        return replace(limits, derivations=min(self._allowed, limits.derivations))

    # --- choices ---

    def _best(self) -> Choice | None:
        """One of the best choices under the known conditions, if possible without switches that are expensive to try;
        None if there is none. Raises OutOfTime."""
        self._choices += 1
        if self._choices == self.patience:
            raise WantsModel
        choice = self._solve()
        if choice is None or choice.flipped.isdisjoint(self._dear):
            return choice
        other = self._solve(is_sparing=True)
        if other is None or self._weight(other.flipped) > self._weight(choice.flipped) + TOLERANCE:
            return choice
        return replace(choice, flipped=other.flipped)

    def _others(self) -> list[str]:
        """The relations with explicit facts that may matter and are not switches yet."""
        named = (name for condition in self._known for name in condition.concern.relations)
        return sorted(self._switches.are_open(named))

    def _solve(self, with_others: bool = False, is_sparing: bool = False) -> Choice | None:
        """A best choice under the known conditions: with a variable for each relation of which other facts may matter,
        or with a little more weight for what is expensive to try."""
        switches = self._switches
        names = self._others() if with_others else ()
        others = {name: len(switches.known) + i for i, name in enumerate(names)}
        weights = [*switches.weights, *[switches.least_weight] * len(others)]
        for i in self._dear if is_sparing else ():
            weights[i] *= 1 + A_LITTLE
        clauses = []
        for condition in self._known:
            concern, flipped = condition.concern, condition.flipped
            deletions = [i for i in switches.deletions(concern.relations) if i not in flipped]
            unmet = [others[name] for name in concern.relations if name in others]
            named = sorted({*concern.switches, *deletions, *unmet})
            clauses.append({switch: switch not in flipped for switch in named})
        # Once proofs one by one have not been enough: all derivations at once, if they are not too many.
        model, absent = self.model, self.problem.goals.absent
        if self._choices < SETTINGS.choices_before_graph or not absent or not (model and model.can_be_stated):
            model = None
        with self._sandbox.seconds.spent_on("solving"):
            return zero_one.solve(weights, clauses, self.problem.deadline, model, absent)

    def _weight(self, flipped: Iterable[int]) -> float:
        return sum(self._switches.weights[i] for i in flipped)

    @property
    def _least_weight(self) -> float:
        """The least that a solution weighs which changes anything."""
        return self._switches.least_weight if self._switches.explicit else min(self._switches.weights)

    # --- any solution ---

    def _any(self, why: str) -> Found:
        """A solution that may not be a smallest: delta debugging, lightest switches last so that they are kept."""
        start = self._start()
        if start is None:
            return replace(NO_SOLUTION, why_not_proven=why)
        self.news(f"{why}: delta debugging")
        order = sorted(start, key=lambda i: (-self._switches.weights[i], i))
        kept, _ = minimise(order, lambda part: self._is_solution(frozenset(part)), self.problem.end)
        self._is_solution(frozenset(kept), is_last=True)
        least = max(0.0 if self._others() else self._bound, self._least_weight)
        return Found(frozenset(kept), least, None if self._weight(kept) <= least + TOLERANCE else why)

    def _start(self) -> frozenset[int] | None:
        """A solution, however large; None if none was found. All switches, if no others can be met; otherwise the last
        choice, and all that conditions then name, until no goal is missed."""
        if not self._switches.explicit:
            every = frozenset(range(len(self._switches.known)))
            return every if self._is_solution(every) else None
        chosen, end = self._last, max(self.problem.end, time.monotonic() + SETTINGS.state_seconds)
        while new := self._oracle.conditions(chosen):
            if time.monotonic() > end:
                return None
            turned = frozenset(i for condition in new for i in condition.concern.switches) - chosen
            if not turned:
                return None
            chosen |= turned
        return chosen

    def _is_solution(self, flipped: frozenset[int], is_last: bool = False) -> bool:
        """Whether a choice, when tried, reaches all goals. The last one is looked at for the proofs that connect it
        with them."""

        def look(changes: ChangedWords) -> bool:
            is_reached = not any(self.problem.unmet())
            if is_reached and is_last and self.model is None:
                self.problem.connecting.look(changes)
            return is_reached

        try:
            return self._sandbox.look(flipped, self.problem.limits, look)
        except NoState:
            return False


# --- delta debugging -------------------------------------------------------------------------------------------------


def minimise(
    elements: Sequence[int], is_enough: Callable[[Sequence[int]], bool], deadline: float | None = None
) -> tuple[list[int], bool]:
    """Delta debugging (ddmin): a small part of some elements that is still enough, and whether it was reached before
    the deadline. It tries smaller and smaller parts, and knows nothing of derivations. If the test is monotone, no
    single element can be left out of the result."""
    kept = list(elements)
    parts = 2
    while len(kept) >= 2:
        pieces = _split(kept, parts)
        smaller: list[int] | None = None
        following = parts
        for piece in pieces:
            if _is_over(deadline):
                return kept, False
            if is_enough(piece):
                smaller, following = piece, 2
                break
        if smaller is None and parts > 2:
            for piece in pieces:
                if _is_over(deadline):
                    return kept, False
                left = set(piece)
                rest = [element for element in kept if element not in left]
                if is_enough(rest):
                    smaller, following = rest, max(parts - 1, 2)
                    break
        if smaller is not None:
            kept, parts = smaller, following
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept, True


def _split(elements: list[int], parts: int) -> list[list[int]]:
    ends = [len(elements) * i // parts for i in range(parts + 1)]
    return [elements[a:b] for a, b in pairwise(ends) if b > a]


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
