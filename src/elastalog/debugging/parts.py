"""Parts of a program: the strata that a question needs to know about."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from elastalog.analysis.program import Apply
from elastalog.planning.logical import LogicalProgram, LogicalStratum, Test
from elastalog.syntax.keywords import COMPARISONS


class Parts:
    """Remembers what it has found out about a program."""

    def __init__(self, program: LogicalProgram) -> None:
        self.program = program
        self._below: dict[frozenset[str], frozenset[int]] = {}

    @cached_property
    def _reads(self) -> list[tuple[LogicalStratum, frozenset[str]]]:
        """The strata from above, each with what it reads."""
        return [(stratum, stratum.reads) for stratum in reversed(self.program.strata)]

    def below(self, relations: Iterable[str]) -> frozenset[int]:
        """The strata that relations depend on, their own included."""
        asked = frozenset(relations)
        known = self._below.get(asked)
        if known is None:
            needed = set(asked)
            found: set[int] = set()
            for stratum, reads in self._reads:
                if not needed.isdisjoint(stratum.relations):
                    found.add(stratum.number)
                    needed |= reads
            known = self._below[asked] = frozenset(found)
        return known

    def are_numbered(self, relations: Iterable[str]) -> bool:
        """Whether relations depend on numbers that derivations have been given."""
        below = self.below(relations)
        return any(stratum.numbering is not None for stratum in self.program.strata if stratum.number in below)

    @cached_property
    def _fragile(self) -> frozenset[str]:
        """Relations of strata that may have no result in some state, because a value cannot be computed there."""
        return frozenset(name for stratum, _ in self._reads if _may_fail(stratum) for name in stratum.relations)

    @cached_property
    def has_size_limits(self) -> bool:
        """Whether a `.limitsize` may cut an evaluation short."""
        relations = self.program.checked.relations.values()
        return any(directive.kind == "limitsize" for relation in relations for directive in relation.directives)

    def decisive(self, relations: Iterable[str]) -> frozenset[int] | None:
        """The strata that decide whether some facts of relations hold in a state, and whether all rules have a result
        there; None if it takes the whole program."""
        if self.has_size_limits:
            return None
        return self.below(self._fragile.union(relations))


def _may_fail(stratum: LogicalStratum) -> bool:
    """Whether anything is computed. That may end in an error (see `planning.goals`), or go on for ever: rules that
    make values, of texts and floats too, need not have an end in every state."""
    return stratum.aggregate is not None or any(
        goal.operator not in COMPARISONS or isinstance(goal.left, Apply) or isinstance(goal.right, Apply)
        for clause in stratum.clauses
        for goal in clause.goals
        if isinstance(goal, Test)
    )
