"""The smallest set of switches that reaches some goals.

Conditions that every solution fulfils are collected one after the other: solve the 0/1 program of those known, ask the
oracle about the choice, add what is wrong with it, and again. The first choice that is a solution is a smallest one.
When the time is over, delta debugging finds a solution that was tried, and the last lower bound says how far from the
smallest it may be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from elastalog.debugging.graph import Model
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.oracles import Goals, GraphOracle, Oracle, TrialOracle, Witness
from elastalog.debugging.sandbox import NoState, Sandbox, Seconds
from elastalog.debugging.zero_one import TOLERANCE, OutOfTime, ZeroOneProgram, is_solver_installed
from elastalog.provenance.explain import Setting

MOST_STATED = 100_000
"""Derivations that are stated in the 0/1 program at once; of a larger graph only the proofs that matter are, as they
are met."""

PATIENCE = 8
"""Choices that are tried before a derivation graph is built, or stated in the 0/1 program."""

RESERVED = 0.3
"""The part of the time that is kept for delta debugging."""

_SHARE_OF_A_TRIAL = 0.25
LEAST_SECONDS = 1.0
"""What a state, and a derivation graph, may take however little time is given."""

News = Callable[[str], None]


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


def seconds_a_trial(allowed: float) -> float:
    """How long a state may take in a search that is allowed so many seconds: several may have no end."""
    return max(_SHARE_OF_A_TRIAL * allowed, LEAST_SECONDS)


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


class WantsModel(Exception):
    """Trials have taught little so far: a derivation graph may help."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to search for: switches with weights, goals, and the time given. `model`: an exact one, if there is one;
    `may_want_model`: none was looked for so far."""

    sandbox: Sandbox
    setting: Setting
    investigation: Investigation
    goals: Goals
    weights: Sequence[float]
    seconds_allowed: float
    news: News
    witness: Witness
    model: Model | None
    may_want_model: bool
    is_baseline: bool = False
    """Use nothing but delta debugging, to compare with."""

    @property
    def seconds(self) -> Seconds:
        return self.sandbox.seconds


def search(task: Task) -> Found | NoSolution:
    """A smallest solution, or as small a one as the time allows. Raises WantsModel."""
    end = time.monotonic() + task.seconds_allowed
    if task.is_baseline:
        return _fall_back(task, 0.0, "it was found by delta debugging", end)
    if not is_solver_installed():
        return _fall_back(task, 0.0, "highspy is not installed", end)
    deadline = time.monotonic() + task.seconds_allowed * (1 - RESERVED)
    try:
        return _solve(task, deadline)
    except OutOfTime as over:
        return _fall_back(task, over.bound, "the time was over", end)


def _solve(task: Task, deadline: float) -> Found | NoSolution:
    """Conditions come from the model, where there is one, otherwise from trials."""
    program = ZeroOneProgram(task.weights)
    oracle = _oracle(task, deadline)
    known = 0
    for number in count(1):
        task.sandbox.backend.watch.check()
        if number == PATIENCE:
            if task.may_want_model:
                raise WantsModel
            _state_derivations(task, program)
        began = time.perf_counter()
        try:
            choice = program.solve(deadline)
        finally:
            task.seconds.solving += time.perf_counter() - began
        if choice is None:
            return NoSolution(is_proven=True)
        conditions = oracle.conditions(choice.flipped)
        if not conditions:
            return Found(choice.flipped, choice.bound, None if choice.is_best else "the time was over")
        for condition in conditions:
            if not condition.switches:
                return NoSolution(is_proven=True)
            program.add_clause(condition.switches, condition.flipped)
        known += len(conditions)
        task.news(f"at least {choice.bound:g}; {known:,} conditions")
    raise AssertionError("counting does not end")


def _oracle(task: Task, deadline: float) -> Oracle:
    if task.model is None:
        return TrialOracle(task.sandbox, task.setting, task.investigation.signs, task.goals, deadline, task.witness)
    graph = task.model.graph
    task.news(f"{graph.size:,} facts that vary, {len(graph.heads):,} derivations")
    return GraphOracle(task.model, task.goals, task.sandbox, task.investigation.limits(task.goals.all))


def _state_derivations(task: Task, program: ZeroOneProgram) -> None:
    """Proofs one by one have not been enough: all derivations at once, if they are not too many."""
    model = task.model
    if model is not None and model.graph.is_positive and len(model.graph.heads) <= MOST_STATED and task.goals.absent:
        began = time.perf_counter()
        program.add_derivations(model, task.goals.absent)
        task.seconds.solving += time.perf_counter() - began


def _fall_back(task: Task, bound: float, why: str, end: float) -> Found | NoSolution:
    """Delta debugging over all switches, lightest last so that they are kept."""
    every = sorted(range(len(task.weights)), key=lambda i: -task.weights[i])
    if not _is_solution(task, frozenset(every)):
        return NoSolution(is_proven=False)
    task.news(f"{why}: delta debugging")
    kept, _ = minimise(every, lambda part: _is_solution(task, frozenset(part)), end)
    _is_solution(task, frozenset(kept), is_last=True)
    weight = sum(task.weights[i] for i in kept)
    least = max(bound, min(task.weights))
    return Found(frozenset(kept), least, None if weight <= least + 1e-9 else why)


def _is_solution(task: Task, flipped: frozenset[int], is_last: bool = False) -> bool:
    try:
        with task.sandbox.flipped(flipped) as changes:
            wrong, lacking = task.goals.unmet(task.sandbox.are_present(task.goals.all))
            if is_last:
                task.witness(changes)
    except NoState:
        return False
    return not wrong and not lacking


def minimise(
    elements: Sequence[int], is_enough: Callable[[Sequence[int]], bool], deadline: float | None = None
) -> tuple[list[int], bool]:
    """A small part of elements that is still enough, when all of them are; and whether it was reached before the
    deadline."""
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
