"""Facts that hold in every state, so that no proof need go below them.

They are found in a state worse than any other: every switch is off, and every relation that is negated holds all facts that it can
hold in any state, as if they were given. What follows even there follows everywhere: by induction over the strata, the facts
it uses hold everywhere, and those whose absence it uses are absent everywhere. Relations that are both negated and scanned would
be given too much, and what an aggregate folds has no worst state: with either, nothing is known.
"""

from __future__ import annotations

from elastalog.debugging.bracket import WordSet
from elastalog.debugging.laboratory import Laboratory, NoState, words_by_relation
from elastalog.debugging.polarity import Dependencies
from elastalog.debugging.reasons import Corners
from elastalog.evaluation.update import Update
from elastalog.planning.logical import Absent, LogicalProgram, Scan
from elastalog.provenance.reading import WordFact


class SafeFacts:
    """`is_known`: whether anything is known. The backend must be in the base when this is made."""

    def __init__(self, laboratory: Laboratory, signs: Dependencies, corners: Corners) -> None:
        program = laboratory.backend.program
        self._lost, self._regained = WordSet(program), WordSet(program)
        self._forced = frozenset(_negated(program, signs))
        self.is_known = all(corners.is_one_way(name) for name in self._forced) and not _is_hindered(
            program, signs, self._forced
        )
        if self.is_known:
            try:
                self._try_worst(laboratory, corners)
            except NoState:
                self.is_known = False

    def _try_worst(self, laboratory: Laboratory, corners: Corners) -> None:
        for name in sorted(self._forced):
            corners.ensure(name)
        off = [i for i, switch in enumerate(laboratory.switches) if not switch.adds]
        with laboratory.flipped(off) as changes:
            for name, (_, went) in changes.items():
                self._lost.add(name, went)
            given: list[WordFact] = []
            for name in sorted(self._forced):
                if name in changes:
                    given += [(name, tuple(row)) for row in changes[name][1].tolist()]
                given += corners.gained(name)
            if given:
                with laboratory.epochs.trial(Update({}, words_by_relation(given))) as further:
                    for name, (came, went) in further.items():
                        self._lost.add(name, went)
                        self._regained.add(name, came)

    def has(self, fact: WordFact) -> bool:
        """Whether a fact that holds in the base holds in every state, as far as is known."""
        if not self.is_known or fact[0] in self._forced:
            return False
        return not self._lost.has(*fact) or self._regained.has(*fact)


def _negated(program: LogicalProgram, signs: Dependencies) -> set[str]:
    """The relations that are negated somewhere and depend on switches."""
    return {
        goal.relation
        for stratum in program.strata
        for clause in stratum.clauses
        for goal in clause.goals
        if isinstance(goal, Absent) and signs[goal.relation]
    }


def _is_hindered(program: LogicalProgram, signs: Dependencies, forced: frozenset[str]) -> bool:
    """Whether a forced relation is scanned as well, or members that depend on switches are folded."""
    for stratum in program.strata:
        if stratum.aggregate is not None and signs[stratum.aggregate.members]:
            return True
        for clause in stratum.clauses:
            if any(isinstance(goal, Scan) and goal.relation in forced for goal in clause.goals):
                return True
    return False
