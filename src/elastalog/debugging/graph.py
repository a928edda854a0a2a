"""The derivation graph of the facts that vary, in memory: an exact model of every state.

Nodes are the varying facts of a bracket, and absences of such facts; every other fact counts as true. Edges are the
derivations that fire among the upper facts, as the numbers of the facts that they derive and use. A node holds in a
state if it is in the perfect model of the derivations over the switches that are on: the least model, in which an
absence holds once all that could derive its fact is known, and the fact is not there. A question sees the graph as a
`Model`: around a base, with the switches that may be flipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from elastalog.backends.protocol import ClauseDerivations, Vector
from elastalog.diagnostics.quota import look
from elastalog.planning.logical import Clause
from elastalog.provenance.reading import WordFact
from elastalog.settings import SETTINGS


@dataclass
class DerivationGraph:
    """`number_of`: the number of a fact that varies, -1 of any other; `node`: the node of each number. `edges`: the
    derivations between nodes; some node of a body may stand there twice. `switch_of`: the switch of a node's fact, or
    NOT. `negates`: the node whose absence a node is, NOT for facts. `strata`: the stratum of each fact."""

    number_of: Callable[[WordFact], int]
    node: Vector
    edges: Edges
    switch_of: Vector
    negates: Vector
    strata: Vector

    def __post_init__(self) -> None:
        self._nodes: dict[WordFact, int] = {}
        self._bodies_of: dict[int, list[list[int]]] = {}
        self.heads, self.bodies = self.edges.heads, self.edges.bodies
        self.size = len(self.negates)
        used = self.bodies >= 0
        self._width = used.sum(axis=1)
        derivation, _ = np.nonzero(used)
        users = self.bodies[used]
        order = np.argsort(users, kind="stable")
        self._uses = derivation[order]
        self._first_use = np.searchsorted(users[order], np.arange(self.size + 1))
        self._derivations = np.argsort(self.heads, kind="stable")
        self._first_derivation = np.searchsorted(self.heads[self._derivations], np.arange(self.size + 1))
        self._leaves = np.flatnonzero(self.switch_of >= 0)
        absences = np.flatnonzero(self.negates >= 0)
        of = self.strata[self.negates[absences]]
        self._absences = [absences[of == stratum] for stratum in np.unique(of).tolist()]
        """Absences of facts, by stratum, from below."""

    @property
    def is_positive(self) -> bool:
        return not self._absences

    def node_of(self, fact: WordFact) -> int:
        """The node of a fact, NOT if it has none."""
        known = self._nodes.get(fact)
        if known is None:
            known = self._nodes[fact] = int(self.node[self.number_of(fact)])  # the last place stands for NOT
        return known

    def evaluate(self, is_on: Vector) -> State:
        """The perfect model in the state where some switches are on."""
        rank = np.full(self.size, NOT, np.int32)
        by = np.full(self.size, NOT, np.int64)
        missing = self._width.copy()
        frontier = self._leaves[is_on[self.switch_of[self._leaves]]]
        level = 0
        for absences in (None, *self._absences):
            if absences is not None:
                frontier = absences[rank[self.negates[absences]] < 0]
            rank[frontier] = level
            while len(frontier):
                level += 1
                used = self._uses[ranges(self._first_use[frontier], self._first_use[frontier + 1])]
                np.subtract.at(missing, used, 1)
                fired = used[missing[used] == 0]
                fired = fired[rank[self.heads[fired]] < 0]
                frontier, chosen = np.unique(self.heads[fired], return_index=True)
                rank[frontier] = level
                by[frontier] = fired[chosen]
        return State(self, rank, by)

    def distinct_derivations(self) -> tuple[Vector, Vector]:
        """Heads and bodies, each node of a body once; without derivations of a fact from itself."""
        bodies = np.sort(self.bodies, axis=1)
        bodies[:, 1:][bodies[:, 1:] == bodies[:, :-1]] = NOT
        kept = ~(bodies == self.heads[:, None]).any(axis=1)
        return self.heads[kept], bodies[kept]

    def bodies_of(self, node: int) -> list[list[int]]:
        """The nodes that each derivation of a node uses."""
        known = self._bodies_of.get(node)
        if known is None:
            derivations = self._derivations[self._first_derivation[node] : self._first_derivation[node + 1]]
            known = [[body for body in row if body >= 0] for row in self.bodies[derivations].tolist()]
            self._bodies_of[node] = known
        return known

    @cached_property
    def plain(self) -> tuple[list[int], list[int]]:
        """`switch_of` and `negates`, to be looked at one by one."""
        return self.switch_of.tolist(), self.negates.tolist()

    def derivation(self, number: int) -> tuple[Clause, tuple[WordFact, ...]]:
        """The clause of a derivation, and all facts that it uses."""
        found, row = self.edges.found[int(self.edges.places[number])], int(self.edges.rows[number])
        bodies = zip(found.clause.scans, found.bodies, strict=True)
        return found.clause, tuple((scan.relation, tuple(body.words[row].tolist())) for scan, body in bodies)


@dataclass
class State:
    """The nodes that hold in one state, and the reasons. A reason is a set of switches: any state that agrees with this
    one on them agrees on the node."""

    graph: DerivationGraph
    _rank: Vector
    _by: Vector

    def holds(self, node: int) -> bool:
        return bool(self._rank[node] >= 0)

    def derivation_of(self, node: int) -> int:
        """The derivation by which a node that holds was first derived; NOT if it is explicit, or an absence."""
        return int(self._by[node])

    def reason(self, node: int) -> set[int]:
        """Why a node holds: the leaves of one proof. Or why it does not: the switches of an unfounded set, in which
        every derivation of a fact uses another fact of the set. Absences lead from one to the other."""
        look()
        switch_of, negates = self.graph.plain
        ranks, by = self._plain
        pending = [node]
        met = set(pending)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if negates[node] >= 0:
                following = [negates[node]]
            elif ranks[node] < 0:
                if switch_of[node] >= 0:
                    found.add(switch_of[node])
                following = self._lacking(node, met, ranks)
            elif by[node] == NOT:
                found.add(switch_of[node])
                continue
            else:
                following = [body for body in self.graph.bodies[by[node]].tolist() if body >= 0]
            for other in following:
                if other not in met:
                    met.add(other)
                    pending.append(other)
        return found

    def _lacking(self, node: int, met: set[int], ranks: list[int]) -> list[int]:
        """For every derivation of a node one that it uses and that does not hold: one already met, if any."""
        chosen: list[int] = []
        for bodies in self.graph.bodies_of(node):
            absent = [body for body in bodies if ranks[body] < 0]
            if not any(body in met or body in chosen for body in absent):
                chosen.append(absent[0])
        return chosen

    @cached_property
    def _plain(self) -> tuple[list[int], list[int]]:
        """The rank of every node and what it was derived by, to be looked at one by one."""
        return self._rank.tolist(), self._by.tolist()


def ranges(starts: Vector, ends: Vector) -> Vector:
    """The numbers from each start to its end, one after the other."""
    lengths = ends - starts
    skipped = np.cumsum(lengths) - lengths
    return np.repeat(starts - skipped, lengths) + np.arange(int(lengths.sum()))


NOT = -1

FEW_DERIVATIONS = 64
"""Derivations by one clause among which repetitions are not looked for."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Derivations: the head of each, and the nodes that it uses, filled up with NOT. Each was read at a row of those of
    its clause, which are at a place in `found`."""

    heads: Vector
    bodies: Vector
    found: tuple[ClauseDerivations, ...]
    places: Vector
    rows: Vector

    @staticmethod
    def of(found: ClauseDerivations, heads: Vector, bodies: Vector, rows: Vector | None = None) -> Edges:
        """Derivations by one clause; without rows, all of those found."""
        number = len(heads)
        return Edges(heads, bodies, (found,), np.zeros(number, np.int64), np.arange(number) if rows is None else rows)

    @staticmethod
    def joined(parts: Sequence[Edges]) -> Edges:
        """Derivations one after the other."""
        bodies = np.full(
            (sum(map(len, parts)), max((each.bodies.shape[1] for each in parts), default=1)), NOT, np.int64
        )
        columns: list[list[Vector]] = [[np.empty(0, np.int64)] for _ in range(3)]
        start, found = 0, list[ClauseDerivations]()
        for part in parts:
            bodies[start : start + len(part), : part.bodies.shape[1]] = part.bodies
            for column, values in zip(columns, (part.heads, part.places + len(found), part.rows), strict=True):
                column.append(values)
            start += len(part)
            found += part.found
        heads, places, rows = map(np.concatenate, columns)
        return Edges(heads, bodies, tuple(found), places, rows)

    def __len__(self) -> int:
        return len(self.heads)

    def taken(self, chosen: Vector) -> Edges:
        """Some of them."""
        return Edges(self.heads[chosen], self.bodies[chosen], self.found, self.places[chosen], self.rows[chosen])


def distinct(heads: Vector, bodies: Vector, found: ClauseDerivations) -> Edges:
    """Every set of nodes used once for each head. Only where it is worth the while: repetitions do no harm."""
    if len(heads) <= FEW_DERIVATIONS:
        return Edges.of(found, heads, bodies)
    rows = np.concatenate((heads[:, None], np.sort(bodies, axis=1)), axis=1)
    order = np.lexsort(rows.T)
    rows = rows[order]
    is_first = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    return Edges.of(found, rows[is_first, 0], rows[is_first, 1:], order[is_first])


def merged(parts: Sequence[Edges]) -> Edges:
    """Derivations in the order of their heads."""
    every = Edges.joined(parts)
    return every.taken(np.argsort(every.heads, kind="stable"))


NO_EDGES = merged(())


MOST_REMEMBERED = 8
"""States that are remembered."""


@dataclass(frozen=True, slots=True)
class Model:
    """`base`: which elements of the update have their fact in the base. `switch_of`: the number of each element's
    switch; elements without one stay as they are in the base."""

    graph: DerivationGraph
    base: Vector
    switch_of: Mapping[int, int]
    elements: tuple[int, ...]
    """The element that each switch is."""
    _latest: dict[frozenset[int], State] = field(default_factory=dict)

    @property
    def can_be_stated(self) -> bool:
        """Whether the derivations of the graph can be part of a 0/1 program."""
        return self.graph.is_positive and len(self.graph.heads) <= SETTINGS.stated_derivations

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
