"""Rules with `autoinc()` in their logical form: a number is read from a hidden relation, by the values that the
variables of the rule have in the derivation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastalog.analysis import program as checked
from elastalog.analysis.program import Apply, Base, Constant, Rule, Variable
from elastalog.planning.equivalences import told_apart
from elastalog.planning.logical import AUTOINC, HIDDEN, AggregateRule, Goal, Scan, StoredRelation, Test
from elastalog.planning.lower_aggregates import ZERO, Alternative
from elastalog.planning.variables import grounded, variables_in

if TYPE_CHECKING:
    from elastalog.planning.lower import Lowering


def numbered_variable(literal: checked.Literal) -> Variable | None:
    """The variable of a literal `variable = autoinc()`; None for any other."""
    if isinstance(literal, checked.Comparison) and isinstance(literal.left, Variable):
        right = literal.right
        if isinstance(right, Apply) and right.functor == AUTOINC:
            return literal.left
    return None


def with_numbers(lowering: Lowering, rule: Rule, alternatives: list[Alternative]) -> list[Alternative]:
    """The alternatives of a rule, each with scans that read its numbers."""
    variables = [variable for literal in rule.body if (variable := numbered_variable(literal)) is not None]
    if not variables:
        return alternatives
    names = {variable.name for variable in variables}
    conjunctions = [_without(alternative.goals, names) for alternative in alternatives]
    columns = _columns(lowering, conjunctions)
    scans = [_numbers(lowering, rule, conjunctions, columns, variable) for variable in variables]
    return [Alternative((*alternative.goals, *scans), alternative.scans) for alternative in alternatives]


def _without(goals: tuple[Goal, ...], names: set[str]) -> tuple[Goal, ...]:
    """The goals that do not depend on numbers: they say which derivations there are."""
    kept = tuple(goal for goal in goals if isinstance(goal, Test) or names.isdisjoint(goal.terms))
    kept = tuple(g for g in kept if not isinstance(g, Test) or all(v.name not in names for v in variables_in(g)))
    bound = grounded(kept)
    return tuple(goal for goal in kept if _variables(goal) <= bound)


def _variables(goal: Goal) -> set[str]:
    if isinstance(goal, Test):
        return {variable.name for variable in variables_in(goal)}
    return {term for term in goal.terms if isinstance(term, str)}


def _columns(lowering: Lowering, conjunctions: list[tuple[Goal, ...]]) -> dict[str, Base]:
    """The variables that tell derivations apart, in the order in which they are written, and their types. What an
    argument computes follows from them. A wildcard in an atom of an equivalence only says that there is a class,
    however the equivalence is kept."""
    found: dict[str, Base] = {}
    for goal in conjunctions[0]:
        if isinstance(goal, Test):
            found.update({v.name: v.base for v in variables_in(goal) if v.name not in found})
        elif isinstance(goal, Scan):
            bases = lowering.relations[goal.relation].bases
            written = goal.relation in lowering.program.relations
            is_equivalence = written and lowering.program.relations[goal.relation].is_equivalence
            for term, base in zip(told_apart(goal.terms) if is_equivalence else goal.terms, bases, strict=False):
                if isinstance(term, str):
                    found.setdefault(term, base)
    return {name: base for name, base in found.items() if not name[:2].strip("@").isdigit()}


def _numbers(
    lowering: Lowering,
    rule: Rule,
    conjunctions: list[tuple[Goal, ...]],
    columns: dict[str, Base],
    variable: Variable,
) -> Scan:
    """Collects the derivations of a rule, gives them numbers, and reads the number of one."""
    label = lowering.label(rule)
    derivations, name = f"{HIDDEN}derivations.{label}", f"{HIDDEN}{AUTOINC}.{label}"
    bases = tuple(columns.values()) or (Base.NUMBER,)
    terms: tuple[str | Constant, ...] = tuple(columns) or (ZERO,)
    number = rule.number or None
    lowering.relations[derivations] = StoredRelation(derivations, bases, is_hidden=True, is_flat=True, rule=number)
    guard = lowering.guard(rule)
    clauses = [lowering.clause(derivations, terms, (*goals, *guard)) for goals in conjunctions]
    lowering.add_stratum((derivations,), clauses)
    lowering.relations[name] = StoredRelation(name, (*bases, Base.NUMBER), is_hidden=True, is_flat=True, rule=number)
    numbering = AggregateRule(name, derivations, len(bases), AUTOINC, None, Base.NUMBER, Base.NUMBER, rule)
    lowering.add_stratum((name,), aggregate=numbering)
    return Scan(name, (*terms, variable.name))
