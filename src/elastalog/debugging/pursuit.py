"""Finds what a plan seeks among the elements of an update: by a model where there is one, otherwise by trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from elastalog.backends.watch import Watch
from elastalog.debugging.connections import ConnectingProofs, proofs_in
from elastalog.debugging.graph import DerivationGraph
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.laboratory import Laboratory, Seconds, Switch
from elastalog.debugging.model import Model
from elastalog.debugging.oracles import Goals
from elastalog.debugging.polarity import useful
from elastalog.debugging.search import (
    LEAST_SECONDS,
    Found,
    News,
    NoSolution,
    Task,
    WantsModel,
    judged,
    search,
    seconds_a_trial,
)
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.evaluation.epochs import Epochs
from elastalog.provenance.explain import Setting
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import Reading, WordFact


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sought for a question. `is_applied`: the base is the later epoch, and flipping undoes; otherwise the
    earlier, and flipping applies. Elements in `kept` are not flipped."""

    goals: Goals
    is_applied: bool
    is_baseline: bool
    kept: frozenset[WordFact] = frozenset()
    weights: Mapping[WordFact, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found, the elements that are flipped, proofs that connect them with the goals, and where the time
    went."""

    found: Found | NoSolution
    flipped: tuple[WordFact, ...]
    proofs: tuple[Proof, ...]
    seconds: Seconds


def pursue(
    known: Investigation,
    plan: Plan,
    setting: Setting,
    reading: Reading,
    epochs: Epochs,
    seconds_allowed: float,
    news: News,
) -> Outcome:
    """The later epoch must be in force."""
    seconds = Seconds()
    goals = plan.goals
    every = known.switches(plan.is_applied)
    allowed = tuple(i for i, switch in enumerate(every) if switch.fact not in plan.kept)
    is_modelled = known.is_modelled_at_once and not plan.is_baseline
    is_all_chosen = plan.is_baseline
    while True:
        graph = _graph(known, goals, epochs.backend.watch, seconds, seconds_allowed) if is_modelled else None
        chosen = allowed
        if graph is None and not is_all_chosen:
            names = ([relation for relation, _ in side] for side in (goals.absent, goals.present))
            chosen = tuple(allowed[i] for i in useful([every[i] for i in allowed], known.signs, *names))
        if not chosen:
            return Outcome(NoSolution(is_proven=True), (), (), seconds)
        model = None if graph is None else _model(graph, every, chosen)
        with ExitStack() as stack:
            if not plan.is_applied:
                stack.enter_context(known.in_first(seconds))
            laboratory = Laboratory(epochs, tuple(every[i] for i in chosen), seconds, seconds_a_trial(seconds_allowed))
            weights = [plan.weights.get(every[i].fact, 1.0) for i in chosen]
            connecting = ConnectingProofs(setting, reading, goals)
            task = Task(
                laboratory,
                setting,
                known,
                goals,
                weights,
                seconds_allowed,
                news,
                connecting.look if model is None else (lambda _: None),
                model,
                not is_modelled,
                plan.is_baseline,
            )
            try:
                found = judged(search(task), weights, laboratory)
            except WantsModel:
                is_modelled = True
                continue
            if laboratory.has_met_no_state and len(chosen) < len(allowed):
                is_all_chosen = True  # what seemed useless may lead past a state without a result
                continue
            if isinstance(found, NoSolution):
                return Outcome(found, (), (), seconds)
            if model is None:
                proofs = connecting.all()
            else:
                proofs = proofs_in(model, goals, found.flipped, setting, reading, known.shown)
            flipped = tuple(every[chosen[i]].fact for i in sorted(found.flipped))
            return Outcome(found, flipped, proofs, seconds)


def _graph(
    known: Investigation, goals: Goals, watch: Watch, seconds: Seconds, seconds_allowed: float
) -> DerivationGraph | None:
    """What decides about the goals, unless it takes too long to find."""
    try:
        with watch.within(max(seconds_allowed, LEAST_SECONDS)):
            return known.graph(goals.all, seconds)
    except LimitReached:
        watch.check()  # raises if it is a limit of the user
        return None


def _model(graph: DerivationGraph, every: Sequence[Switch], chosen: tuple[int, ...]) -> Model:
    base = np.array([not switch.adds for switch in every], np.bool_)
    return Model(graph, base, {element: i for i, element in enumerate(chosen)}, chosen)
