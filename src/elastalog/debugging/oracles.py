"""Who says whether a choice of switches is a solution, and if not, what any solution must do differently.

A *condition* is a set of switches and a state: at least one of them must stand differently from how it stands there.
Every condition given here holds for every solution, so the best choice under the conditions known is a lower bound, and
if it is a solution it is a smallest one. That needs no monotone program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from elastalog.backends.protocol import ChangedWords
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.laboratory import Laboratory, NoState
from elastalog.debugging.model import Model
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.evaluation.trials import Limits
from elastalog.provenance.reading import WordFact

Witness: TypeAlias = Callable[[ChangedWords], None]
"""Called in the state of a solution, with what differs from the base there."""

MOST_CONDITIONS = 60
"""Conditions that are looked for at a time."""


@dataclass(frozen=True, slots=True)
class Goals:
    """Facts that must not hold, and facts that must."""

    absent: tuple[WordFact, ...]
    present: tuple[WordFact, ...]

    @property
    def all(self) -> tuple[WordFact, ...]:
        return (*self.absent, *self.present)

    def unmet(self, are_present: Sequence[bool]) -> tuple[list[WordFact], list[WordFact]]:
        """The facts that hold and must not, and those that must and do not, given which of `all` hold."""
        number = len(self.absent)
        wrong = [fact for fact, holds in zip(self.absent, are_present[:number], strict=True) if holds]
        return wrong, [fact for fact, holds in zip(self.present, are_present[number:], strict=True) if not holds]


@dataclass(frozen=True, slots=True)
class Condition:
    """At least one of `switches` must stand differently from how it stands where exactly those in `flipped` are
    flipped."""

    switches: frozenset[int]
    flipped: frozenset[int]


def any_but(flipped: frozenset[int], number: int) -> Condition:
    """Rules out one choice among `number` switches and nothing else."""
    return Condition(frozenset(range(number)), flipped)


class Oracle(Protocol):
    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        """What is wrong with a choice; nothing if it is a solution. Conditions are not fulfilled by the choice."""


class GraphOracle:
    """Asks the derivation graph, which is exact for the facts in it. After each condition it goes on as if that were
    fulfilled, so that several conditions on different switches come out at once. `limits`: see `Investigation`."""

    def __init__(self, model: Model, goals: Goals, laboratory: Laboratory, limits: Limits | None) -> None:
        self._model = model
        self._limits = limits
        self._goals = goals
        self._nodes = {fact: model.graph.node_of(fact) for fact in goals.all}
        self._laboratory = laboratory

    def conditions(self, flipped: frozenset[int]) -> list[Condition]:
        return self._conditions(flipped) or self._verified(flipped)

    def _verified(self, flipped: frozenset[int]) -> list[Condition]:
        """No graph has the last word: the choice is really tried."""
        try:
            try:
                wrong, lacking = self._tried(flipped, self._limits)
            except BudgetExceeded:
                wrong, lacking = self._tried(flipped, None)
        except NoState:
            return [any_but(flipped, len(self._laboratory.switches))]
        if wrong or lacking:
            raise InternalError("debugging", f"the derivation graph and the engine disagree about {[*wrong, *lacking]}")
        return []

    def _tried(self, flipped: frozenset[int], limits: Limits | None) -> tuple[list[WordFact], list[WordFact]]:
        """The goals that a choice does not reach."""
        with self._laboratory.flipped(flipped, limits):
            return self._goals.unmet(self._laboratory.are_present(self._goals.all))

    def _conditions(self, flipped: frozenset[int]) -> list[Condition]:
        began = time.perf_counter()
        found: dict[Condition, None] = {}
        state = set(flipped)
        turned: set[int] = set()
        while len(found) < MOST_CONDITIONS:
            self._laboratory.backend.watch.step()
            now = self._model.evaluate(state)
            here = frozenset(state)
            wrong, lacking = self._goals.unmet([now.holds(self._nodes[fact]) for fact in self._goals.all])
            new = [
                Condition(frozenset(self._model.switches(now.reason(self._nodes[fact]))), here)
                for fact in (*wrong, *lacking)
            ]
            # Later states are made up: only what was not turned before counts, or the search could go in circles.
            fresh = {switch for condition in new for switch in condition.switches} - turned
            found |= dict.fromkeys(new)
            if not fresh or not all(condition.switches for condition in new):
                break
            state ^= fresh
            turned |= fresh
        self._laboratory.seconds.provenance += time.perf_counter() - began
        return list(found)
