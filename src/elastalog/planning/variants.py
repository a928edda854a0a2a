"""Variants of clauses: which ones there are, and from where each is planned.

A variant starts at one goal (a delta, in semi-naive or incremental evaluation), at the whole of some relation, or at
the head (backward evaluation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from elastalog.analysis.program import Constant
from elastalog.planning.logical import Clause, Scan
from elastalog.planning.order import Statistics, first_scan, order_goals
from elastalog.planning.slots import HEAD_ROW, body_row, lay_out
from elastalog.planning.steps import Variant


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
    return lay_out(clause, visits, variant.results)


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
    return lay_out(clause, visits, results, from_head=from_head, is_sought=is_sought)
