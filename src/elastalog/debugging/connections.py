"""Proofs that connect the elements of an update with faults: expanded where it matters, and cut at facts that stay as
they are."""

from __future__ import annotations

from collections.abc import Container, Sequence

from elastalog.backends.protocol import ChangedWords
from elastalog.debugging.bracket import WordSet
from elastalog.debugging.oracles import Goals
from elastalog.debugging.reasons import steps_of
from elastalog.provenance.explain import Setting
from elastalog.provenance.proof import AggregatePremise, Premise, Proof, height_over
from elastalog.provenance.reading import AggregateUse, Item, Reading, WordFact
from elastalog.provenance.steps import Steps


class Connections:
    """Proofs in the present state of the backend. Facts in `changing` are proved, all others only named."""

    def __init__(self, setting: Setting, reading: Reading, changing: WordSet) -> None:
        self._reading = reading
        self._changing = changing
        self._steps: Steps = steps_of(setting, reading)
        self._items: dict[WordFact, list[Item]] = {}

    def prove(self, roots: Sequence[WordFact]) -> list[Proof]:
        """The proofs of facts that hold and change."""
        self._collect(roots)
        done: dict[WordFact, Proof] = {}
        for root in roots:
            for fact in self._from_below(root, done):
                self._finish(fact, done)
        return [done[root] for root in roots]

    def _collect(self, roots: Sequence[WordFact]) -> None:
        frontier = list(dict.fromkeys(roots))
        while frontier:
            self._steps.find(frontier)
            following: list[WordFact] = []
            for fact in frontier:
                step = self._steps.known[fact]
                items: list[Item] = []
                if not step.is_explicit:
                    assert step.clause is not None
                    items = self._reading.items(step.clause, fact, step.bodies)
                self._items[fact] = items
                following += [item for item in items if isinstance(item, tuple) and self._changing.has(*item)]
            frontier = [fact for fact in dict.fromkeys(following) if fact not in self._items]

    def _from_below(self, root: WordFact, done: Container[WordFact]) -> list[WordFact]:
        """The facts to prove that are not done, each after those that it uses."""
        order: list[WordFact] = []
        pending: list[tuple[WordFact, bool]] = [(root, False)]
        met: set[WordFact] = set()
        while pending:
            fact, is_ready = pending.pop()
            if is_ready:
                order.append(fact)
            elif fact not in met and fact not in done:
                met.add(fact)
                pending.append((fact, True))
                pending += [
                    (item, False) for item in self._items[fact] if isinstance(item, tuple) and item in self._items
                ]
        return order

    def _finish(self, fact: WordFact, done: dict[WordFact, Proof]) -> None:
        step = self._steps.known[fact]
        children = tuple([self._premise(item, done) for item in self._items[fact]])
        rule = None if step.clause is None else step.clause.rule
        done[fact] = Proof(self._reading.fact(fact), rule, children, True, height_over(children) if rule else 0)

    def _premise(self, item: Item, done: dict[WordFact, Proof]) -> Premise:
        if isinstance(item, AggregateUse):
            number = 0
            if item.hidden is not None:
                self._steps.find([item.hidden])
                number = self._steps.known[item.hidden].number
            return AggregatePremise(item.text, item.result, number, ())
        if isinstance(item, tuple):
            return done.get(item) or Proof(self._reading.fact(item), None, (), False, None)
        return item


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
        came = WordSet(self._setting.backend.program)
        for name, (new, old) in changes.items():
            came.add(name, new)
            self._went.add(name, old)
        self._present = Connections(self._setting, self._reading, came).prove(self._goals.present)

    def all(self) -> tuple[Proof, ...]:
        """To be called in the base."""
        absent = Connections(self._setting, self._reading, self._went).prove(self._goals.absent)
        return (*absent, *self._present)
