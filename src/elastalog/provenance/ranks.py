"""Ranks computed around the facts asked for, and no further, where the backend keeps none that help.

All derivations of a fact, of the facts they use, and so on, are collected; then every fact gets its best value under a
metric (`metrics.best_values`). `scope` says where to stop: only at explicit facts, or also at facts of lower strata,
which get ranks of their own when a proof reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from elastalog.analysis.program import Rule
from elastalog.diagnostics.diagnostic import LimitReached, finding
from elastalog.planning.logical import Clause
from elastalog.provenance.metrics import HEIGHT, Metric, best_values
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.steps import EXPLICIT, Step, Steps, Superseded, chain_of, members_of

MOST_DERIVATIONS = 2_000_000
"""Derivations that are collected around a fact before giving up."""

Scope = Literal["stratum", "all"]


class Neighbourhood:
    """The facts that the proofs of some facts can use, with all derivations between them."""

    def __init__(
        self, reading: Reading, scope: Scope, superseded: Superseded | None = None, most: int | None = None
    ) -> None:
        self._backend = reading.backend
        self._reading = reading
        self._scope = scope
        self._most = MOST_DERIVATIONS if most is None else most
        self._superseded = superseded or Superseded(reading)
        self.superseded_by = self._superseded.by
        self.numbers: dict[WordFact, int] = {}
        self.facts: list[WordFact] = []
        self.clauses: list[Clause | None] = []
        self.heads: list[int] = []
        self.bodies: list[tuple[int, ...]] = []
        self.scanned: list[tuple[WordFact, ...]] = []
        self.closures: dict[int, Rule] = {}
        self.of_head: dict[int, list[int]] = {}
        self.explicit: set[int] = set()
        self.outside: set[int] = set()
        self.members: dict[int, int] = {}
        self.of_nothing: set[int] = set()

    def collect(self, roots: Iterable[WordFact]) -> None:
        """Collects backwards from the roots. Raises LimitReached beyond the limit."""
        frontier = [fact for fact in roots if fact not in self.numbers]
        stratum_of = self._reading.stratum_of
        strata = {stratum_of[relation] for relation, _ in frontier}
        for fact in frontier:
            self._number(fact)
        while frontier:
            by_relation: dict[str, list[WordFact]] = {}
            for fact in frontier:
                by_relation.setdefault(fact[0], []).append(fact)
            start = len(self.facts)
            for relation, facts in by_relation.items():
                is_asked_for = stratum_of[relation] in strata
                if not is_asked_for and (self._scope == "stratum" or relation in self._reading.flat):
                    self.outside.update(self.numbers[fact] for fact in facts)
                else:
                    self._expand(relation, facts)
            frontier = self.facts[start:]

    def collect_derivations(self, root: WordFact) -> None:
        """Collects one level: the derivations of a single fact, also if it is explicit."""
        self._number(root)
        if root[0] not in self._reading.equivalences or not self._chain(root):
            self._derive(root[0], [root])

    def _number(self, fact: WordFact) -> int:
        number = self.numbers.get(fact)
        if number is None:
            number = self.numbers[fact] = len(self.facts)
            self.facts.append(fact)
        return number

    def _expand(self, relation: str, facts: list[WordFact]) -> None:
        aggregate = self._reading.aggregates.get(relation)
        if aggregate is not None:
            for fact in facts:
                step, _ = members_of(self._reading, aggregate, fact[1], self._most)
                if not step.bodies:
                    self.of_nothing.add(self.numbers[fact])
                self.members[self.numbers[fact]] = step.number
                self._add(None, self.numbers[fact], step.bodies)
            return
        words = np.array([row for _, row in facts], np.int32)
        is_explicit = self._backend.is_explicit(relation, words)
        self.explicit.update(self.numbers[facts[i]] for i in np.flatnonzero(is_explicit).tolist())
        derived = [fact for fact, known in zip(facts, is_explicit.tolist(), strict=True) if not known]
        if relation in self._reading.equivalences:
            derived = [fact for fact in derived if not self._chain(fact)]
        if derived:
            self._derive(relation, derived)

    def _chain(self, fact: WordFact) -> bool:
        """Collects how a pair of an equivalence follows from others, if it does."""
        step = chain_of(self._reading, fact)
        if step is None or step.closure is None:
            return False
        self.closures[len(self.heads)] = step.closure
        self._add(None, self.numbers[fact], step.bodies)
        return True

    def _derive(self, relation: str, facts: list[WordFact]) -> None:
        source = self._superseded.replay(relation) or self._backend
        for found in source.derivations(relation, np.array([row for _, row in facts], np.int32)):
            names = [scan.relation for scan in found.clause.scans]
            rows = [map(tuple, body.words.tolist()) for body in found.bodies]
            columns = [[(name, row) for row in column] for name, column in zip(names, rows, strict=True)]
            bodies = zip(*columns, strict=True) if columns else [()] * len(found.heads)
            seen: set[tuple[int, tuple[WordFact, ...]]] = set()
            for head, body in zip(found.heads.tolist(), bodies, strict=True):
                if (head, body) not in seen:  # a range may give the same facts several times
                    seen.add((head, body))
                    self._add(found.clause, self.numbers[facts[head]], body)

    def _add(self, clause: Clause | None, head: int, body: tuple[WordFact, ...]) -> None:
        if len(self.heads) >= self._most:
            raise LimitReached([finding("E0704", most=self._most)])
        self._reading.look()
        self.of_head.setdefault(head, []).append(len(self.heads))
        self.clauses.append(clause)
        self.heads.append(head)
        self.scanned.append(body)
        rests_on = body if clause is None else self._reading.rested_on(clause, body)
        self.bodies.append(tuple([self._number(fact) for fact in rests_on]))

    def step(self, derivation: int) -> Step:
        """A derivation as a step of a proof."""
        number = self.members.get(self.heads[derivation], 0)
        return Step(self.clauses[derivation], self.scanned[derivation], number, closure=self.closures.get(derivation))

    def counted(self, derivation: int) -> tuple[int, ...]:
        """The facts that a derivation rests on, without those of the engine's own bookkeeping and without aggregates of
        nothing."""
        flat, nothing = self._reading.flat, self.of_nothing
        bodies = self.bodies[derivation]
        if not flat and not nothing:
            return bodies
        return tuple([body for body in bodies if self.facts[body][0] not in flat and body not in nothing])

    def best_values(self, metric: Metric) -> dict[int, int]:
        """The best value of every fact, in the order in which they are found (see `metrics`)."""
        bodies = [self.counted(number) for number in range(len(self.heads))]
        return best_values(metric, self.heads, bodies, self.outside | self.explicit, self._reading.look)

    def sort_key(self, derivation: int) -> tuple[object, ...]:
        """Orders the derivations of one fact: by rule, then by the values of the facts used."""
        clause = self.clauses[derivation]
        used = [self._reading.sort_key(self.facts[body]) for body in self.bodies[derivation]]
        return (0 if clause is None else clause.number, *used)


class ComputedSteps(Steps):
    """Guided by the best values under a metric, computed around each fact when it is first asked for."""

    def __init__(self, reading: Reading, metric: Metric, scope: Scope, superseded: Superseded | None = None) -> None:
        super().__init__(reading, superseded)
        self._metric = metric
        self._scope: Scope = scope
        self._heights: dict[WordFact, int] = {}

    def height(self, fact: WordFact) -> int | None:
        return self._heights.get(fact)

    def find(self, facts: Iterable[WordFact]) -> None:
        by_stratum: dict[int, list[WordFact]] = {}
        for fact in facts:
            if fact not in self.known:
                stratum = self.reading.stratum_of[fact[0]] if self._scope == "stratum" else 0
                by_stratum.setdefault(stratum, []).append(fact)
        for wanted in by_stratum.values():
            self._find(wanted)

    def _find(self, wanted: list[WordFact]) -> None:
        around = Neighbourhood(self.reading, self._scope, self.superseded)
        around.collect(wanted)
        best = around.best_values(self._metric)
        place = {number: place for place, number in enumerate(best)}

        def attains(head: int, bodies: tuple[int, ...]) -> bool:
            """Whether a derivation from facts found before its head gives the head its best value."""
            is_below = all(place.get(body, place[head]) < place[head] for body in bodies)
            return is_below and self._metric.derived([best[body] for body in bodies]) == best[head]

        for number, value in best.items():
            fact = around.facts[number]
            if number in around.outside or fact in self.known:
                continue
            if self._scope == "all" and self._metric is HEIGHT:
                self._heights[fact] = value
            if number in around.explicit:
                self.known[fact] = EXPLICIT
                continue
            usable = [each for each in around.of_head[number] if attains(number, around.counted(each))]
            chosen = usable[0] if len(usable) == 1 else min(usable, key=around.sort_key)
            self.known[fact] = around.step(chosen)
