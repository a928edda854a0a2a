"""The derivation graph as seen by a question: around a base, with the switches that may be flipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from elastalog.backends.protocol import Vector
from elastalog.debugging.graph import DerivationGraph, State

MOST_REMEMBERED = 8
"""States that are remembered."""


@dataclass(frozen=True, slots=True)
class Model:
    """`base`: which elements of the update have their fact in the base. `switch_of`: the number of the switch that each
    element is; elements that are none stay as they are in the base."""

    graph: DerivationGraph
    base: Vector
    switch_of: Mapping[int, int]
    elements: tuple[int, ...]
    """The element that each switch is."""
    _latest: dict[frozenset[int], State] = field(default_factory=dict)

    def evaluate(self, flipped: Iterable[int]) -> State:
        """The state with some switches flipped; the latest are remembered."""
        chosen = frozenset(flipped)
        state = self._latest.get(chosen)
        if state is None:
            is_on = self.base.copy()
            is_on[[self.elements[switch] for switch in chosen]] ^= True
            state = self.graph.evaluate(is_on)
            if len(self._latest) == MOST_REMEMBERED:
                del self._latest[next(iter(self._latest))]
            self._latest[chosen] = state
        return state

    def switches(self, elements: Iterable[int]) -> list[int]:
        """The switches among some elements."""
        return [self.switch_of[element] for element in elements if element in self.switch_of]
