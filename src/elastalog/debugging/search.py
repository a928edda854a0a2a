"""The smallest set of switches that reaches some goals, by implicit hitting sets.

Conditions that every solution fulfils are collected one after the other: solve the 0/1 program of those known, ask what
is wrong with the choice, add that, and again. The first choice with which nothing is wrong is a smallest solution. When
the time is over, delta debugging finds a solution that was tried, and the last lower bound says how far from the
smallest it may be.

`HittingSets` is that loop. It is used with the elements of an update as switches, here, and with all explicit facts in
`repair`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from elastalog.backends.protocol import Backend, ChangedWords
from elastalog.debugging.graph import Model
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.known_proofs import steps_of
from elastalog.debugging.oracles import Goals, GraphOracle, Oracle, ProofOracle, Witness
from elastalog.debugging.sandbox import NoState, Sandbox
from elastalog.debugging.switches import Condition, Switches
from elastalog.debugging.zero_one import TOLERANCE, Choice, OutOfTime, ZeroOneProgram, is_solver_installed
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.epochs import TrialLimits

MOST_STATED = 100_000
"""Derivations that are stated in the 0/1 program at once; of a larger graph only the proofs that matter are, as they
are met."""

PATIENCE = 8
"""Choices that are tried before a derivation graph is built, or stated in the 0/1 program."""

RESERVED = 0.3
"""The part of the time that is kept for delta debugging."""

_SHARE_OF_A_TRIAL, _SECONDS_A_FACT = 0.1, 2e-5
LEAST_SECONDS = 1.0
"""What a state, and a derivation graph, may take however little time is given."""

News = Callable[[str], None]

_TIME_OVER = "time ran out"
_OTHER_FACTS = "other facts that rules negate may do with fewer"


@dataclass(frozen=True, slots=True)
class Found:
    """A solution that was tried. `bound`: no solution weighs less. `why_not_proven`: None if this one is a smallest."""

    flipped: frozenset[int]
    bound: float
    why_not_proven: str | None


@dataclass(frozen=True, slots=True)
class NoSolution:
    """`is_proven`: there is none; otherwise none was found in time."""

    is_proven: bool


def seconds_a_trial(allowed: float, backend: Backend) -> float:
    """How long a state may take in a search that is allowed this many seconds: several may have no end, and with few
    facts one that has takes no longer."""
    facts = sum(map(backend.stored, backend.program.relations))
    return max(min(_SHARE_OF_A_TRIAL * allowed, _SECONDS_A_FACT * facts), LEAST_SECONDS)


def judged(found: Found | NoSolution, weights: Sequence[float], sandbox: Sandbox) -> Found | NoSolution:
    """What was found, called a smallest, or none, only if no state was given up that might be one."""
    if not sandbox.has_given_up:
        return found
    if isinstance(found, NoSolution):
        return NoSolution(is_proven=False)
    least = min(weights)
    if sum(weights[i] for i in found.flipped) <= least + TOLERANCE:
        return found
    return Found(found.flipped, least, found.why_not_proven or "states that took too long were left out")


@dataclass(kw_only=True)
class HittingSets(ABC):
    """The search among some switches, of which there may come to be more. `limits`: how much of the program decides
    about the goals, None if all of it."""

    sandbox: Sandbox
    goals: Goals
    switches: Switches
    limits: TrialLimits | None = None
    seconds_allowed: float
    news: News
    witness: Witness

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds_allowed
        self.deadline = self.end - self.seconds_allowed * RESERVED
        self.known: dict[Condition, None] = {}
        self.weights = self.switches.weights
        self.lately = frozenset[int]()
        """The last choice."""
        self.bound = 0.0
        """No choice weighs less that fulfils the conditions known."""

    # --- what searches differ in ---

    @abstractmethod
    def best(self) -> Choice | None:
        """A best choice by the conditions known; None if there is none. Raises OutOfTime."""

    @abstractmethod
    def wrong_with(self, choice: Choice) -> list[Condition] | None:
        """Conditions that a choice does not fulfil; none if it is a solution. None: it is not tried for now."""

    def least(self, choice: Choice | None) -> float:
        """The least that a solution weighs if this is the best choice by the conditions known."""
        return math.inf if choice is None else choice.bound

    def widen(self) -> bool:
        """Makes switches of further facts that may matter. Returns whether there were any."""
        return False

    @abstractmethod
    def start(self) -> frozenset[int] | None:
        """A solution, however large; None if none was found."""

    # --- the loop ---

    def search(self) -> Found | NoSolution:
        """A smallest solution, or as small a one as the time allows."""
        why = "highspy is not installed"
        if is_solver_installed():
            try:
                return self._smallest()
            except OutOfTime as over:
                self.bound, why = max(self.bound, over.bound), _TIME_OVER
        return self.any_solution(why)

    def _smallest(self) -> Found | NoSolution:
        while True:
            self.sandbox.backend.watch.check()
            choice = self.best()
            if choice is None:
                if self.widen():
                    continue
                return NoSolution(is_proven=self.least(None) == math.inf)
            self.lately, self.bound = choice.flipped, choice.bound
            new = self.wrong_with(choice)
            if new is None:
                continue
            if not new:
                least = self.least(choice)
                if least >= choice.bound - TOLERANCE:
                    return Found(choice.flipped, choice.bound, None if choice.is_best else _TIME_OVER)
                if self.widen():
                    continue
                return Found(choice.flipped, least, _OTHER_FACTS)
            if not all(condition.switches or condition.relations for condition in new):
                return NoSolution(is_proven=True)
            self.known |= dict.fromkeys(new)
            self.news(f"at least {choice.bound:g} to change; {counted(len(self.known), 'condition')} so far")

    def any_solution(self, why: str) -> Found | NoSolution:
        """A solution that may not be a smallest: delta debugging, lightest switches last so that they are kept."""
        start = self.start()
        if start is None:
            return NoSolution(is_proven=False)
        self.news(f"{why}: delta debugging")
        order = sorted(start, key=lambda i: (-self.weights[i], i))
        kept, _ = minimise(order, lambda part: self.is_solution(frozenset(part)), self.end)
        self.is_solution(frozenset(kept), self.witness)
        least = max(self.proven_bound(), self.least_weight())
        return Found(frozenset(kept), least, None if self.weight(kept) <= least + TOLERANCE else why)

    def proven_bound(self) -> float:
        """The least that a solution weighs by the conditions known."""
        return self.bound

    def least_weight(self) -> float:
        """The least that a switch weighs."""
        return min(self.weights)

    def weight(self, flipped: Iterable[int]) -> float:
        return sum(self.weights[i] for i in flipped)

    def is_solution(self, flipped: frozenset[int], witness: Witness | None = None) -> bool:
        """Whether a choice that is tried reaches all goals. `witness` looks at the state in which it does."""

        def look(changes: ChangedWords) -> bool:
            is_reached = not any(self.goals.unmet(self.sandbox.are_present(self.goals.all)))
            if is_reached and witness is not None:
                witness(changes)
            return is_reached

        try:
            return self.sandbox.look(flipped, self.limits, look)
        except NoState:
            return False


# --- among the elements of an update ---------------------------------------------------------------------------------


class WantsModel(Exception):
    """Trials have taught little so far: a derivation graph may help."""


@dataclass(kw_only=True)
class ElementSearch(HittingSets):
    """The search among the elements of an update. Conditions come from the model, where there is one, otherwise from
    trials; `may_want_model`: none was looked for so far, and `search` raises WantsModel where it may help."""

    investigation: Investigation
    model: Model | None
    may_want_model: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        self._program = ZeroOneProgram(self.weights)
        self._oracle: Oracle | None = None
        self._choices = self._stated = 0

    def best(self) -> Choice | None:
        self._choices += 1
        if self._choices == PATIENCE:
            if self.may_want_model:
                raise WantsModel
            self._state_derivations()
        for condition in list(self.known)[self._stated :]:
            self._program.add_clause(condition.switches, condition.flipped)
        self._stated = len(self.known)
        with self.sandbox.seconds.spent_on("solving"):
            return self._program.solve(self.deadline)

    def wrong_with(self, choice: Choice) -> list[Condition]:
        if self._oracle is None:
            self._oracle = self.oracle()
        return self._oracle.conditions(choice.flipped)

    def start(self) -> frozenset[int] | None:
        every = frozenset(range(len(self.weights)))
        return every if self.is_solution(every) else None

    def _state_derivations(self) -> None:
        """Proofs one by one have not been enough: all derivations at once, if they are not too many."""
        model, absent = self.model, self.goals.absent
        if model is not None and model.graph.is_positive and len(model.graph.heads) <= MOST_STATED and absent:
            with self.sandbox.seconds.spent_on("solving"):
                self._program.add_derivations(model, absent)

    def oracle(self) -> Oracle:
        if self.model is None:
            case = self.investigation.case
            return ProofOracle(
                case=case, sandbox=self.sandbox, switches=self.switches, signs=self.investigation.signs,
                goals=self.goals, limits=self.limits, deadline=self.deadline, witness=self.witness,
                base_steps=cache(lambda: steps_of(case.setting, case.reading, is_any=True)), known_corners={},
            )  # fmt: skip
        graph = self.model.graph
        self.news(f"{counted(graph.size, 'fact')} may vary, by {counted(len(graph.heads), 'derivation')}")
        return GraphOracle(self.model, self.goals, self.sandbox, self.investigation.limits(self.goals.all))


# --- delta debugging -------------------------------------------------------------------------------------------------


def minimise(
    elements: Sequence[int], is_enough: Callable[[Sequence[int]], bool], deadline: float | None = None
) -> tuple[list[int], bool]:
    """Delta debugging (ddmin): a small part of elements that is still enough, when all of them are; and whether it was
    reached before the deadline. It knows nothing about derivations; it tries smaller and smaller parts. No single
    element can be left out of the result, if the test is monotone."""
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
