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
from itertools import count

from elastalog.debugging.bracket import Bracket
from elastalog.debugging.delta_debugging import minimise
from elastalog.debugging.graph import TooLarge, build_graph
from elastalog.debugging.laboratory import Laboratory, NoState, Seconds
from elastalog.debugging.oracles import Goals, GraphOracle, Oracle, Witness
from elastalog.debugging.polarity import Dependencies
from elastalog.debugging.trial_oracle import TrialOracle
from elastalog.debugging.zero_one import OutOfTime, ZeroOneProgram, is_solver_installed
from elastalog.provenance.explain import Setting

MOST_STATED = 100_000
"""Derivations that are stated in the 0/1 program at once; of a larger graph only the proofs that matter are, as they
are met."""

PATIENCE = 8
"""Choices that are tried before the derivation graph is built."""

RESERVED = 0.3
"""The part of the time that is kept for delta debugging."""

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


@dataclass(frozen=True, slots=True)
class Task:
    """What to search for: switches with weights, goals, and the time given."""

    laboratory: Laboratory
    setting: Setting
    signs: Dependencies
    goals: Goals
    weights: Sequence[float]
    seconds_allowed: float
    news: News
    witness: Witness
    is_baseline: bool = False
    """Use nothing but delta debugging, to compare with."""

    @property
    def seconds(self) -> Seconds:
        return self.laboratory.seconds


def search(task: Task) -> Found | NoSolution:
    """A smallest solution, or as small a one as the time allows."""
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
    """Learns from trials first, since mostly a few are enough; then from the derivation graph, where there is an exact
    one."""
    program = ZeroOneProgram(task.weights)
    oracle: Oracle = TrialOracle(task.laboratory, task.setting, task.signs, task.goals, deadline, task.witness)
    known = 0
    for number in count(1):
        if number == PATIENCE:
            oracle = _graph_oracle(task, program) or oracle
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


def _graph_oracle(task: Task, program: ZeroOneProgram) -> Oracle | None:
    """The derivation graph as an oracle, with its derivations stated in the program; None if it is not exact or too
    large."""
    laboratory, goals = task.laboratory, task.goals
    bracket = Bracket(laboratory, task.signs)
    names = {relation for relation, _ in goals.all}
    if not names <= bracket.positive or not all(bracket.varying.has(*fact) for fact in goals.all):
        return None
    began, trials = time.perf_counter(), task.seconds.trials
    try:
        graph = build_graph(laboratory, bracket, goals.all)
    except TooLarge:
        return None
    finally:
        task.seconds.provenance += time.perf_counter() - began - (task.seconds.trials - trials)
    task.news(f"{graph.size:,} facts that vary, {len(graph.heads):,} derivations")
    if goals.absent and len(graph.heads) <= MOST_STATED:
        began = time.perf_counter()
        program.add_derivations(graph, goals.absent)
        task.seconds.solving += time.perf_counter() - began
    return GraphOracle(graph, goals, laboratory, task.witness)


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
        with task.laboratory.flipped(flipped) as changes:
            wrong, lacking = task.goals.unmet(task.laboratory.are_present(task.goals.all))
            if is_last:
                task.witness(changes)
    except NoState:
        return False
    return not wrong and not lacking
