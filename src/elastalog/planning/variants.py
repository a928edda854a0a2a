"""Variants of clauses as steps: where each variable lives after each probe, and what is carried on.

A variant starts at one goal (a delta, in semi-naive or incremental evaluation), at the whole of some relation, or at
the head (backward evaluation). Variables are kept only while something later needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import assert_never

from elastalog.analysis.program import Apply, Constant, Expression, Variable
from elastalog.late import dataclass
from elastalog.planning.failing import can_fail
from elastalog.planning.logical import Absent, Clause, Scan, Test
from elastalog.planning.order import Apart, Bind, Solve, Statistics, Visit, first_scan, given_by, goal_of, order_goals
from elastalog.planning.steps import (
    ROW,
    Action,
    Compute,
    Copy,
    Fill,
    Gather,
    Generate,
    Keep,
    KeepConstant,
    KeepEqual,
    Probe,
    TakeApart,
    Variant,
)
from elastalog.planning.variables import variables_of

HEAD_ROW = "@head"
"""The name under which backward evaluation carries the row number of the head."""


def body_row(scan: int) -> str:
    """The name under which the row number of a scan's fact is carried, when derivations are wanted."""
    return f"@body{scan}"


def plan_from_goal(clause: Clause, goal: int, statistics: Statistics, *, with_rows: bool = False) -> Variant:
    """The variant that starts at the facts of one goal, a scan or a negated atom."""
    return _plan(clause, goal, set(), statistics, _results(clause, with_rows), hint=_hint(clause, goal))


def plan_again(variant: Variant, statistics: Statistics) -> Variant:
    """The variant that starts at the facts of the same goal and gives the same results, now that sizes are others; it
    is the same one if nothing comes of that."""
    clause, goal = variant.clause, variant.gather.goal
    assert goal is not None
    visits = order_goals(clause, goal, set(), statistics, _hint(clause, goal))
    # All else follows from the order of the goals.
    if [visit.goal for visit in visits[1:]] == [probe.goal for probe in variant.probes]:
        return variant
    return _plan_visits(clause, goal, visits, variant.results)


def plan_by_way_of(variant: Variant, goal: int, statistics: Statistics) -> Variant:
    """The variant with the same start and results that joins a certain scan before all others."""
    clause, start = variant.clause, variant.gather.goal
    scans = [i for i, literal in enumerate(clause.goals) if isinstance(literal, Scan)]
    return _plan(clause, start, set(), statistics, variant.results, hint=(scans.index(goal),))


def plan_heads(clauses: Sequence[Clause], goal: int, statistics: Statistics) -> Variant:
    """The variant that starts at the facts of one goal, for clauses that differ in their heads only: its results are
    the terms of all heads, each once."""
    results = tuple(dict.fromkeys(term for clause in clauses for term in clause.head_terms))
    return _plan(clauses[0], goal, set(), statistics, results)


def plan_full(clause: Clause, statistics: Statistics) -> Variant:
    """The variant that enumerates all derivations."""
    hint = _hint(clause, None)
    start = first_scan(clause, statistics, hint)
    return _plan(clause, start, set(), statistics, clause.head_terms, hint=hint)


def plan_backward(clause: Clause, statistics: Statistics, *, with_rows: bool = False) -> Variant:
    """The variant that starts at facts of the head; its results begin with the head's row number."""
    bound = {term for term in clause.head_terms if isinstance(term, str)}
    results: tuple[str | Constant, ...] = (HEAD_ROW,)
    if with_rows:
        results += tuple(body_row(i) for i in range(len(clause.scans)))
    return _plan(clause, None, bound, statistics, results, from_head=True)


