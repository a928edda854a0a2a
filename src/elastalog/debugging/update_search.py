"""Finds what a plan seeks among the elements of an update: by a model where there is one, otherwise by trials.

The answer comes with proofs that connect the elements with the faults: expanded where it matters, and cut at facts that
stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from elastalog.backends.protocol import Backend, ChangedWords
from elastalog.debugging.dependencies import useful
from elastalog.debugging.graph import DerivationGraph, Model, State
from elastalog.debugging.investigation import Investigation
from elastalog.debugging.known_proofs import steps_of
from elastalog.debugging.oracles import Goals
from elastalog.debugging.sandbox import Sandbox, Seconds, Switch, WordSet, are_present
from elastalog.debugging.search import ElementSearch, Found, News, NoSolution, WantsModel, judged, seconds_a_trial
from elastalog.debugging.switches import Switches
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.provenance.explain import Setting
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.search import Assembly
from elastalog.provenance.steps import EXPLICIT, Step, Steps

_TRIALS_A_GRAPH = 4


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


def search_update(known: Investigation, plan: Plan, seconds_allowed: float, news: News) -> Outcome:
    """The later epoch must be in force."""
    epochs, setting, reading = known.case.epochs, known.case.setting, known.case.reading
    seconds = Seconds()
    goals = plan.goals
    every = known.switches(plan.is_applied)
    allowed = tuple(i for i, switch in enumerate(every) if switch.fact not in plan.kept)
    is_modelled = known.is_modelled_at_once and not plan.is_baseline
    is_all_chosen = plan.is_baseline
    end = time.monotonic() + seconds_allowed
    while True:
        left = max(end - time.monotonic(), 0.0)
        graph = _graph(known, goals, epochs.backend, seconds, left) if is_modelled else None
        left = max(end - time.monotonic(), 0.0)
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
            switches = Switches((every[i] for i in chosen), plan.weights)
            sandbox = Sandbox(epochs, switches.known, seconds, seconds_a_trial(left, epochs.backend))
            connecting = ConnectingProofs(setting, reading, goals)
            search = ElementSearch(
                sandbox=sandbox,
                goals=goals,
                switches=switches,
                seconds_allowed=left,
                news=news,
                witness=connecting.look if model is None else (lambda _: None),
                investigation=known,
                model=model,
                may_want_model=not is_modelled,
            )
            try:
                found = search.any_solution("it was found by delta debugging") if plan.is_baseline else search.search()
                found = judged(found, switches.weights, sandbox)
            except WantsModel:
                is_modelled = True
                continue
            if sandbox.has_met_no_state and len(chosen) < len(allowed) and time.monotonic() < end:
                is_all_chosen = True  # what seemed useless may lead past a state without a result
                continue
            if isinstance(found, NoSolution):
                return Outcome(found, (), (), seconds)
            if model is None:
                proofs = connecting.all()
            else:
                proofs = proofs_in(model, goals, found.flipped, known)
            flipped = tuple(every[chosen[i]].fact for i in sorted(found.flipped))
            return Outcome(found, flipped, proofs, seconds)


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


# --- connecting proofs -----------------------------------------------------------------------------------------------


class Changing(Protocol):
    def has(self, relation: str, row: tuple[int, ...]) -> bool:
        """Whether a fact is not the same in the two states that are compared."""


@dataclass(slots=True)
class Connections(Assembly):
    """Proofs made of steps in one state. Facts in `changing` are proved, all others only named; members of
    aggregates are not listed."""

    _changing: Changing = field(kw_only=True)

    def prove_all(self, roots: Sequence[WordFact]) -> list[Proof]:
        """The proofs of facts that hold and change."""
        self._find_steps(roots, None)
        return [self._build(root, None) for root in roots]

    def _goes_on(self, fact: WordFact) -> bool:
        return self._changing.has(*fact)

    def _members(self, hidden: WordFact) -> list[WordFact]:
        return []

    def _unexpanded(self, fact: WordFact) -> Proof:
        return Proof(self._reading.fact(fact), None, (), False, None)


class ConnectingProofs:
    """Why facts that should be absent hold in the base, and why facts that should be present hold in the state of a
    solution; proved as far as the two differ."""

    def __init__(self, setting: Setting, reading: Reading, goals: Goals) -> None:
        self._setting = setting
        self._reading = reading
        self._goals = goals
        self._went = WordSet(setting.backend.program)
        self._present: list[Proof] = []

    def look(self, changes: ChangedWords) -> None:
        """To be called in the state of the solution, with what differs from the base."""
        came, self._went = WordSet.came_and_went(self._setting.backend.program, changes)
        self._present = self._prove(self._goals.present, came)

    def all(self) -> tuple[Proof, ...]:
        """To be called in the base."""
        holding = are_present(self._setting.backend, self._goals.absent)
        wrong = [fact for fact, holds in zip(self._goals.absent, holding, strict=True) if holds]
        return (*self._prove(wrong, self._went), *self._present)

    def _prove(self, facts: Sequence[WordFact], changing: WordSet) -> list[Proof]:
        if not facts:
            return []
        return _connections(self._reading, steps_of(self._setting, self._reading), changing).prove_all(facts)


def _connections(reading: Reading, steps: Steps, changing: Changing) -> Connections:
    return Connections(reading, steps, "", None, lambda _: None, _changing=changing)


class GraphSteps:
    """Steps as they are in one state of a derivation graph. What the graph does not have is the same in all states, and
    found by steps in the present state of the backend."""

    def __init__(self, state: State, other: Steps) -> None:
        self.known: dict[WordFact, Step] = {}
        self._state = state
        self._other = other
        self.height: Callable[[WordFact], int | None] = lambda _: None
        self.is_explicit = other.is_explicit
        self.superseded_by = other.superseded_by

    def find(self, facts: Iterable[WordFact]) -> None:
        graph = self._state.graph
        for fact in facts:
            node = graph.node_of(fact)
            if node < 0:
                self._other.find([fact])
                self.known[fact] = self._other.known[fact]
                continue
            derivation = self._state.derivation_of(node)
            self.known[fact] = Step(*graph.derivation(derivation)) if derivation >= 0 else EXPLICIT


class Gained:
    """The facts of a graph that hold in one state and not in another."""

    def __init__(self, state: State, other: State) -> None:
        self._state = state
        self._other = other

    def has(self, relation: str, row: tuple[int, ...]) -> bool:
        node = self._state.graph.node_of((relation, row))
        return node >= 0 and self._state.holds(node) and not self._other.holds(node)


def proofs_in(model: Model, goals: Goals, flipped: Iterable[int], known: Investigation) -> tuple[Proof, ...]:
    """The proofs of `ConnectingProofs`, from a model and the switches of a solution alone."""
    base, solved = model.evaluate(()), model.evaluate(flipped)
    reading = known.case.reading
    other = steps_of(known.case.setting, reading)
    found: list[Proof] = []
    wrong = [fact for fact in goals.absent if (node := model.graph.node_of(fact)) < 0 or base.holds(node)]
    for facts, state, opposite in ((wrong, base, solved), (goals.present, solved, base)):
        found += _connections(reading, GraphSteps(state, other), Gained(state, opposite)).prove_all(facts)
    return tuple(found)
