"""Proofs that connect an answer with the faults: expanded where it matters, and cut at facts that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.graph import Model, State
from elastalog.debugging.investigation import Case
from elastalog.debugging.sandbox import Goals, WordSet, are_present
from elastalog.provenance.proof import Proof
from elastalog.provenance.reading import WordFact
from elastalog.provenance.search import Assembly
from elastalog.provenance.steps import EXPLICIT, Step, Steps

Changing: TypeAlias = Callable[[WordFact], bool]
"""Whether a fact is not the same in the two states that are compared."""


@dataclass(slots=True)
class Connections(Assembly):
    """Proofs from the steps of one state. Facts in `changing` are proved, others only named; members of aggregates are
    not listed."""

    _changing: Changing = field(kw_only=True)

    def _goes_on(self, fact: WordFact) -> bool:
        return self._changing(fact)

    def _members(self, hidden: WordFact) -> list[WordFact]:
        return []

    def _unexpanded(self, fact: WordFact) -> Proof:
        return Proof(self._reading.fact(fact), None, (), False, None)


@dataclass
class ConnectingProofs:
    """Proofs of the facts that should be absent, in the base, and of those that should be present, in the state of a
    solution, as far as the two states differ."""

    _case: Case
    _goals: Goals

    def __post_init__(self) -> None:
        self._went = WordSet(self._case.setting.backend.program)
        self._present: list[Proof] = []

    def look(self, changes: ChangedWords) -> None:
        """To be called in the state of the solution, with what differs from the base."""
        came, self._went = WordSet.came_and_went(self._case.setting.backend.program, changes)
        self._present = _proved(self._goals.present, self._case, self._case.steps(), came.has)

    def all(self) -> tuple[Proof, ...]:
        """To be called in the base."""
        holding = are_present(self._case.setting.backend, self._goals.absent)
        wrong = [fact for fact, holds in zip(self._goals.absent, holding, strict=True) if holds]
        return (*_proved(wrong, self._case, self._case.steps(), self._went.has), *self._present)


def _proved(facts: Sequence[WordFact], case: Case, steps: Steps, changing: Changing) -> list[Proof]:
    """The proofs of facts that hold and change."""
    made = Connections(case.reading, steps, "", None, lambda _: None, _changing=changing)
    made.find_steps(facts, None)
    return [made.build(fact, None) for fact in facts]


class GraphSteps(Steps):
    """Steps in one state of a derivation graph. What the graph does not have is the same in all states: its steps are
    found in the present state of the backend."""

    def __init__(self, state: State, other: Steps) -> None:
        super().__init__(other.reading, other.superseded)
        self._state = state
        self._other = other

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


def proofs_in(model: Model, goals: Goals, flipped: Iterable[int], case: Case) -> tuple[Proof, ...]:
    """The proofs of `ConnectingProofs`, from a model and the switches of a solution alone."""
    base, solved, graph, other = model.evaluate(()), model.evaluate(flipped), model.graph, case.steps()

    def proved(facts: Sequence[WordFact], state: State, opposite: State) -> list[Proof]:
        def is_gained(fact: WordFact) -> bool:
            node = graph.node_of(fact)
            return node >= 0 and state.holds(node) and not opposite.holds(node)

        return _proved(facts, case, GraphSteps(state, other), is_gained)

    wrong = [fact for fact in goals.absent if (node := graph.node_of(fact)) >= 0 and base.holds(node)]
    return (*proved(wrong, base, solved), *proved(goals.present, solved, base))
