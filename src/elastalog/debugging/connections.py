"""Proofs that connect an answer with the faults: expanded where it matters, and cut at facts that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.graph import Model, State
from elastalog.debugging.investigation import Case
from elastalog.debugging.sandbox import Goals, WordSet, are_present
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.search import Assembly
from elastalog.provenance.steps import EXPLICIT, Step, Steps


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

    def __init__(self, case: Case, goals: Goals) -> None:
        self._case = case
        self._goals = goals
        self._went = WordSet(case.setting.backend.program)
        self._present: list[Proof] = []

    def look(self, changes: ChangedWords) -> None:
        """To be called in the state of the solution, with what differs from the base."""
        came, self._went = WordSet.came_and_went(self._case.setting.backend.program, changes)
        self._present = self._prove(self._goals.present, came)

    def all(self) -> tuple[Proof, ...]:
        """To be called in the base."""
        holding = are_present(self._case.setting.backend, self._goals.absent)
        wrong = [fact for fact, holds in zip(self._goals.absent, holding, strict=True) if holds]
        return (*self._prove(wrong, self._went), *self._present)

    def _prove(self, facts: Sequence[WordFact], changing: WordSet) -> list[Proof]:
        if not facts:
            return []
        return _connections(self._case.reading, self._case.steps(), changing).prove_all(facts)


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


def proofs_in(model: Model, goals: Goals, flipped: Iterable[int], case: Case) -> tuple[Proof, ...]:
    """The proofs of `ConnectingProofs`, from a model and the switches of a solution alone."""
    base, solved = model.evaluate(()), model.evaluate(flipped)
    other = case.steps()
    found: list[Proof] = []
    wrong = [fact for fact in goals.absent if (node := model.graph.node_of(fact)) < 0 or base.holds(node)]
    for facts, state, opposite in ((wrong, base, solved), (goals.present, solved, base)):
        found += _connections(case.reading, GraphSteps(state, other), Gained(state, opposite)).prove_all(facts)
    return tuple(found)