def plan_wanted(clause: Clause, wanted: Scan, statistics: Statistics) -> Variant:
    """The variant that starts at the facts of another goal, which tells what is wanted of heads: it finds what is
    derived of that. As backwards, what overflows leads to nothing: it may do so before it is known to be derived."""
    asking = replace(
        clause, goals=(wanted, *clause.goals), recursive_goals=tuple(goal + 1 for goal in clause.recursive_goals)
    )
    return _plan(asking, 0, set(), statistics, asking.head_terms, is_sought=True)


def _results(clause: Clause, with_rows: bool) -> tuple[str | Constant, ...]:
    rows = tuple(body_row(i) for i in range(len(clause.scans))) if with_rows else ()
    return (*clause.head_terms, *rows)


def _hint(clause: Clause, goal: int | None) -> tuple[int, ...]:
    """The user's order of scans for this variant, from 0. Variants are numbered by the recursive atom that is the
    delta; rules without any, and evaluation from the start, have variant 0."""
    if clause.rule is None or not clause.rule.plan:
        return ()
    variant = clause.recursive_goals.index(goal) if goal in clause.recursive_goals else 0
    order = tuple(position - 1 for position in clause.rule.plan.get(variant, ()))
    # Aggregates add scans that a plan does not know; then it cannot be obeyed.
    return order if len(order) == len(clause.scans) else ()


@dataclass(slots=True)
class _Draft:
    """A step before its layout is known: what it binds, and its actions in terms of names."""

    visit: Visit
    taken: dict[str, int] = field(default_factory=dict)  # name -> column of the relation
    key: list[tuple[int, str]] = field(default_factory=list)  # column of the relation, name
    fills: list[tuple[str, Constant]] = field(default_factory=list)  # for the *next* step's key, or the results
    same: list[tuple[str, str]] = field(default_factory=list)  # names that must hold the same word
    fixed: list[tuple[str, Constant]] = field(default_factory=list)  # names that must hold a constant

    def bound_here(self) -> set[str]:
        binds = {variable.name for test in self.visit.tests for variable in given_by(test)}
        return {*self.taken, *binds, *(name for name, _ in self.fills)}


def _plan(
    clause: Clause,
    start: int | None,
    bound: set[str],
    statistics: Statistics,
    results: tuple[str | Constant, ...],
    hint: tuple[int, ...] = (),
    from_head: bool = False,
    is_sought: bool = False,
) -> Variant:
    is_sought = is_sought or from_head
    visits = order_goals(clause, start, bound, statistics, hint, solves=is_sought)
    return _plan_visits(clause, start, visits, results, from_head, is_sought)


def _plan_visits(
    clause: Clause,
    start: int | None,
    visits: list[Visit],
    results: tuple[str | Constant, ...],
    from_head: bool = False,
    is_sought: bool = False,
) -> Variant:
    rows = _wanted_rows(clause, results)
    drafts = [_draft_start(clause, visits[0], rows, from_head)]
    known = drafts[0].bound_here()
    for visit in visits[1:]:
        drafts.append(_draft_probe(clause, visit, known, drafts[-1], rows))
        known |= drafts[-1].bound_here()
    return _lay_out(clause, start, drafts, results, from_head, is_sought)


def _draft_start(clause: Clause, visit: Visit, rows: dict[int, str], from_head: bool) -> _Draft:
    draft = _Draft(visit)
    if from_head:
        draft.taken[HEAD_ROW] = ROW
        _take_columns(draft, clause.head_terms)
    elif visit.goal is not None:
        goal = clause.goals[visit.goal]
        assert not isinstance(goal, Test)
        _take_columns(draft, goal.terms)
        _take_row(draft, visit.goal, rows)
    return draft


def _draft_probe(clause: Clause, visit: Visit, known: set[str], before: _Draft, rows: dict[int, str]) -> _Draft:
    assert visit.goal is not None
    goal = clause.goals[visit.goal]
    assert not isinstance(goal, Test)
    draft = _Draft(visit)
    for column, term in enumerate(goal.terms):
        if isinstance(term, Constant):
            name = f"#{visit.goal}.{column}"
            before.fills.append((name, term))
            draft.key.append((column, name))
        elif term in known and term is not None:
            draft.key.append((column, term))
    if isinstance(goal, Scan):
        _take_columns(draft, goal.terms)
        _take_row(draft, visit.goal, rows)
    return draft


