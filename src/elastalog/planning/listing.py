"""Plans as text: the order in which each variant of a rule visits its atoms, and the indexes that it uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import assert_never

from elastalog.analysis.listing import show_expression, show_value
from elastalog.analysis.program import Constant
from elastalog.analysis.variables import is_wildcard_name
from elastalog.planning import steps
from elastalog.planning.equivalences import kept_as_classes, why_by_pairs
from elastalog.planning.logical import Absent, Clause, LogicalProgram, LogicalStratum, Scan, Test
from elastalog.planning.order import Statistics
from elastalog.planning.variants import plan_backward, plan_from_goal, plan_full
from elastalog.syntax.printer import print_comparison


def list_plans(program: LogicalProgram, statistics: Statistics) -> Iterator[str]:
    """Every stratum with the variants of its rules, then the indexes that they need."""
    indexes: dict[str, set[tuple[int, ...]]] = {}
    merging = kept_as_classes(program.checked, can_merge=True)
    for stratum in program.strata:
        if not stratum.clauses and not stratum.is_folded:
            continue
        kind = " (recursive)" if stratum.is_recursive else ""
        yield f"stratum {stratum.number}: {', '.join(stratum.relations)}{kind}"
        yield from (f"  {line}" for line in _remarks(stratum, program, merging))
        for variant in _variants(stratum, statistics):
            yield from _list_variant(variant, stratum)
            for probe in variant.probes:
                if not probe.is_member and probe.key_columns:
                    indexes.setdefault(probe.relation, set()).add(probe.key_columns)
    yield "indexes" if indexes else "no indexes"
    for relation, keys in sorted(indexes.items()):
        yield f"  {relation} by {', '.join('(' + ', '.join(map(str, key)) + ')' for key in sorted(keys))}"


def _remarks(stratum: LogicalStratum, program: LogicalProgram, merging: Collection[str]) -> Iterator[str]:
    """How a stratum is evaluated beyond the variants of its rules."""
    if stratum.aggregate is not None:
        fold = stratum.aggregate
        every = f", for every group of {fold.domain}" if fold.domain is not None else ", also of nothing"
        of_which = every if fold.is_total else ""
        yield f"fold {fold.members} by its first {fold.groups} columns: {fold.operator}{of_which}"
    for handled, needed in program.needed.items():
        if needed in stratum.relations:
            yield f"evaluation goes on until all of it is in {handled}"
    if stratum.equivalence is not None:
        yield f"classes of {stratum.equivalence.pairs}: each member with the one that represents its class"
    for rule in stratum.merges:
        yield f"classes of {rule.pairs} are formed in every round; an update forms those anew that it concerns"
        yield "  (strategy `elastic`; under others it evaluates the stratum anew)"
    for name in stratum.relations:
        declared = program.checked.relations.get(name)
        if declared is not None and declared.is_equivalence and program.relations[name].classes is None:
            why = why_by_pairs(declared, program.checked) or "classes are not asked for"
            otherwise = "; local levels in one process keep classes" if name in merging else ""
            yield f"all pairs of {name} are kept: {why}{otherwise}"
    if stratum.dominance:
        yield how_improved(stratum)


def how_improved(stratum: LogicalStratum) -> str:
    """How a stratum with subsumption, or a column that improves, is evaluated, and why."""
    if stratum.ranked is None:
        return f"in rounds, after which dominated facts leave; updates evaluate it anew: {stratum.why_in_rounds}"
    best = "least" if stratum.ranked.is_least else "greatest"
    return f"in the order of values, the {best} first; updates follow what they change (by ranks: value, steps)"


def _variants(stratum: LogicalStratum, statistics: Statistics) -> Iterator[steps.Variant]:
    """The variants that a bootstrap runs, once or from the delta of each recursive atom; then those that updates and
    proofs use to look for derivations of facts, except the obvious ones: of rules that are recursive or that compute
    their heads."""
    for clause in stratum.clauses:
        starts = clause.recursive_goals
        yield from (plan_from_goal(clause, goal, statistics) for goal in starts)
        if not starts:
            yield plan_full(clause, statistics)
    for clause in stratum.clauses:
        if clause.is_recursive or any(isinstance(goal, Test) for goal in clause.goals):
            yield plan_backward(clause, statistics)


def _list_variant(variant: steps.Variant, stratum: LogicalStratum) -> Iterator[str]:
    clause = variant.clause
    origin = f"rule {clause.rule.number}" if clause.rule is not None else "hidden rule"
    yield f"  {_atom(clause.head, clause.head_terms)}    // {origin}"
    yield f"    {_start(variant.gather, clause, stratum)}"
    yield from (f"      {_action(action, variant.gather.slots)}" for action in variant.gather.actions)
    for probe in variant.probes:
        goal = clause.goals[probe.goal]
        assert not isinstance(goal, Test)
        atom = _atom(goal.relation, goal.terms)
        if probe.is_negated:
            how = f"without {atom}"
        elif probe.is_member:
            how = f"with {atom}, every column bound"
        elif probe.key_columns:
            how = f"join {atom} by columns {', '.join(map(str, probe.key_columns))}"
        else:
            how = f"join every {atom}: nothing is bound"
        if probe.is_before and goal.relation in stratum.relations:
            how += ", before the delta"
        yield f"    {how}"
        yield from (f"      {_action(action, probe.slots)}" for action in probe.actions)


def _start(gather: steps.Gather, clause: Clause, stratum: LogicalStratum) -> str:
    if gather.goal is None:
        return "once" if gather.relation is None else f"derivations of {_atom(clause.head, clause.head_terms)}"
    goal = clause.goals[gather.goal]
    assert isinstance(goal, Scan | Absent)
    is_delta = goal.relation in stratum.relations
    return f"{'delta of' if is_delta else 'all of'} {_atom(goal.relation, goal.terms)}"


def _atom(relation: str, terms: tuple[str | Constant | None, ...]) -> str:
    return f"{relation}({', '.join(_term(term) for term in terms)})"


def _term(term: str | Constant | None) -> str:
    if term is None or (isinstance(term, str) and is_wildcard_name(term)):
        return "_"
    return term if isinstance(term, str) else show_value(term.value)


def _action(action: steps.Action, slots: Mapping[str, int]) -> str:
    names: dict[object, object] = {slot: name for name, slot in slots.items()}
    match action:
        case steps.Fill():
            return f"let {names.get(action.slot, f'column {action.slot}')} = {show_value(action.constant.value)}"
        case steps.Copy():
            return f"let column {action.slot} = column {action.source}"
        case steps.Compute():
            return f"let {names.get(action.slot, action.slot)} = {show_expression(action.expression)}"
        case steps.Generate():
            return f"for {names.get(action.slot, action.slot)} in {show_expression(action.expression)}"
        case steps.Keep():
            left, right = show_expression(action.left), show_expression(action.right)
            return f"if {print_comparison(action.operator, left, right)}"
        case steps.KeepEqual():
            return f"if {names.get(action.left, action.left)} = {names.get(action.right, action.right)}"
        case steps.KeepConstant():
            return f"if {names.get(action.slot, action.slot)} = {show_value(action.constant.value)}"
        case steps.TakeApart():
            return f"take {names.get(action.slot, action.slot)} apart as {show_expression(action.constructor)}"
        case _:
            assert_never(action)
