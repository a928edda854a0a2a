"""Finds what a question seeks among the elements of an update: by a model where there is one, otherwise by trials.

Also repairs without an update: a smallest set of explicit facts to delete, and of candidates to insert, that reaches
some goals. Here the question leads, not the database: explicit facts become switches as proofs reach them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from elastalog.backends.protocol import Backend, Matrix
from elastalog.debugging.dependencies import Dependencies, dependencies, useful
from elastalog.debugging.graph import DerivationGraph, Model
from elastalog.debugging.investigation import Case, Investigation
from elastalog.debugging.oracles import OthersFit
from elastalog.debugging.problem import Problem, Switches, seconds_a_trial
from elastalog.debugging.sandbox import Goals, Seconds, Switch, WordSet
from elastalog.debugging.search import NO_SOLUTION, TIME_OVER, News, Outcome, Search, WantsModel
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.evaluation.epochs import can_limit
from elastalog.provenance.reading import WordFact
from elastalog.provenance.steps import Steps
from elastalog.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question seeks. `is_applied`: the base is the later epoch, and flipping undoes; otherwise the base is the
    earlier one, and flipping applies. Elements in `kept` are not flipped."""

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
    # Before anything is tried: where trials can be made again for little.
    is_cheap = len(known.elements) <= SETTINGS.few_elements and can_limit(case.epochs.backend, case.epochs.strategy)
    is_modelled = is_cheap and not plan.is_baseline
    is_all_chosen = plan.is_baseline
    end = time.monotonic() + seconds_allowed
    while True:
        left = max(end - time.monotonic(), 0.0)
        graph = _graph(known, goals, case.epochs.backend, seconds, left) if is_modelled else None
        chosen = allowed
        if graph is None and any(map(known.is_out_of_reach, goals.present)):
            return Outcome(NO_SOLUTION, seconds)
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
                patience = None if is_modelled else SETTINGS.choices_before_graph
                found = Search(problem, news, model, patience).outcome(plan.is_baseline)
            except WantsModel:
                is_modelled = True
                continue
            except OthersFit as others:
                goals = others.goals
                continue
            if problem.sandbox.has_met_no_state and len(chosen) < len(allowed) and time.monotonic() < end:
                is_all_chosen = True  # what seemed useless may lead past a state without a result
                continue
            return found


def _graph(
    known: Investigation, goals: Goals, backend: Backend, seconds: Seconds, left: float
) -> DerivationGraph | None:
    """The graph that decides about the goals, unless it takes as long to find as several states, or about half of the
    time left."""
    watch = backend.watch
    try:
        with watch.within(SETTINGS.graph_trials * seconds_a_trial(left, backend)):
            return known.graph(goals.all, seconds)
    except LimitReached:
        watch.check()  # raises if it is a limit of the user
        return None


def _model(graph: DerivationGraph, every: Sequence[Switch], chosen: tuple[int, ...]) -> Model:
    base = np.array([not switch.adds for switch in every], np.bool_)
    return Model(graph, base, {element: i for i, element in enumerate(chosen)}, chosen)


# --- repairs ----------------------------------------------------------------------------------------------------------


MOST_STEPS = 100_000
"""Steps of proofs that are kept from question to question."""


class Ground:
    """What is known about an epoch and its explicit facts, kept from question to question."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._steps: Steps | None = None
        self.corners: dict[str, WordSet | None] = {}
        """See `Corners`; without candidates."""

    @cached_property
    def explicit(self) -> Mapping[str, Matrix]:
        """The explicit facts, by relation."""
        backend = self._case.setting.backend
        found = {}
        for name, relation in backend.program.relations.items():
            if not relation.is_hidden:
                words = backend.facts(relation.given or name).words
                explicit = words[backend.is_explicit(name, words)]
                if len(explicit):
                    found[name] = explicit
        return found

    @property
    def size(self) -> int:
        return sum(map(len, self.explicit.values()))

    def changes(self) -> dict[WordFact, bool]:
        """All explicit facts as changes of a world without facts: all came."""
        return {(name, tuple(row)): True for name, words in self.explicit.items() for row in words.tolist()}

    @cached_property
    def signs(self) -> Dependencies:
        """How every relation depends on those with explicit facts."""
        return dependencies(self._case.setting.backend.program, self.explicit)

    def steps(self) -> Steps:
        """Steps of proofs in this epoch."""
        if self._steps is None or len(self._steps.known) > MOST_STEPS:
            self._steps = self._case.steps(is_any=True)
        return self._steps


def repair(
    case: Case,
    ground: Ground,
    plan: Plan,
    candidates: Mapping[WordFact, bool],
    seconds_allowed: float,
    news: News,
) -> Outcome:
    """A smallest set of changes of one epoch. `candidates`: the facts that may be inserted, or deleted, by whether each
    is there. Without unwanted facts nothing else changes; otherwise any explicit fact may be deleted that is not kept.
    If the explicit facts are few, and some choices from the question prove no minimum, all of them are searched: where
    there are very many proofs, that is sooner done."""
    end = time.monotonic() + seconds_allowed

    def among(changes: Mapping[WordFact, bool], seconds: float) -> Outcome:
        """Mends by changes of which all are known beforehand."""
        investigation = Investigation(case, changes, ranked=changes is candidates)
        return search_update(investigation, plan, max(seconds, 0.1), news)

    def asked(seconds: float, patience: int | None = None) -> Outcome:
        """Mends by what proofs of the unwanted facts lead to."""
        return Search(_problem(case, ground, plan, candidates, seconds), news, patience=patience).outcome()

    if not plan.goals.absent:
        return among(candidates, seconds_allowed)
    if ground.size > SETTINGS.few_elements:
        return asked(seconds_allowed)
    best = Outcome(replace(NO_SOLUTION, why_not_proven=TIME_OVER), Seconds())
    with suppress(WantsModel):
        best = asked(SETTINGS.first_share * seconds_allowed, SETTINGS.choices_before_all)
    for attempt in (lambda left: among({**ground.changes(), **candidates}, left / 2), asked):
        left = end - time.monotonic()
        if best.is_proven or left <= 0:
            break
        other = attempt(left)
        best = other if plan.weight(other) <= plan.weight(best) else best
    return best


def _problem(
    case: Case, ground: Ground, plan: Plan, candidates: Mapping[WordFact, bool], seconds_allowed: float
) -> Problem:
    """To choose among all explicit facts and the candidates."""
    inserted = [fact for fact, is_there in candidates.items() if not is_there]
    signs, corners = ground.signs, ground.corners
    if inserted:
        bases = {*ground.explicit, *(name for name, _ in inserted)}
        signs, corners = dependencies(case.epochs.backend.program, bases), {}
    given = (Switch(fact, adds=True) for fact in inserted if fact not in plan.kept)
    return Problem(
        case=case,
        goals=plan.goals,
        switches=Switches(given, plan.weights, ground.explicit, plan.kept),
        signs=signs,
        base_steps=ground.steps,
        corners=corners,
        seconds=Seconds(),
        seconds_allowed=seconds_allowed,
    )
