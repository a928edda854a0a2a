"""One level of a proof for many facts at once: the derivation by which each is proved.

A step must lead to facts of a smaller rank, or a proof could run in a circle. Where the backend keeps levels, they are
the rank: (stratum, level), or the level alone if levels are global. Where it does not, or for another metric, ranks are
computed around the facts in question (`ranks`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elastalog.analysis.program import Rule
from elastalog.backends.protocol import ClauseDerivations, Matrix, Replay
from elastalog.diagnostics.diagnostic import error
from elastalog.planning.logical import AggregateRule, Clause
from elastalog.provenance.reading import Reading, WordFact
from elastalog.relations.facts import FactWords

MOST_MEMBERS = 100
"""Members of an aggregate that a proof lists."""


@dataclass(frozen=True, slots=True)
class Step:
    """How a fact is proved: by a clause from the facts of its scans; without a clause from the members of an aggregate,
    `number` in all; or by the rule `closure` of an equivalence from a chain of its pairs. An explicit fact needs
    nothing."""

    clause: Clause | None
    bodies: tuple[WordFact, ...]
    number: int = 0
    is_explicit: bool = False
    closure: Rule | None = None

    @property
    def rule(self) -> Rule | None:
        """The rule that it shows."""
        return self.closure if self.clause is None else self.clause.rule


EXPLICIT = Step(None, (), is_explicit=True)


class Superseded:
    """The facts that have left strata with subsumption. A stratum is evaluated again when one is first needed."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[int, Replay | None] = {}

    def replay(self, relation: str) -> Replay | None:
        """The stratum of a relation, evaluated again: if it has subsumption, so that facts may rest on some that have
        left, and if the backend can do so."""
        stratum, replays = self._reading.subsumed.get(relation), self._reading.backend.capabilities.replays
        if stratum is None or replays is None:
            return None
        if stratum.number not in self._known:
            self._known[stratum.number] = replays.replay(stratum)
        return self._known[stratum.number]

    def by(self, fact: WordFact) -> WordFact | None:
        """The fact that has taken the place of another one; None if that holds. All hold as long as no stratum was
        evaluated again."""
        relation, row = fact
        stratum = self._reading.subsumed.get(relation)
        known = None if stratum is None else self._known.get(stratum.number)
        found = None if known is None else known.superseded_by(relation, row)
        if found is None or self._reading.backend.contains(relation, np.array([row], np.int32))[0]:
            return None
        return relation, found


class Steps(ABC):
    """Finds steps, and remembers them for one epoch. `known` holds every step found so far."""

    def __init__(self, reading: Reading, superseded: Superseded | None = None) -> None:
        self.known: dict[WordFact, Step] = {}
        self.backend = reading.backend
        self.reading = reading
        self.superseded = superseded or Superseded(reading)

    @abstractmethod
    def find(self, facts: Iterable[WordFact]) -> None:
        """Puts the steps of facts that are present into `known`."""

    def height(self, fact: WordFact) -> int | None:
        """The least height of all proofs of a fact that has been met, where that is known without proving it."""
        return None

    def is_explicit(self, fact: WordFact) -> bool:
        """Whether a fact that has been met is an explicit one."""
        return bool(self.backend.is_explicit(fact[0], np.array([fact[1]], np.int32))[0])


