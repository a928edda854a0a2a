"""What a body says about variables that it shares with an aggregate in it: where their values come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from elastalog.late import dataclass
from elastalog.planning.logical import Goal, Scan, Test
from elastalog.planning.variables import grounded, variables_in


@dataclass(frozen=True, slots=True)
class Scope:
    """The goals of a body that may say which groups there are, and the scope around it. What the recursion of the rule
    itself derives is not among them: aggregates are evaluated before. These are `recursive`, of the outermost scope."""

    goals: list[Goal]
    around: Scope | None = None
    recursive: tuple[Goal, ...] = ()

    @property
    def outermost(self) -> Scope:
        """That of the rule's own body."""
        return self if self.around is None else self.around.outermost

    @property
    def known(self) -> tuple[Goal, ...]:
        """The goals of this scope and all around it."""
        return (*(() if self.around is None else self.around.known), *self.goals)

    def binding(self, names: Iterable[str]) -> tuple[Goal, ...] | None:
        """Goals that give variables all the values that the body can, and perhaps more. None if there are none."""
        wanted = set(names)
        goals: list[Goal] = []
        scope: Scope | None = self
        while scope is not None:
            goals = [*scope.goals, *goals]
            if wanted <= grounded(tuple(goals)):
                one = next((g for g in goals if isinstance(g, Scan) and wanted.issubset(g.terms)), None)
                return (one,) if one is not None else tuple(_settled(goals, grounded(tuple(goals))))
            scope = scope.around
        return None

    def awaited(self, names: Collection[str], candidates: Iterable[str]) -> tuple[str, ...]:
        """A few of some variables, rather `names` than others, that would give all `names` values if they had some
        themselves."""
        kept = sorted(candidates, key=lambda name: (name in names, name))
        for name in tuple(kept):
            fewer = [other for other in kept if other != name]
            if set(names) <= grounded((*self.known, Scan("", tuple(fewer)))):
                kept = fewer
        return tuple(kept)

    def asking(self, names: Collection[str]) -> tuple[Goal, ...]:
        """Goals that give variables of the outermost scope values, by recursion too."""
        goals = (*self.outermost.recursive, *self.outermost.goals)
        one = next((g for g in goals if isinstance(g, Scan) and set(names).issubset(g.terms)), None)
        if one is None:
            return tuple(_settled(goals, grounded(goals)))
        told = {term for term in one.terms if isinstance(term, str)}
        return (one, *_settled((goal for goal in goals if isinstance(goal, Test)), told))


def _settled(goals: Iterable[Goal], bound: Collection[str]) -> Iterable[Goal]:
    """All but the tests of variables that have no value."""
    return (g for g in goals if not isinstance(g, Test) or all(v.name in bound for v in variables_in(g)))