def _take_columns(draft: _Draft, terms: tuple[str | Constant | None, ...]) -> None:
    keyed = {column for column, _ in draft.key}
    for column, term in enumerate(terms):
        if column in keyed or term is None:
            continue
        if isinstance(term, Constant):
            name = f"#fixed{column}"
            draft.taken[name] = column
            draft.fixed.append((name, term))
        elif term not in draft.taken:
            draft.taken[term] = column
        else:
            name = f"#again{column}"
            draft.taken[name] = column
            draft.same.append((term, name))


def _wanted_rows(clause: Clause, results: tuple[str | Constant, ...]) -> dict[int, str]:
    """The scans, by goal, whose rows are among the results, with the names of these."""
    scans = (i for i, goal in enumerate(clause.goals) if isinstance(goal, Scan))
    wanted = {term for term in results if isinstance(term, str)}
    return {i: name for position, i in enumerate(scans) if (name := body_row(position)) in wanted}


def _take_row(draft: _Draft, goal: int, rows: dict[int, str]) -> None:
    if goal in rows:
        draft.taken[rows[goal]] = ROW


def _uses(clause: Clause, draft: _Draft) -> Iterator[str]:
    """The names that a step's own actions read."""
    for left, right in draft.same:
        yield from (left, right)
    for name, _ in draft.fixed:
        yield name
    for test in draft.visit.tests:
        goal = clause.goals[goal_of(test)]
        assert isinstance(goal, Test)
        for side in (goal.left, goal.right):
            for variable in variables_of(side):
                yield variable.name


def _lay_out(
    clause: Clause,
    start: int | None,
    drafts: list[_Draft],
    results: tuple[str | Constant, ...],
    from_head: bool,
    is_sought: bool,
) -> Variant:
    # What the steps after each one still need, from the last to the first.
    needs: list[set[str]] = []
    later = {term for term in results if isinstance(term, str)}
    for draft in reversed(drafts):
        needs.append(set(later))
        own = {*later, *_uses(clause, draft)}
        later = (own - draft.bound_here()) | {name for _, name in draft.key}
    needs.reverse()

    slots: dict[str, int] = {}
    gather: Gather | None = None
    probes: list[Probe] = []
    for i, draft in enumerate(drafts):
        is_last = i == len(drafts) - 1
        wanted = needs[i] | set(_uses(clause, draft)) | {name for name, _ in draft.fills}
        layout: list[str | Constant] = list(results) if is_last else []
        names = [*slots, *draft.taken, *sorted(draft.bound_here() - draft.taken.keys())]
        layout += [name for name in dict.fromkeys(names) if name in wanted and name not in layout]
        keep: list[tuple[int, int]] = []
        take: list[tuple[int, int]] = []
        placed: dict[str, int] = {}
        actions: list[Action] = []
        copies: list[Action] = []
        for slot, name in enumerate(layout):
            if isinstance(name, Constant):
                actions.append(Fill(slot, name))
            elif name in slots and (i == 0 or name not in draft.taken):
                keep.append((slots[name], slot))
                placed.setdefault(name, slot)
            elif name in draft.taken:
                take.append((draft.taken[name], slot))
                placed.setdefault(name, slot)
            elif name in placed:
                copies.append(Copy(placed[name], slot))
            else:
                placed[name] = slot
        actions += _actions(clause, draft, placed, is_sought) + copies
        if i == 0:
            relation = clause.head if from_head else None if start is None else _relation(clause, start)
            is_direct = relation is not None and not actions and not is_last and all(c != ROW for c, _ in take)
            if is_direct:
                placed = {name: column for name, column in draft.taken.items() if name in placed}
                take = [(column, column) for column in placed.values()]
            width = max(placed.values(), default=-1) + 1 if is_direct else len(layout)
            gather = Gather(relation, start, tuple(take), placed, width, tuple(actions), is_direct)
        else:
            goal = draft.visit.goal
            assert goal is not None
            literal = clause.goals[goal]
            assert not isinstance(literal, Test)
            probes.append(
                Probe(
                    relation=literal.relation,
                    goal=goal,
                    is_negated=isinstance(literal, Absent),
                    is_before=start is not None and goal < start,
                    key_columns=tuple(column for column, _ in draft.key),
                    key_slots=tuple(slots[name] for _, name in draft.key),
                    is_member=len(draft.key) == len(literal.terms),
                    keep=tuple(keep),
                    take=tuple(take),
                    slots=placed,
                    width=len(layout),
                    actions=tuple(actions),
                )
            )
        slots = placed
    assert gather is not None
    return Variant(clause, gather, tuple(probes), results)


