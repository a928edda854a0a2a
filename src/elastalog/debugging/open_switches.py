"""Switches of a repair without an update: every explicit fact may be deleted, and candidates inserted.

There are far too many to write down. A fact becomes a switch when a proof is met that rests on it; those not met yet
are spoken of by relation. `OpenCorners` tells whether a fact that a rule negates can hold in any state of a repair: it
is looked up in the state most favourable to its relation, where that depends on each relation of explicit facts in one
way only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from elastalog.backends.protocol import Matrix
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.dependencies import BOTH, NEGATIVE, POSITIVE, Dependencies
from elastalog.debugging.oracles import Condition
from elastalog.debugging.reasons import NeedsCorner
from elastalog.debugging.sandbox import NoState, Sandbox, Switch, WordSet, words_by_relation
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import TrialLimits
from elastalog.planning.logical import is_hidden_name
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import written_out

FEW_FACTS = 500
"""Explicit facts of a relation that are all made switches, where it matters which of them rules negate."""


@dataclass(frozen=True, slots=True)
class Concern:
    """What can turn a fact from how it is in one state: switches, and explicit facts of relations, if deleted."""

    switches: frozenset[int] = frozenset()
    relations: frozenset[str] = frozenset()

    def __or__(self, other: Concern) -> Concern:
        return Concern(self.switches | other.switches, self.relations | other.relations)

    def __bool__(self) -> bool:
        return bool(self.switches or self.relations)

    def condition(self, flipped: frozenset[int]) -> Condition:
        """That something of it must be otherwise than where these switches are flipped."""
        return Condition(self.switches, flipped, self.relations)


NOTHING = Concern()


class OpenSwitches:
    """`explicit`: all explicit facts, by relation. `known`: the switches so far, and `weights` their weights;
    candidates are the first. Facts in `kept` are none; those without a weight of their own weigh 1."""

    def __init__(
        self,
        explicit: Mapping[str, Matrix],
        candidates: Iterable[WordFact],
        kept: frozenset[WordFact],
        weights: Mapping[WordFact, float],
    ) -> None:
        self.explicit = explicit
        self._kept = kept
        self._weights = weights
        self.known: list[Switch] = []
        self.weights: list[float] = []
        self._open = set(explicit)
        self._numbers: dict[WordFact, int] = {}
        self._of_relation: dict[str, list[int]] = {}
        self.least_weight = min((1.0, *weights.values()))
        """What a fact that is no switch yet weighs at the least."""
        for fact in candidates:
            if fact not in kept:
                self._add(Switch(fact, adds=True))
        self.number_of_candidates = len(self.known)

    def _add(self, switch: Switch) -> int:
        number = self._numbers[switch.fact] = len(self.known)
        self.known.append(switch)
        self.weights.append(self._weights.get(switch.fact, 1.0))
        if not switch.adds:
            self._of_relation.setdefault(switch.fact[0], []).append(number)
        return number

    def number(self, fact: WordFact) -> int | None:
        """The switch that a fact is, which is explicit in a state that was tried; None if it must stay, as groups do
        that evaluation handles: no user gave them."""
        known = self._numbers.get(fact)
        if known is not None or fact in self._kept or is_hidden_name(fact[0]):
            return known
        return self._add(Switch(fact, adds=False))

    def are_open(self, relations: Iterable[str]) -> frozenset[str]:
        """Those of some relations that may have explicit facts which are no switches yet."""
        return frozenset(self._open.intersection(relations))

    def close(self, relations: Iterable[str]) -> bool:
        """Makes all facts of relations switches, where they are not too many. Returns whether any were."""
        small = [name for name in sorted(self.are_open(relations)) if len(self.explicit[name]) <= FEW_FACTS]
        for name in small:
            for row in self.explicit[name].tolist():
                self.number((name, tuple(row)))
        self._open.difference_update(small)
        return bool(small)

    def deletions(self, relations: Iterable[str]) -> list[int]:
        """The switches so far that delete facts of some relations."""
        return [number for name in relations for number in self._of_relation.get(name, ())]

    def concern(self, signs: Dependencies, relation: str, sought: int, flipped: frozenset[int]) -> Concern:
        """What could bring about facts of a relation (POSITIVE), take them away (NEGATIVE), or either, if turned."""
        own = signs[relation]
        switches = set[int]()
        for number in (*range(self.number_of_candidates), *(i for i in flipped if i >= self.number_of_candidates)):
            switch = self.known[number]
            turning = NEGATIVE if switch.is_on(number in flipped) else POSITIVE
            if self._turns(own.get(switch.fact[0], 0), turning) & sought:
                switches.add(number)
        relations = frozenset(
            name for name, sign in own.items() if self._turns(sign, NEGATIVE) & sought and name in self.explicit
        )
        return Concern(frozenset(switches), relations)

    def _turns(self, sign: int, turning: int) -> int:
        """How facts turn that depend on a relation by a sign, when a fact of it comes or goes."""
        if turning == POSITIVE:
            return sign
        return (NEGATIVE if sign & POSITIVE else 0) | (POSITIVE if sign & NEGATIVE else 0)


@dataclass(frozen=True, slots=True)
class OpenCorners:
    """`limits`: how much of the program decides about a relation, None if all of it. `came`: the facts that relations
    gain in their most favourable states, None where that is not known; those that were looked for are added."""

    _sandbox: Sandbox
    _switches: OpenSwitches
    _signs: Dependencies
    _limits: Callable[[str], TrialLimits | None]
    _came: dict[str, WordSet | None]

    def can_hold(self, fact: WordFact, holds_in_base: bool) -> bool:
        """Whether a fact holds in some state; True also where that is not known. Raises NeedsCorner."""
        name, row = fact
        signs = self._signs[name]
        if holds_in_base or BOTH in signs.values():
            return True
        deleted, inserted = self._favourable(name)
        if not deleted and not inserted:
            return False
        if name not in self._came:
            raise NeedsCorner(name)
        came = self._came[name]
        return came is None or came.has(name, row)

    def _favourable(self, relation: str) -> tuple[list[str], list[WordFact]]:
        """The relations whose explicit facts stand in the way of a relation, and the candidates in its favour."""
        signs = self._signs[relation]
        candidates = (switch.fact for switch in self._switches.known[: self._switches.number_of_candidates])
        return (
            [name for name, sign in signs.items() if sign == NEGATIVE],
            [fact for fact in candidates if signs.get(fact[0], 0) == POSITIVE],
        )

    def try_corner(self, relation: str) -> None:
        """Tries the state most favourable to a relation. The backend must be in the base."""
        names, inserted = self._favourable(relation)
        deleted = {name: words for name in names if len(words := self._explicit(name))}
        update = Update(deleted, words_by_relation(inserted))
        came = WordSet(self._sandbox.backend.program)
        try:
            with self._sandbox.tried(update, self._limits(relation)) as changes:
                if relation in changes:
                    came.add(relation, written_out(changes[relation][0]))
        except (NoState, BudgetExceeded):
            self._came[relation] = None
            return
        self._came[relation] = came

    def _explicit(self, relation: str) -> Matrix:
        backend = self._sandbox.backend
        words = backend.facts(backend.program.given.get(relation, relation)).words
        found: Matrix = words[np.asarray(backend.is_explicit(relation, words))]
        return found
