"""Finds what a plan seeks among the elements of an update: by a model where there is one, otherwise by trials."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from elastalog.backends.protocol import Backend
from elastalog.debugging.dependencies import useful
from elastalog.debugging.graph import DerivationGraph, Model
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.problem import Problem, seconds_a_trial
from elastalog.debugging.sandbox import Goals, Seconds, Switch
from elastalog.debugging.search import NO_SOLUTION, News, Outcome, Search, WantsModel
from elastalog.debugging.switches import Switches
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.provenance.reading import WordFact

_TRIALS_A_GRAPH = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sought for a question. `is_applied`: the base is the later epoch, and flipping undoes; otherwise the
    earlier, and flipping applies. Elements in `kept` are not flipped."""

    goals: Goals
    kept: frozenset[WordFact] = frozenset()
    weights: Mapping[WordFact, float] = field(default_factory=dict)
    is_applied: bool = True
    is_baseline: bool = False

    def weight(self, outcome: Outcome) -> float:
        """What an outcome weighs; infinitely much if nothing was found."""
        return math.inf if outcome.flipped is None else sum(self.weights.get(fact, 1.0) for fact in outcome.flipped)


def search_update(known: Investigation, plan: Plan, seconds_allowed: float, news: News) -> Outcome:
    """The later epoch must be in force."""
    case, goals, seconds = known.case, plan.goals, Seconds()
    every = known.switches(plan.is_applied)
    allowed = tuple(i for i, switch in enumerate(every) if switch.fact not in plan.kept)
    is_modelled = known.is_modelled_at_once and not plan.is_baseline
    is_all_chosen = plan.is_baseline
    end = time.monotonic() + seconds_allowed
    while True:
        left = max(end - time.monotonic(), 0.0)
        graph = _graph(known, goals, case.epochs.backend, seconds, left) if is_modelled else None
        chosen = allowed
        if graph is None and not is_all_chosen:
            names = ([relation for relation, _ in side] for side in (goals.absent, goals.present))
            chosen = tuple(allowed[i] for i in useful([every[i] for i in allowed], known.signs, *names))
        if not chosen:
            return Outcome(NO_SOLUTION, seconds)
        model = None if graph is None else _model(graph, every, chosen)
        with ExitStack() as stack:
            if not plan.is_applied:
                stack.enter_context(known.in_first(seconds))
            problem = Problem(
                case=case,
                goals=goals,
                switches=Switches((every[i] for i in chosen), plan.weights),
                signs=known.signs,
                base_steps=cache(lambda: case.steps(is_any=True)),
                corners={},
                seconds=seconds,
                seconds_allowed=max(end - time.monotonic(), 0.0),
                in_full=plan.is_baseline,
            )
            try:
                found = Search(problem, news, model, may_want_model=not is_modelled).outcome(plan.is_baseline)
            except WantsModel:
                is_modelled = True
                continue
            if problem.sandbox.has_met_no_state and len(chosen) < len(allowed) and time.monotonic() < end:
                is_all_chosen = True  # what seemed useless may lead past a state without a result
                continue
            return found


def _graph(
    known: Investigation, goals: Goals, backend: Backend, seconds: Seconds, left: float
) -> DerivationGraph | None:
    """What decides about the goals, unless finding it takes about half of the time left, or as long as several states
    may."""
    watch = backend.watch
    try:
        with watch.within(_TRIALS_A_GRAPH * seconds_a_trial(left, backend)):
            return known.graph(goals.all, seconds)
    except LimitReached:
        watch.check()  # raises if it is a limit of the user
        return None


def _model(graph: DerivationGraph, every: Sequence[Switch], chosen: tuple[int, ...]) -> Model:
    base = np.array([not switch.adds for switch in every], np.bool_)
    return Model(graph, base, {element: i for i, element in enumerate(chosen)}, chosen)
