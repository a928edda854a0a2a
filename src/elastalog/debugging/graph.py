"""The derivation graph of the facts that vary, in memory: an exact model of every state, for the positive part of a
program.

Nodes are facts of a bracket's `varying` from which the facts asked for can be reached; every other fact counts as true.
Edges are the derivations that fire with all switches on, one for each distinct set of varying facts used. A node holds
in a state if it is in the least model of the derivations over the switches that are on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from elastalog.backends.protocol import Backend, Vector
from elastalog.debugging.bracket import Bracket
from elastalog.debugging.laboratory import Laboratory, Switch
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.provenance.reading import WordFact

MOST_DERIVATIONS = 3_000_000
"""Derivations that are collected before giving up."""

NOT = -1


class TooLarge(Exception):
    """The graph would have more derivations than can be handled."""


class DerivationGraph:
    """`heads`: the node that each derivation derives; `bodies`: the nodes it uses, a row each, filled up with NOT;
    `switch_of`: the switch whose fact a node is, NOT for none; `node_of`: the nodes of the facts asked for."""

    def __init__(
        self,
        switches: Sequence[Switch],
        size: int,
        heads: Vector,
        bodies: Vector,
        switch_of: Vector,
        node_of: dict[WordFact, int],
    ) -> None:
        self.switches = switches
        self.size = size
        self.heads = heads
        self.bodies = bodies
        self.switch_of = switch_of
        self.node_of = node_of
        self._adds = np.array([switch.adds for switch in switches], np.bool_)
        used = bodies >= 0
        self._width = used.sum(axis=1)
        derivation, _ = np.nonzero(used)
        node = bodies[used]
        order = np.argsort(node, kind="stable")
        self._uses = derivation[order]
        self._first_use = np.searchsorted(node[order], np.arange(size + 1))
        order = np.argsort(heads, kind="stable")
        self._derivations = order
        self._first_derivation = np.searchsorted(heads[order], np.arange(size + 1))

    def evaluate(self, flipped: Iterable[int]) -> State:
        """The least model in the state with some switches flipped."""
        is_flipped = np.zeros(len(self.switches), np.bool_)
        is_flipped[list(flipped)] = True
        is_on = self._adds == is_flipped
        rank = np.full(self.size, NOT, np.int32)
        by = np.full(self.size, NOT, np.int64)
        missing = self._width.copy()
        leaves = np.flatnonzero(self.switch_of >= 0)
        frontier = leaves[is_on[self.switch_of[leaves]]]
        rank[frontier] = 0
        level = 0
        while len(frontier):
            level += 1
            used = self._uses[_ranges(self._first_use[frontier], self._first_use[frontier + 1])]
            np.subtract.at(missing, used, 1)
            fired = np.unique(used[missing[used] == 0])
            fired = fired[rank[self.heads[fired]] < 0]
            frontier, chosen = np.unique(self.heads[fired], return_index=True)
            rank[frontier] = level
            by[frontier] = fired[chosen]
        return State(self, is_flipped, rank, by)

    def derivations_of(self, node: int) -> list[int]:
        found = self._derivations[self._first_derivation[node] : self._first_derivation[node + 1]]
        return [int(derivation) for derivation in found]


class State:
    """Which nodes hold in one state, and why."""

    def __init__(self, graph: DerivationGraph, is_flipped: Vector, rank: Vector, by: Vector) -> None:
        self._graph = graph
        self._rank = rank
        self._by = by
        self.is_flipped = is_flipped

    def holds(self, fact: WordFact) -> bool:
        return bool(self._rank[self._graph.node_of[fact]] >= 0)

    def why(self, fact: WordFact) -> set[int]:
        """Switches whose being on keeps a fact that holds: the leaves of one proof."""
        graph = self._graph
        pending = [graph.node_of[fact]]
        met = set(pending)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if self._by[node] == NOT:
                found.add(int(graph.switch_of[node]))
                continue
            for body in graph.bodies[self._by[node]].tolist():
                if body >= 0 and body not in met:
                    met.add(body)
                    pending.append(body)
        return found

    def why_not(self, fact: WordFact) -> set[int]:
        """Switches whose being off keeps a fact that does not hold: those in an unfounded set, in which every
        derivation of a fact uses another fact of the set."""
        graph = self._graph
        pending = [graph.node_of[fact]]
        met = set(pending)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if graph.switch_of[node] >= 0:
                found.add(int(graph.switch_of[node]))
            for derivation in graph.derivations_of(node):
                absent = [b for b in graph.bodies[derivation].tolist() if b >= 0 and self._rank[b] < 0]
                if not any(body in met for body in absent):
                    met.add(absent[0])
                    pending.append(absent[0])
        return found


def build_graph(
    laboratory: Laboratory, bracket: Bracket, roots: Sequence[WordFact], most: int = MOST_DERIVATIONS
) -> DerivationGraph:
    """The graph above some facts, all of which vary. Raises TooLarge."""
    on = [i for i, switch in enumerate(laboratory.switches) if switch.adds]
    if not on:
        return _Collection(laboratory, bracket, most).collect(roots)
    with laboratory.flipped(on):
        return _Collection(laboratory, bracket, most).collect(roots)


class _Collection:
    """Collects derivations backwards from the roots, a frontier of facts at a time."""

    def __init__(self, laboratory: Laboratory, bracket: Bracket, most: int) -> None:
        self._backend: Backend = laboratory.backend
        self._switches = laboratory.switches
        self._varying = bracket.varying
        self._most = most
        self._first: dict[str, int] = {}
        size = 0
        for name in self._varying.relations():
            self._first[name] = size
            size += self._varying.size(name)
        self._is_met = np.zeros(size, np.bool_)
        self._heads: list[Vector] = []
        self._bodies: list[Vector] = []
        self._number = 0

    def collect(self, roots: Sequence[WordFact]) -> DerivationGraph:
        numbers = {fact: self._number_of(fact) for fact in roots}
        frontier = np.unique(np.array(list(numbers.values()), np.int64))
        self._is_met[frontier] = True
        while len(frontier):
            found = [self._expand(name, frontier) for name in self._first]
            fresh = np.unique(np.concatenate(found))
            frontier = fresh[~self._is_met[fresh]]
            self._is_met[frontier] = True
        return self._compact(numbers)

    def _number_of(self, fact: WordFact) -> int:
        name, row = fact
        found = int(self._varying.find(name, np.array([row], np.int32))[0])
        if found < 0:
            raise InternalError("debugging", f"{fact} is the same in all states")
        return self._first[name] + found

    def _expand(self, relation: str, frontier: Vector) -> Vector:
        first = self._first[relation]
        own = frontier[(frontier >= first) & (frontier < first + self._varying.size(relation))]
        met: list[Vector] = [np.empty(0, np.int64)]
        if len(own):
            for found in self._backend.derivations(relation, self._varying.words(relation)[own - first]):
                heads = own[found.heads]
                columns = [np.full(len(heads), NOT, np.int64)]
                for scan, body in zip(found.clause.scans, found.bodies, strict=True):
                    if scan.relation in self._first:
                        place = self._varying.find(scan.relation, body.words).astype(np.int64)
                        columns.append(np.where(place >= 0, place + self._first[scan.relation], NOT))
                heads, bodies = _distinct(heads, np.stack(columns, axis=1))
                self._number += len(heads)
                if self._number > self._most:
                    raise TooLarge
                self._heads.append(heads)
                self._bodies.append(bodies)
                met.append(bodies[bodies >= 0])
        return np.concatenate(met)

    def _compact(self, numbers: dict[WordFact, int]) -> DerivationGraph:
        node = np.cumsum(self._is_met) - 1
        size = int(self._is_met.sum())
        width = max((bodies.shape[1] for bodies in self._bodies), default=1)
        heads = np.concatenate([np.empty(0, np.int64), *self._heads])
        bodies = np.full((len(heads), width), NOT, np.int64)
        start = 0
        for part in self._bodies:
            bodies[start : start + len(part), : part.shape[1]] = part
            start += len(part)
        bodies = np.where(bodies >= 0, node[np.maximum(bodies, 0)] if len(node) else NOT, NOT)
        heads, bodies = _distinct(node[heads], bodies)
        if len(heads) and (bodies < 0).all(axis=1).any():
            raise InternalError("debugging", "a fact that varies follows from facts that do not")
        switch_of = np.full(size, NOT, np.int64)
        for i, switch in enumerate(self._switches):
            name, row = switch.fact
            place = int(self._varying.find(name, np.array([row], np.int32))[0])
            if place >= 0 and self._is_met[self._first[name] + place]:
                switch_of[node[self._first[name] + place]] = i
        return DerivationGraph(
            self._switches, size, heads, bodies, switch_of, {fact: int(node[n]) for fact, n in numbers.items()}
        )


def _distinct(heads: Vector, bodies: Vector) -> tuple[Vector, Vector]:
    """Every set of facts used once for each head; derivations of a fact from itself left out."""
    bodies = -np.sort(-bodies, axis=1)
    bodies[:, 1:][bodies[:, 1:] == bodies[:, :-1]] = NOT
    bodies = -np.sort(-bodies, axis=1)
    kept = ~(bodies == heads[:, None]).any(axis=1)
    rows = np.unique(np.concatenate((heads[kept, None], bodies[kept]), axis=1), axis=0)
    return rows[:, 0], rows[:, 1:]


def _ranges(starts: Vector, ends: Vector) -> Vector:
    """The numbers from each start to its end, one after the other."""
    lengths = ends - starts
    skipped = np.cumsum(lengths) - lengths
    return np.repeat(starts - skipped, lengths) + np.arange(int(lengths.sum()))
