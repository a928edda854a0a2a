"""Groups of aggregates that only recursion knows.

An aggregate is folded below the recursion that reads it, for the groups that it is told. Where its body only tests a
variable (`count : { item(y), y < x }`) and the rule gets that one's values by recursion, they are not known beforehand.
So there is a relation of the values that are *handled*, which is given from outside: the aggregate is folded for these,
and the rule holds for no others. What it would need, had it no such guard, is *needed*: a relation above the recursion.
An epoch is complete when all that is needed is handled (see `evaluation.needed_groups`).

Until then everything that is derived is right, but not yet all: aggregates range over lower relations, so that one of
a handled group has its final value, and the recursion reads them without negation. More groups than needed do no harm.
Beside subsumption, where facts leave their relation again, what is needed is a relation of the recursion itself, so
that what they needed while they were there stays in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from elastalog.analysis.program import Aggregation, CheckedProgram, Rule
from elastalog.analysis.subsumptions import MARK
from elastalog.late import dataclass
from elastalog.planning.goals import assigned_variables, grounded, names_in
from elastalog.planning.logical import HIDDEN, Goal, Scan, Test
from elastalog.planning.lower_literals import Lowering, Needed


def may_await_groups(program: CheckedProgram) -> bool:
    """Whether an aggregate is read in recursion, so that an evaluation may have to be continued by updates."""
    return any(isinstance(literal, Aggregation) for rule in program.rules if rule.is_recursive for literal in rule.body)


def await_groups(lowering: Lowering, rule: Rule, scope: Scope, names: Collection[str]) -> bool:
    """Declares in a scope which values recursion will find for variables. Returns whether that is possible: a
    subsumption judges facts that are gone before groups could be handled."""
    if rule.head.relation.endswith(MARK):
        return False
    bases = {variable.name: variable.base for variable in assigned_variables(rule.body)}
    outermost = scope.outermost
    found = grounded((*outermost.goals, *outermost.recursive)) & bases.keys() - grounded(scope.known)
    awaited = scope.awaited(names, found)
    label = f"{lowering.rule_label(rule)}.{','.join(awaited)}"
    columns = tuple(bases[name] for name in awaited)
    needed = f"{HIDDEN}needed.{label}"
    handled = lowering.hidden(f"{HIDDEN}handled.{label}", columns, rule.number, is_flat=True, needed=needed)
    lowering.hidden(needed, columns, rule.number, is_flat=True)
    lowering.add_stratum((handled,))
    lowering.needed.append(Needed(needed, awaited, (*outermost.asking(awaited), *lowering.guard(rule))))
    outermost.goals.append(Scan(handled, awaited))
    lowering.handled.append(Scan(handled, awaited))
    return True


# --- where values come from ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """The goals of a body that may say which groups there are, and the scope around it. What the recursion of the rule
    itself derives is not among them: aggregates are evaluated before. These are `recursive`, of the outermost scope."""

    goals: list[Goal]
    around: Scope | None = None
    recursive: tuple[Goal, ...] = ()

    @property
    def outermost(self) -> Scope:
        """The scope of the rule's own body."""
        return self if self.around is None else self.around.outermost

    @property
    def known(self) -> tuple[Goal, ...]:
        """The goals of this scope and all around it."""
        return (*(() if self.around is None else self.around.known), *self.goals)

    def binding(self, names: Iterable[str]) -> tuple[Goal, ...] | None:
        """Goals that give the variables all values that they can have in the body, and perhaps more; None if there are
        no such goals."""
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
        """A small set of variables, preferably from `names`, which would give all of `names` values if they had values
        themselves."""
        kept = sorted(candidates, key=lambda name: (name in names, name))
        for name in tuple(kept):
            fewer = [other for other in kept if other != name]
            if set(names) <= grounded((*self.known, Scan("", tuple(fewer)))):
                kept = fewer
        return tuple(kept)

    def asking(self, names: Collection[str]) -> tuple[Goal, ...]:
        """Goals that give variables of the outermost scope their values, including by recursion."""
        goals = (*self.outermost.recursive, *self.outermost.goals)
        one = next((g for g in goals if isinstance(g, Scan) and set(names).issubset(g.terms)), None)
        if one is None:
            return tuple(_settled(goals, grounded(goals)))
        told = {term for term in one.terms if isinstance(term, str)}
        return (one, *_settled((goal for goal in goals if isinstance(goal, Test)), told))


def _settled(goals: Iterable[Goal], bound: Collection[str]) -> Iterable[Goal]:
    """The goals without tests of variables that have no value."""
    return (g for g in goals if not isinstance(g, Test) or all(name in bound for name in names_in(g)))