def _relation(clause: Clause, goal: int) -> str:
    literal = clause.goals[goal]
    assert not isinstance(literal, Test)
    return literal.relation


def _actions(clause: Clause, draft: _Draft, slots: dict[str, int], is_sought: bool) -> list[Action]:
    actions: list[Action] = [KeepConstant(slots[name], constant) for name, constant in draft.fixed]
    actions += [KeepEqual(slots[left], slots[right]) for left, right in draft.same]
    actions += [Fill(slots[name], constant) for name, constant in draft.fills]
    for test in draft.visit.tests:
        goal = clause.goals[goal_of(test)]
        assert isinstance(goal, Test)
        if isinstance(test, Apart):
            actions.append(_take_apart(goal, test, slots))
            continue
        if isinstance(test, Solve):
            actions += _solve(goal, test, slots)
            continue
        binds = test.variable.name if isinstance(test, Bind) else None
        # A derivation whose arithmetic overflows has not been made: rows for which it does lead to none.
        actions.append(_test_action(goal, binds, slots, drops_errors=is_sought and can_fail(goal)))
    return actions


def _solve(goal: Test, solve: Solve, slots: dict[str, int]) -> list[Action]:
    found = solve.solution
    compute = Compute(slots[found.variable.name], found.expression, drops_errors=True, is_sought=True)
    return [compute] if found.is_exact else [compute, _test_action(goal, None, slots, drops_errors=True)]


def _take_apart(goal: Test, apart: Apart, slots: dict[str, int]) -> Action:
    assert isinstance(goal.left, Variable)
    assert isinstance(goal.right, Apply)
    unknown = {variable.name for variable in apart.variables}
    taken: list[tuple[int, int]] = []
    checked: list[tuple[int, int]] = []
    fixed: list[tuple[int, Constant]] = []
    for position, part in enumerate(goal.right.arguments):
        if isinstance(part, Constant):
            fixed.append((position, part))
        elif isinstance(part, Variable):
            # Of a variable that stands twice the second place is compared with the first.
            (taken if part.name in unknown else checked).append((position, slots[part.name]))
            unknown.discard(part.name)
    return TakeApart(slots[goal.left.name], goal.right, tuple(taken), tuple(checked), tuple(fixed))


def _test_action(goal: Test, binds: str | None, slots: dict[str, int], drops_errors: bool) -> Action:
    if binds is None:
        return Keep(goal.operator, goal.base, goal.left, goal.right, drops_errors)
    expression: Expression = goal.right if _is_variable(goal.left, binds) else goal.left
    if isinstance(expression, Apply) and expression.functor == "range":
        return Generate(slots[binds], expression, drops_errors)
    return Compute(slots[binds], expression, drops_errors)


def _is_variable(expression: Expression, name: str) -> bool:
    match expression:
        case Variable():
            return expression.name == name
        case Constant() | Apply():
            return False
        case _:
            assert_never(expression)
