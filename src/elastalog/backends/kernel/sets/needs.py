"""Which facts of a stratum need which: the search of backward/forward checking, remembered for its pruned form.

A fact is a number: its touched entry times the relations of the stratum, + the number of its relation. Edges lead from
a head to the body facts of its derivations. They come in batches, each sorted by head; batches are merged when there
are many, so that both adding and following edges is work on whole arrays.
"""

from __future__ import annotations

import numpy as np

from elastalog.backends.kernel.store.memory import Vector

_MOST_BATCHES = 8


class Needs:
    """The edges of one stratum, whose relations are given."""

    def __init__(self, relations: tuple[str, ...]) -> None:
        self._numbers = {name: number for number, name in enumerate(relations)}
        self._names = relations
        self._batches: list[tuple[Vector, Vector]] = []

    def add(self, name: str, heads: Vector, needed: str, entries: Vector) -> None:
        """Heads of one relation need facts of another; in parallel."""
        if not len(heads):
            return
        pairs = np.stack((self._facts(name, heads), self._facts(needed, entries)), axis=1)
        self._batches.append(_sorted(pairs[:, 0], pairs[:, 1]))
        if len(self._batches) > _MOST_BATCHES:
            sources, goals = zip(*self._batches, strict=True)
            self._batches = [_sorted(np.concatenate(sources), np.concatenate(goals))]

    def of(self, facts: dict[str, Vector]) -> dict[str, Vector]:
        """What some facts need, each fact once."""
        wanted = [self._facts(name, entries) for name, entries in facts.items()]
        found = [_followed(np.concatenate(wanted), batch) for batch in self._batches] if wanted else []
        numbers = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
        parts = {name: numbers[numbers % len(self._names) == number] for name, number in self._numbers.items()}
        return {name: (part // len(self._names)).astype(np.int32) for name, part in parts.items() if len(part)}

    def _facts(self, name: str, entries: Vector) -> Vector:
        numbers: Vector = entries.astype(np.int64) * len(self._names) + self._numbers[name]
        return numbers


def _sorted(heads: Vector, goals: Vector) -> tuple[Vector, Vector]:
    order = np.lexsort((goals, heads))
    heads, goals = heads[order], goals[order]
    is_first = np.ones(len(heads), np.bool_)
    is_first[1:] = (heads[1:] != heads[:-1]) | (goals[1:] != goals[:-1])
    return heads[is_first], goals[is_first]


def _followed(wanted: Vector, batch: tuple[Vector, Vector]) -> Vector:
    heads, goals = batch
    first = np.searchsorted(heads, wanted, "left")
    number = np.searchsorted(heads, wanted, "right") - first
    places = np.repeat(first - np.concatenate(([0], np.cumsum(number)[:-1])), number) + np.arange(number.sum())
    result: Vector = goals[places]
    return result
