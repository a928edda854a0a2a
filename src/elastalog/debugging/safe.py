"""Facts that hold in every state, so that no proof need go below them.

They are found in a state worse than any other: every switch is off, and every relation that is negated holds all facts
that it can hold in any state, as if they were given. What follows even there follows everywhere: by induction over the
strata, the facts it uses hold everywhere, and those whose absence it uses are absent everywhere. Given facts must not
be used otherwise than by negations, and what an aggregate folds has no worst state: with either, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.analysis.program import Constant
from elastalog.debugging.laboratory import Laboratory, NoState, words_by_relation
from elastalog.debugging.polarity import Dependencies
from elastalog.debugging.reasons import Corners
from elastalog.debugging.word_set import WordSet
from elastalog.evaluation.update import Update
from elastalog.planning.logical import Absent, LogicalProgram, Scan
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import written_out
from elastalog.relations.words import Dictionary


class SafeFacts:
    """`is_known`: whether anything is known. The backend must be in the base when this is made."""

    def __init__(self, laboratory: Laboratory, dictionary: Dictionary, signs: Dependencies, corners: Corners) -> None:
        self._program = laboratory.backend.program
        self._dictionary = dictionary
        self._lost, self._regained, self._given = (WordSet(self._program) for _ in range(3))
        negated = _negated(self._program, signs)
        self.is_known = all(map(corners.is_one_way, negated)) and not _folds_switches(self._program, signs)
        if self.is_known:
            try:
                self._try_worst(laboratory, corners, negated)
            except NoState:
                self.is_known = False

    def _try_worst(self, laboratory: Laboratory, corners: Corners, negated: list[str]) -> None:
        for name in negated:
            corners.ensure(name)
        off = [i for i, switch in enumerate(laboratory.switches) if not switch.adds]
        with laboratory.flipped(off) as changes:
            for name, (_, went) in changes.items():
                self._lost.add(name, went)
            possible = [fact for name in negated for fact in corners.gained(name)]
            for name in negated:
                if name in changes:
                    possible += [(name, tuple(row)) for row in written_out(changes[name][1]).tolist()]
            given = [fact for fact in possible if self._fits_any(fact, Absent)]
            if any(self._fits_any(fact, Scan) for fact in given):
                self.is_known = False
            elif given:
                by_relation = words_by_relation(given)
                for name, words in by_relation.items():
                    self._given.add(name, words)
                with laboratory.tried(Update({}, by_relation)) as further:
                    for name, (came, went) in further.items():
                        self._lost.add(name, went)
                        self._regained.add(name, came)

    def has(self, fact: WordFact) -> bool:
        """Whether a fact that holds in the base holds in every state, as far as is known."""
        if not self.is_known or self._given.has(*fact):
            return False
        return not self._lost.has(*fact) or self._regained.has(*fact)

    def _fits_any(self, fact: WordFact, kind: type[Absent] | type[Scan]) -> bool:
        """Whether some goal of a kind may mean a fact, going by its constants."""
        name, row = fact
        bases = self._program.relations[name].bases
        for goal in _goals(self._program):
            if isinstance(goal, kind) and goal.relation == name:
                constants = [
                    self._dictionary.find_value(base, term.value) == word
                    for term, base, word in zip(goal.terms, bases, row, strict=True)
                    if isinstance(term, Constant)
                ]
                if all(constants):
                    return True
        return False


def _goals(program: LogicalProgram) -> Iterable[object]:
    return (goal for stratum in program.strata for clause in stratum.clauses for goal in clause.goals)


def _negated(program: LogicalProgram, signs: Dependencies) -> list[str]:
    """The relations that are negated somewhere and depend on switches."""
    return sorted({goal.relation for goal in _goals(program) if isinstance(goal, Absent) and signs[goal.relation]})


def _folds_switches(program: LogicalProgram, signs: Dependencies) -> bool:
    """Whether an aggregate folds members that depend on switches."""
    return any(bool(signs[s.aggregate.members]) for s in program.strata if s.aggregate is not None)
