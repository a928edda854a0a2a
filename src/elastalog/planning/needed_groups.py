"""Groups of aggregates that only recursion knows.

An aggregate is folded below the recursion that reads it, for the groups that it is told. Where its body only tests a
variable (`count : { item(y), y < x }`) and the rule gets that one's values by recursion, nobody knows them beforehand.
So there is a relation of the values that are *handled*, which is given from outside: the aggregate is folded for these,
and the rule holds for no others. What it would need, had it no such guard, is *needed*: a relation above the recursion.
An epoch is complete when all that is needed is handled (see `evaluation.needed_groups`).

Until then everything that is derived is right, but not yet all: aggregates range over lower relations, so that one of
a handled group has its final value, and the recursion reads them without negation. More groups than needed do no harm.
Beside subsumption, where facts leave their relation again, what is needed is a relation of the recursion itself, so
that what they needed while they were there stays in it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from elastalog.analysis.program import Aggregation, CheckedProgram, Rule
from elastalog.analysis.subsumptions import MARK
from elastalog.late import dataclass
from elastalog.planning.logical import HIDDEN, Goal, Scan, StoredRelation
from elastalog.planning.variables import assigned_variables, grounded

if TYPE_CHECKING:
    from elastalog.planning.lower import Lowering
    from elastalog.planning.scopes import Scope


@dataclass(frozen=True, slots=True)
class Needed:
    """A relation of what a rule needs: its clause without number."""

    relation: str
    names: tuple[str, ...]
    goals: tuple[Goal, ...]


def may_await_groups(program: CheckedProgram) -> bool:
    """Whether some aggregate stands in recursion, so that an evaluation may be continued by updates."""
    return any(isinstance(literal, Aggregation) for rule in program.rules if rule.is_recursive for literal in rule.body)


def await_groups(lowering: Lowering, rule: Rule, scope: Scope, names: Collection[str]) -> bool:
    """Makes it known in a scope which values recursion will have found for variables. Returns whether that can be: a
    subsumption judges facts that are gone before anybody hears of them."""
    if rule.head.relation.endswith(MARK):
        return False
    bases = {variable.name: variable.base for variable in assigned_variables(rule.body)}
    outermost = scope.outermost
    found = grounded((*outermost.goals, *outermost.recursive)) & bases.keys() - grounded(scope.known)
    awaited = scope.awaited(names, found)
    label = f"{lowering.rule_label(rule)}.{','.join(awaited)}"
    handled, needed = f"{HIDDEN}handled.{label}", f"{HIDDEN}needed.{label}"
    columns, number = tuple(bases[name] for name in awaited), rule.number or None
    lowering.relations[handled] = StoredRelation(
        handled, columns, is_hidden=True, is_flat=True, rule=number, needed=needed
    )
    lowering.relations[needed] = StoredRelation(needed, columns, is_hidden=True, is_flat=True, rule=number)
    lowering.add_stratum((handled,))
    lowering.needed.append(Needed(needed, awaited, (*outermost.asking(awaited), *lowering.guard(rule))))
    outermost.goals.append(Scan(handled, awaited))
    lowering.handled.append(Scan(handled, awaited))
    return True