class AnnotatedSteps(Steps):
    """Guided by the levels that the backend keeps."""

    def __init__(self, reading: Reading, is_global: bool, superseded: Superseded | None = None) -> None:
        super().__init__(reading, superseded)
        self._is_global = is_global
        self._levels: dict[WordFact, int] = {}

    def forget(self, facts: Iterable[WordFact]) -> None:
        """Forgets the facts that an update has touched. The steps of all others are what they were: a fact with another
        level, or another derivation at it, would have been touched."""
        for fact in facts:
            self.known.pop(fact, None)
            self._levels.pop(fact, None)

    def height(self, fact: WordFact) -> int | None:
        return self._levels.get(fact) if self._is_global else None

    def is_explicit(self, fact: WordFact) -> bool:
        level = self._levels.get(fact)
        return super().is_explicit(fact) if level is None else level == 0

    def find(self, facts: Iterable[WordFact]) -> None:
        by_relation: dict[str, list[tuple[int, ...]]] = {}
        for fact in facts:
            if fact not in self.known:
                chain = chain_of(self.reading, fact)
                if chain is not None:
                    self.known[fact] = chain
                    continue
                if fact not in self._levels:
                    self._levels[fact] = self._level(fact)
                if self._levels[fact] == 0:
                    self.known[fact] = EXPLICIT
                else:
                    by_relation.setdefault(fact[0], []).append(fact[1])
        for relation, rows in by_relation.items():
            aggregate = self.reading.aggregates.get(relation)
            if aggregate is not None:
                for row in rows:
                    self.known[relation, row], found = members_of(self.reading, aggregate, row)
                    self._learn(aggregate.members, found)
            else:
                self._find_in(relation, rows)

    def _level(self, fact: WordFact) -> int:
        """The level of a fact that no step has led to, from its derivations: to look it up would mean a scan."""
        relation, row = fact
        words = np.array([row], np.int32)
        if relation in self.reading.aggregates or relation in self.reading.subsumed:
            # With subsumption, what is there now may give a fact later than what it came from did.
            stored = self.backend.select(relation, tuple(range(len(row))), words[0])
            if relation not in self.reading.given or not self.backend.is_explicit(relation, words)[0]:
                assert stored.level is not None
                return int(stored.level[0]) if len(stored.level) else self._replay(fact).level(relation, row)
            return 0
        if self.backend.is_explicit(relation, words)[0]:
            return 0
        found = self.backend.derivations(relation, words)
        return min(int(self._firing(relation, derivations, words).min()) for derivations in found)

    def _replay(self, fact: WordFact) -> Replay:
        """The stratum of a fact that rests on superseded ones."""
        replay = self.superseded.replay(fact[0])
        if replay is None:
            raise error("E0740", fact=self.reading.fact(fact))
        return replay

    def _firing(self, relation: str, found: ClauseDerivations, words: Matrix) -> Any:
        """One above the highest of the levels that count in each derivation of some facts."""
        highest = np.zeros(len(found.heads), np.int64)
        for place, (scan, body) in enumerate(zip(found.clause.scans, found.bodies, strict=True)):
            if self._counts(relation, scan.relation):
                is_class = scan.relation in self.reading.equivalence_of
                levels = self._levels_of_pairs(found, place) if is_class else body.level
                assert levels is not None
                if relation in self.reading.ranked:
                    levels = self._of_same_value(relation, words[found.heads], scan.relation, body.words, levels)
                np.maximum(highest, levels, out=highest)
        return highest + 1

    def _of_same_value(self, relation: str, heads: Matrix, used: str, bodies: Matrix, levels: Any) -> Any:
        """The levels that facts of a ranked stratum count for a head: 0 if their value is better, since they are below
        it anyway; too high a level if it is worse."""
        ranked = self.reading.ranked[relation]
        values, own = (
            np.array(
                self.reading.dictionary.values(ranked.base, np.ascontiguousarray(facts[:, ranked.columns[name]])),
                object,
            )
            for name, facts in ((used, bodies), (relation, heads))
        )
        is_better = values < own if ranked.is_least else values > own
        return np.where(is_better, 0, np.where(values == own, levels, np.iinfo(np.int32).max))

    def _levels_of_pairs(self, found: ClauseDerivations, place: int) -> Any:
        """The levels of pairs of an equivalence that is read as classes in its own recursion: the highest level in each
        chain."""
        equivalence, other = self.reading.pair_at(found.clause, place)
        pairs = np.stack((found.bodies[place].words[:, 0], found.bodies[other].words[:, 0]), axis=1)
        equivalences = self.backend.capabilities.equivalences
        assert equivalences is not None
        return equivalences.levels_of_chains(equivalence, np.ascontiguousarray(pairs, np.int32))

    def _counts(self, relation: str, used: str) -> bool:
        """Whether levels of a relation that is used bear on those of a relation."""
        if used in self.reading.flat:
            return False
        return self._is_global or self.reading.stratum_of[used] == self.reading.stratum_of[relation]

    def _learn(self, relation: str, facts: FactWords) -> list[WordFact]:
        assert facts.level is not None
        names = [(relation, tuple(row)) for row in facts.words.tolist()]
        levels = facts.level
        if relation in self.reading.given:
            levels = np.where(self.backend.is_explicit(relation, facts.words), 0, levels)
        self._levels.update(zip(names, levels.tolist(), strict=True))
        return names

    def _find_in(self, relation: str, rows: list[tuple[int, ...]]) -> None:
        words = np.array(rows, np.int32)
        is_open = self._find_among(relation, rows, self.backend.derivations(relation, words))
        if is_open.any():
            left = [rows[place] for place in np.flatnonzero(is_open).tolist()]
            replay = self._replay((relation, left[0]))
            if self._find_among(relation, left, replay.derivations(relation, words[is_open])).any():
                raise error("E0740", fact=self.reading.fact((relation, left[0])))

    def _find_among(self, relation: str, rows: list[tuple[int, ...]], derivations: list[ClauseDerivations]) -> Any:
        """Finds steps among derivations; returns which facts have none."""
        levels = np.array([self._levels[relation, row] for row in rows])
        is_open = np.ones(len(rows), np.bool_)
        for found in derivations:
            firing = self._firing(relation, found, np.array(rows, np.int32))
            usable = is_open[found.heads] & (firing <= levels[found.heads])
            chosen = self._smallest(found, np.flatnonzero(usable))
            if not len(chosen):
                continue
            heads = found.heads[chosen]
            is_open[heads] = False
            columns = [
                self._learn(scan.relation, body.taken(chosen))
                for scan, body in zip(found.clause.scans, found.bodies, strict=True)
            ]
            bodies = zip(*columns, strict=True) if columns else [()] * len(heads)
            for head, used in zip(heads.tolist(), bodies, strict=True):
                self.known[relation, rows[head]] = Step(found.clause, tuple(used))
            if not is_open.any():
                break
        return is_open

    def _smallest(self, found: ClauseDerivations, usable: Any) -> Any:
        """Of several derivations of a head the one with the smallest facts, by value, so that the choice depends on
        nothing else."""
        heads = found.heads[usable]
        if len(heads) < 2:
            return usable
        order = np.argsort(heads, kind="stable")
        usable, heads = usable[order], heads[order]
        is_first = np.concatenate(([True], heads[1:] != heads[:-1]))
        if is_first.all():
            return usable
        keys: list[Any] = []
        for scan, body in zip(found.clause.scans, found.bodies, strict=True):
            for column, base in enumerate(self.backend.program.relations[scan.relation].bases):
                values = self.reading.dictionary.decode_column(base, body.words[usable, column]).to_numpy(
                    zero_copy_only=False
                )
                keys.append(np.unique(values, return_inverse=True)[1])
        order = np.lexsort((*reversed(keys), heads))
        return usable[order][is_first]


