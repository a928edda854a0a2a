"""The edges of the derivation graph: derivations as the numbers of the facts that they derive and use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elastalog.backends.protocol import ClauseDerivations, Vector

NOT = -1

FEW_DERIVATIONS = 64
"""Derivations by one clause among which repetitions are not looked for."""


@dataclass(frozen=True, slots=True)
class Part:
    """Derivations by one clause: the head of each, and the nodes that it uses, filled up with NOT. `rows`: which of
    those `found` they are."""

    heads: Vector
    bodies: Vector
    found: ClauseDerivations
    rows: Vector


@dataclass(frozen=True, slots=True)
class Edges:
    """Derivations by several clauses, in the order of their heads. Each was read at a row of the clause's derivations,
    which are at a place in `found`."""

    heads: Vector
    bodies: Vector
    found: tuple[ClauseDerivations, ...]
    places: Vector
    rows: Vector

    def __len__(self) -> int:
        return len(self.heads)

    def taken(self, chosen: Vector) -> Edges:
        """Some of them."""
        return Edges(self.heads[chosen], self.bodies[chosen], self.found, self.places[chosen], self.rows[chosen])


def distinct(heads: Vector, bodies: Vector, found: ClauseDerivations) -> Part:
    """Every set of nodes used once for each head. Only where it is worth the while: repetitions do no harm."""
    if len(heads) <= FEW_DERIVATIONS:
        return Part(heads, bodies, found, np.arange(len(heads)))
    rows = np.concatenate((heads[:, None], np.sort(bodies, axis=1)), axis=1)
    order = np.lexsort(rows.T)
    rows = rows[order]
    is_first = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    return Part(rows[is_first, 0], rows[is_first, 1:], found, order[is_first])


def merged(parts: Sequence[Part]) -> Edges:
    """The derivations of all parts."""
    sizes = [len(part.heads) for part in parts]
    bodies = np.full((sum(sizes), max((part.bodies.shape[1] for part in parts), default=1)), NOT, np.int64)
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        bodies[start : start + size, : part.bodies.shape[1]] = part.bodies
        start += size
    nothing = np.empty(0, np.int64)
    heads = np.concatenate((nothing, *(part.heads for part in parts)))
    order = np.argsort(heads, kind="stable")
    return Edges(
        heads[order],
        bodies[order],
        tuple(part.found for part in parts),
        np.repeat(np.arange(len(parts)), sizes)[order],
        np.concatenate((nothing, *(part.rows for part in parts)))[order],
    )


NO_EDGES = merged(())
