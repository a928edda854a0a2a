"""Between which facts all states lie.

With every switch off the program derives the least facts, with every switch on the most, as far as it is positive: the
facts of a relation that rests on no negation of anything that varies lie between the two in every state. A relation for
which both are the same is constant, and may be negated or folded without harm.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.protocol import Matrix, Vector
from elastalog.debugging.laboratory import Laboratory, NoState
from elastalog.debugging.polarity import Dependencies
from elastalog.planning.logical import Absent, LogicalProgram, Scan


class WordSet:
    """Facts by relation, numbered."""

    def __init__(self, program: LogicalProgram) -> None:
        self._program = program
        self._relations: dict[str, KernelRelation] = {}

    def add(self, relation: str, words: Matrix) -> None:
        if len(words):
            held = self._relations.get(relation)
            if held is None:
                width = self._program.relations[relation].width
                held = self._relations[relation] = KernelRelation(relation, width, is_annotated=False)
            held.load(words)

    def find(self, relation: str, words: Matrix) -> Vector:
        """The number of each fact within its relation, -1 for those that are not in the set."""
        held = self._relations.get(relation)
        return np.full(len(words), -1, np.int32) if held is None else held.find(words)

    def has(self, relation: str, row: tuple[int, ...]) -> bool:
        return bool(self.find(relation, np.array([row], np.int32))[0] >= 0)

    def words(self, relation: str) -> Matrix:
        held = self._relations[relation]
        return held.rows[: held.used]

    def size(self, relation: str) -> int:
        held = self._relations.get(relation)
        return 0 if held is None else held.used

    def relations(self) -> Iterable[str]:
        return self._relations


class Bracket:
    """`varying`: the facts that hold with all switches on and not with all off. `positive`: the relations whose facts
    lie between the two in every state; of these, the facts outside `varying` are the same in all states."""

    def __init__(self, laboratory: Laboratory, signs: Dependencies) -> None:
        program = laboratory.backend.program
        self.varying = WordSet(program)
        try:
            self._try_ends(laboratory)
        except NoState:
            self.positive = frozenset(name for name in program.relations if not signs[name])
        else:
            self.positive = self._positive(program)

    def _try_ends(self, laboratory: Laboratory) -> None:
        for side, adds in ((1, False), (0, True)):
            chosen = [i for i, switch in enumerate(laboratory.switches) if switch.adds == adds]
            if chosen:
                with laboratory.flipped(chosen) as changes:
                    for name, both in changes.items():
                        self.varying.add(name, both[side])

    def _positive(self, program: LogicalProgram) -> frozenset[str]:
        """From below: a relation is positive if its rules scan positive ones and negate or fold constant ones."""
        positive: set[str] = set()
        for stratum in program.strata:
            own = set(stratum.relations)
            rule = stratum.aggregate
            is_positive = rule is None or self._is_constant(rule.members, positive)
            for clause in stratum.clauses:
                for goal in clause.goals:
                    if isinstance(goal, Scan):
                        is_positive &= goal.relation in positive or goal.relation in own
                    elif isinstance(goal, Absent):
                        is_positive &= self._is_constant(goal.relation, positive)
            if is_positive:
                positive |= own
        return frozenset(positive)

    def _is_constant(self, relation: str, positive: set[str]) -> bool:
        return relation in positive and not self.varying.size(relation)
