"""Collects the derivation graph backwards from facts asked about, stratum by stratum, and keeps what was collected.

Programs that read wide tables have many clauses that only rearrange the columns of one fact, `head(x, y) :- body(y, _,
x).` (`is_projection`). Their derivations are read off the varying facts of the body; to find them backwards would take
an index for each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from elastalog.backends.protocol import Backend, ClauseDerivations, Matrix, Vector
from elastalog.debugging.bracket import Bracket, fitting, instances, places
from elastalog.debugging.graph import NO_EDGES, NOT, DerivationGraph, Edges, distinct, merged
from elastalog.debugging.sandbox import WordSet
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.logical import Absent, Clause, LogicalProgram, Scan
from elastalog.provenance.reading import WordFact
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


class TooLarge(Exception):
    """The graph would have more derivations than can be handled. The collection is of no further use."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How the varying facts of a relation are derived: by known derivations, and by clauses, given by number, whose
    derivations are still to be found. Those known of the fact at a place are `known` from `ends[place]` to `ends[place
    + 1]`."""

    known: Edges
    ends: list[int]
    clauses: frozenset[int]


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
        self._starts = starts
        self._strata = strata
        self._number_of = partial(_number_of, self._varying, self._first)
        # Bytes are faster than an array where facts are met one by one.
        self._is_collected = bytearray(self._size)
        self._is_negated = bytearray(self._size)
        self._switch_of = np.full(self._size, NOT, np.int64)
        for i, fact in enumerate(switches):
            if (number := self._number_of(fact)) >= 0:  # otherwise rules derive the fact in every state
                self._switch_of[number] = i
        self._edges: list[Edges] = []
        self._ways: dict[int, Ways] = {}
        self._number = 0
        self._ascent = ExitStack()
        """A block in which all upper facts hold as soon as some derivation is looked for: mostly all is known."""
        self._is_in_upper = False
        self._graph: DerivationGraph | None = None

    def graph(self, roots: Sequence[WordFact]) -> DerivationGraph | None:
        """A graph of all that some facts depend on; None if they do not vary, or not all is known about them. Raises
        TooLarge."""
        numbers = list(map(self._number_of, roots))
        if NOT in numbers:
            return None
        if not all(self._is_collected[number] for number in numbers):
            self._graph = None
            self._is_in_upper = False
            with ExitStack() as self._ascent:
                self._collect(numbers)
        if self._graph is None:
            self._graph = self._compact()
        return self._graph

    def is_fixed(self, fact: WordFact) -> bool:
        """Whether all is known about a fact, and it holds in every state, or in none."""
        return self._number_of(fact) == NOT if fact[0] in self._first else fact[0] in self._bracket.exact

    def _collect(self, roots: Iterable[int]) -> None:
        """Collects the derivations of some facts, and of all that they use."""
        pending: list[int] = []
        self._meet(roots, pending)
        waiting: dict[int, list[int]] = {}
        taken: dict[int, list[int]] = {}
        while pending or waiting:
            self._backend.watch.step()
            if pending:
                fact = pending.pop()
                owner = bisect_right(self._starts, fact) - 1
                ways = self._ways.get(owner) or self._find_ways(owner)
                place = fact - self._starts[owner]
                first, last = ways.ends[place], ways.ends[place + 1]
                if first < last:
                    taken.setdefault(owner, []).extend(range(first, last))
                    self._number += last - first
                    self._meet(ways.known.bodies[first:last].ravel().tolist(), pending)
                if ways.clauses:
                    waiting.setdefault(owner, []).append(fact)
            else:
                # From above, so that mostly all that is asked about a relation is asked at once.
                owner = max(waiting)
                facts = np.array(sorted(waiting.pop(owner)), np.int64)
                edges = merged(self._look_for(self._names[owner], facts, self._ways[owner].clauses))
                if len(edges):
                    self._number += len(edges)
                    self._edges.append(edges)
                self._meet(np.unique(edges.bodies).tolist(), pending)
            if self._number > SETTINGS.graph_derivations:
                raise TooLarge
        for owner, chosen in taken.items():
            self._edges.append(self._ways[owner].known.taken(np.array(chosen)))

    def _meet(self, nodes: Iterable[int], pending: list[int]) -> None:
        """Adds the facts that nodes are, or are the absence of, to those whose derivations are to be collected."""
        for node in nodes:
            fact = node
            if node >= self._size:
                fact = node - self._size
                self._is_negated[fact] = True
            if fact >= 0 and not self._is_collected[fact]:
                self._is_collected[fact] = True
                pending.append(fact)

    def _numbers(self, relation: str, words: Matrix) -> Vector:
        """The numbers of facts, NOT for those that do not vary."""
        found = self._varying.find(relation, words).astype(np.int64)
        return np.where(found >= 0, found + self._first[relation], NOT)

    def _find_ways(self, owner: int) -> Ways:
        """How the facts of a relation, given by its place among the names, are derived. Raises TooLarge."""
        relation, size = self._names[owner], self._varying.size(self._names[owner])
        stratum = next(each for each in self._backend.program.strata if each.number == self._strata[owner])
        clauses = [clause for clause in stratum.clauses if clause.head == relation]
        clauses = [  # others derive nothing that varies
            clause
            for clause in clauses
            if any(scan.relation in self._first for scan in clause.scans) or self._bracket.negations(clause)
        ]
        if not clauses:
            ways = self._ways[owner] = Ways(NO_EDGES, [0] * (size + 1), frozenset())
            return ways
        parts = [self._projected(clause) for clause in clauses if is_projection(clause)]
        others = frozenset(clause.number for clause in clauses if not is_projection(clause))
        every = np.arange(self._starts[owner], self._starts[owner] + size + 1)
        if others and size <= SETTINGS.few_debugged_facts:
            found = self._look_for(relation, every[:-1], others)
            if self._number + sum(map(len, found)) > SETTINGS.graph_derivations:
                raise TooLarge
            parts += found
            others = frozenset()
        known = merged(parts)
        ways = self._ways[owner] = Ways(known, np.searchsorted(known.heads, every).tolist(), others)
        return ways

    def _projected(self, clause: Clause) -> Edges:
        """All derivations by a projection."""
        (scan,) = clause.scans
        facts = self._varying.words(scan.relation)
        matching, heads = project(clause, facts, self._backend.program, self._dictionary)
        numbers = self._numbers(clause.head, heads)
        varies = np.flatnonzero(numbers >= 0)
        matching = matching[varies]
        found = ClauseDerivations(clause, varies, (FactWords(facts[matching]),))
        return Edges.of(found, numbers[varies], (matching + self._first[scan.relation])[:, None])

    def _look_for(self, relation: str, facts: Vector, clauses: frozenset[int]) -> list[Edges]:
        """The derivations of some facts of a relation by some clauses."""
        if not self._is_in_upper:
            self._ascent.enter_context(self._bracket.in_upper())
            self._is_in_upper = True
        words = self._varying.words(relation)[facts - self._first[relation]]
        found = self._backend.derivations(relation, words, lambda clause: clause.number in clauses)
        parts = [distinct(facts[each.heads], self._nodes(each, words), each) for each in found]
        if any((part.bodies < 0).all(axis=1).any() for part in parts):
            raise InternalError("debugging", "a fact that varies follows from facts that do not")
        return parts

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
        place, bases = places(found.clause), self._backend.program.relations[goal.relation].bases

        def words_of(variable: str) -> Vector:
            scan, at = place[variable]
            return heads[found.heads, at] if scan < 0 else found.bodies[scan].words[:, at]

        number = len(found.heads)
        words = instances(goal.terms, bases, words_of, number, self._dictionary)
        return np.full((number, len(goal.terms)), NOT, np.int32) if words is None else words

    def _compact(self) -> DerivationGraph:
        """Only what was met, numbered without gaps: facts, then absences."""
        facts, negated = (
            np.flatnonzero(np.frombuffer(met, np.bool_)) for met in (self._is_collected, self._is_negated)
        )
        node = np.full(2 * self._size + 1, NOT, np.int64)  # the last place stands for NOT
        node[facts] = np.arange(len(facts))
        node[negated + self._size] = len(facts) + np.arange(len(negated))
        every = Edges.joined(self._edges)
        owners = np.searchsorted(self._starts, facts, side="right") - 1
        nothing = np.full(len(negated), NOT, np.int64)
        return DerivationGraph(
            self._number_of,
            node,
            replace(every, heads=node[every.heads], bodies=node[every.bodies]),
            np.concatenate((self._switch_of[facts], nothing)),
            np.concatenate((np.full(len(facts), NOT, np.int64), node[negated])),
            np.concatenate((np.array(self._strata, np.int64)[owners], nothing)),
        )


def _number_of(varying: WordSet, first: Mapping[str, int], fact: WordFact) -> int:
    name, row = fact
    found = int(varying.find(name, np.array([row], np.int32))[0]) if name in first else NOT
    return NOT if found < 0 else first[name] + found


def is_projection(clause: Clause) -> bool:
    """Whether the one goal of a clause is an atom."""
    return len(clause.goals) == 1 and isinstance(clause.goals[0], Scan)


def project(clause: Clause, facts: Matrix, program: LogicalProgram, dictionary: Dictionary) -> tuple[Vector, Matrix]:
    """The facts that fit the atom of a projection, by their places, and the fact that each derives."""
    (scan,) = clause.scans
    matching = np.flatnonzero(fitting(scan.terms, program.relations[scan.relation].bases, facts, dictionary))
    column_of = {term: column for column, term in enumerate(scan.terms)}
    bases, number = program.relations[clause.head].bases, len(matching)
    heads = instances(clause.head_terms, bases, lambda name: facts[matching, column_of[name]], number, dictionary)
    return (matching[:0], facts[:0, :0]) if heads is None else (matching, heads)
