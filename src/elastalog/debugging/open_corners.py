"""Whether a fact that a rule negates can hold in any state of a repair: it is looked up in the state most favourable to
its relation, where that depends on each relation of explicit facts in one way only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from elastalog.backends.protocol import Matrix
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.laboratory import Laboratory, NoState, words_by_relation
from elastalog.debugging.open_switches import OpenSwitches
from elastalog.debugging.polarity import BOTH, NEGATIVE, POSITIVE, Dependencies
from elastalog.debugging.reasons import NeedsCorner
from elastalog.debugging.word_set import WordSet
from elastalog.evaluation.trials import Limits
from elastalog.evaluation.update import Update
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import written_out


class OpenCorners:
    """`limits`: how much of the program decides about a relation, None if all of it. `known`: the facts that each
    relation gains in its most favourable state, None where that is not known; those that were looked for are added."""

    def __init__(
        self,
        laboratory: Laboratory,
        switches: OpenSwitches,
        signs: Dependencies,
        limits: Callable[[str], Limits | None],
        known: dict[str, WordSet | None],
    ) -> None:
        self._laboratory = laboratory
        self._switches = switches
        self._signs = signs
        self._limits = limits
        self._came = known

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
        came = WordSet(self._laboratory.backend.program)
        try:
            with self._laboratory.tried(update, self._limits(relation)) as changes:
                if relation in changes:
                    came.add(relation, written_out(changes[relation][0]))
        except (NoState, BudgetExceeded):
            self._came[relation] = None
            return
        self._came[relation] = came

    def _explicit(self, relation: str) -> Matrix:
        backend = self._laboratory.backend
        words = backend.facts(backend.program.given.get(relation, relation)).words
        found: Matrix = words[np.asarray(backend.is_explicit(relation, words))]
        return found