def chain_of(reading: Reading, fact: WordFact) -> Step | None:
    """How a pair of an equivalence that is kept as classes follows from stored pairs; None for stored pairs and for
    other facts."""
    relation, row = fact
    equivalences = reading.backend.capabilities.equivalences
    chain = equivalences.chain(relation, row) if equivalences is not None and relation in reading.equivalences else None
    if chain is None:
        return None
    links = tuple((relation, tuple(link)) for link in chain.tolist())
    return Step(None, links, closure=reading.closure(fact, links))


def members_of(
    reading: Reading, aggregate: AggregateRule, row: Sequence[int], most: int = MOST_MEMBERS
) -> tuple[Step, FactWords]:
    """The members of an aggregate fact, given its words: first those that attain a least or greatest value, then by
    value."""
    columns = tuple(range(aggregate.groups))
    found = reading.backend.select(aggregate.members, columns, np.array(row[: aggregate.groups], np.int32))
    names = [(aggregate.members, tuple(words)) for words in found.words.tolist()]
    target = aggregate.target if aggregate.operator in ("min", "max") else None

    def key(position: int) -> tuple[Any, ...]:
        is_other = target is not None and names[position][1][target] != row[-1]
        return is_other, reading.sort_key(names[position])

    chosen = sorted(range(len(names)), key=key)[:most] if len(names) <= 100_000 else list(range(most))
    step = Step(None, tuple(names[i] for i in chosen), number=len(names))
    return step, found.taken(np.array(chosen, np.int64))
