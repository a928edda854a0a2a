"""Collects the derivation graph backwards from facts asked about, stratum by stratum; what was collected once is
kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.protocol import Backend, ClauseDerivations, Matrix, Vector
from elastalog.debugging.bracket import Bracket, places
from elastalog.debugging.graph import NOT, DerivationGraph, Source
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import Absent, Clause
from elastalog.provenance.reading import WordFact
from elastalog.relations.words import Dictionary

MOST_DERIVATIONS = 3_000_000
"""Derivations that are collected before giving up."""


FEW_DERIVATIONS = 64
"""Derivations by one clause among which repetitions are not looked for."""


class TooLarge(Exception):
    """The graph would have more derivations than can be handled. The collection is of no further use."""


class CollectedDerivations:
    """Facts that vary are numbered, relation after relation; the absence of a fact has its number after all facts."""

    def __init__(
        self, backend: Backend, dictionary: Dictionary, bracket: Bracket, switches: Sequence[WordFact]
    ) -> None:
        self._backend = backend
        self._dictionary = dictionary
        self._bracket = bracket
        self._varying = bracket.varying
        self._names: list[str] = []
        starts: list[int] = []
        strata: list[int] = []
        self._size = 0
        for stratum in backend.program.strata:
            for name in stratum.relations:
                if self._varying.size(name) and name in bracket.exact:
                    self._names.append(name)
                    starts.append(self._size)
                    strata.append(stratum.number)
                    self._size += self._varying.size(name)
        self._first = dict(zip(self._names, starts, strict=True))
        self._starts = np.array(starts, np.int64)
        self._strata = np.array(strata, np.int64)
        self._is_collected = np.zeros(self._size, np.bool_)
        self._is_negated = np.zeros(self._size, np.bool_)
        self._switch_of = np.full(self._size, NOT, np.int64)
        for i, (name, row) in enumerate(switches):
            number = int(self._numbers(name, np.array([row], np.int32))[0]) if name in self._first else NOT
            if number >= 0:  # otherwise rules derive the fact in every state
                self._switch_of[number] = i
        self._heads: list[Vector] = []
        self._bodies: list[Vector] = []
        self._sources: list[Source] = []
        self._number = 0
        self._graph: DerivationGraph | None = None

    def covers(self, facts: Sequence[WordFact]) -> bool:
        """Whether all is known about some facts, and they vary."""
        return all(name in self._bracket.exact and self._varying.has(name, row) for name, row in facts)

    def graph(self, roots: Sequence[WordFact], most: int = MOST_DERIVATIONS) -> DerivationGraph:
        """A graph with all that some facts depend on; they must be covered. Raises TooLarge."""
        pending = self._fresh([self._numbers(name, np.array([row], np.int32)) for name, row in roots])
        if len(pending):
            self._graph = None
            with self._bracket.in_upper():
                while len(pending):
                    # From above, so that mostly all that is asked about a relation is asked at once.
                    strata = self._strata[self._owners(pending)]
                    is_next = strata == strata.max()
                    fresh = self._fresh(self._expand(pending[is_next]))
                    pending = np.concatenate((pending[~is_next], fresh))
                    if self._number > most:
                        raise TooLarge
        if self._graph is None:
            self._graph = self._compact()
        return self._graph

    def _numbers(self, relation: str, words: Matrix) -> Vector:
        """The numbers of facts, NOT for those that do not vary."""
        found = self._varying.find(relation, words).astype(np.int64)
        return np.where(found >= 0, found + self._first[relation], NOT)

    def _owners(self, facts: Vector) -> Vector:
        """The place of each fact's relation among the names."""
        found: Vector = np.searchsorted(self._starts, facts, side="right") - 1
        return found

    def _fresh(self, nodes: Sequence[Vector]) -> Vector:
        """The facts that nodes are, or are the absence of, and whose derivations have not been collected."""
        every = np.concatenate((np.empty(0, np.int64), *nodes))
        self._is_negated[every[every >= self._size] - self._size] = True
        facts = np.unique(every % self._size if self._size else every)
        fresh: Vector = facts[~self._is_collected[facts]]
        self._is_collected[fresh] = True
        return fresh

    def _expand(self, frontier: Vector) -> list[Vector]:
        """Collects the derivations of some facts; returns the nodes that they use."""
        met: list[Vector] = []
        owners = self._owners(frontier)
        for owner in np.unique(owners).tolist():
            name = self._names[owner]
            own = frontier[owners == owner]
            words = self._varying.words(name)[own - self._first[name]]
            for found in self._backend.derivations(name, words, self._uses_nodes):
                heads = own[found.heads]
                nodes = self._nodes(found, words)
                heads, bodies, rows = _distinct(heads, nodes)
                if (bodies < 0).all(axis=1).any():
                    raise InternalError("debugging", "a fact that varies follows from facts that do not")
                self._number += len(heads)
                self._heads.append(heads)
                self._bodies.append(bodies)
                self._sources.append(Source(found, rows))
                met.append(bodies[bodies >= 0])
        return met

    def _uses_nodes(self, clause: Clause) -> bool:
        """Whether derivations by a clause can use anything that varies. Others derive nothing that does."""
        return any(scan.relation in self._first for scan in clause.scans) or bool(self._bracket.negations(clause))

    def _nodes(self, found: ClauseDerivations, heads: Matrix) -> Vector:
        """The nodes that each derivation uses, a row each."""
        columns = [np.full(len(found.heads), NOT, np.int64)]
        for scan, body in zip(found.clause.scans, found.bodies, strict=True):
            if scan.relation in self._first:
                columns.append(self._numbers(scan.relation, body.words))
        for goal in self._bracket.negations(found.clause):
            numbers = self._numbers(goal.relation, self._negated(goal, found, heads))
            columns.append(np.where(numbers >= 0, numbers + self._size, NOT))
        return np.stack(columns, axis=1)

    def _negated(self, goal: Absent, found: ClauseDerivations, heads: Matrix) -> Matrix:
        """The facts whose absence each derivation uses for a negated atom."""
        place = places(found.clause)
        words = np.empty((len(found.heads), len(goal.terms)), np.int32)
        bases = self._backend.program.relations[goal.relation].bases
        for column, (term, base) in enumerate(zip(goal.terms, bases, strict=True)):
            if isinstance(term, Constant):
                word = self._dictionary.find_value(base, term.value)
                if word is None:
                    return np.full_like(words, NOT)
                words[:, column] = word
            else:
                scan, at = place[term]
                words[:, column] = heads[found.heads, at] if scan < 0 else found.bodies[scan].words[:, at]
        return words

    def _compact(self) -> DerivationGraph:
        """Only what was met, numbered without gaps: facts, then absences."""
        facts, negated = np.flatnonzero(self._is_collected), np.flatnonzero(self._is_negated)
        node = np.full(2 * self._size + 1, NOT, np.int64)  # the last place stands for NOT
        node[facts] = np.arange(len(facts))
        node[negated + self._size] = len(facts) + np.arange(len(negated))
        width = max((bodies.shape[1] for bodies in self._bodies), default=1)
        bodies = np.full((self._number, width), NOT, np.int64)
        start = 0
        for part in self._bodies:
            bodies[start : start + len(part), : part.shape[1]] = part
            start += len(part)
        owners = self._owners(facts)
        nothing = np.full(len(negated), NOT, np.int64)
        return DerivationGraph(
            self._varying,
            self._first,
            node,
            node[np.concatenate((np.empty(0, np.int64), *self._heads))],
            node[bodies],
            np.concatenate((self._switch_of[facts], nothing)),
            np.concatenate((np.full(len(facts), NOT, np.int64), node[negated])),
            np.concatenate((self._strata[owners], nothing)),
            tuple(self._sources),
        )


def _distinct(heads: Vector, bodies: Vector) -> tuple[Vector, Vector, Vector]:
    """Every set of nodes used once for each head, and which derivations these are. Only where it is worth the while:
    repetitions do no harm."""
    if len(heads) <= FEW_DERIVATIONS:
        return heads, bodies, np.arange(len(heads))
    rows = np.concatenate((heads[:, None], np.sort(bodies, axis=1)), axis=1)
    order = np.lexsort(rows.T)
    rows = rows[order]
    is_first = np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))
    return rows[is_first, 0], rows[is_first, 1:], order[is_first]
