"""Refuses rules that planning would take for ever over: every literal is a place where an update can begin, and every
count that may be of nothing is a rule of its own for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from elastalog.analysis.draft import Draft, FlatBody, Outcome, SeparatedAggregate
from elastalog.analysis.findings import Findings, primary

MOST_LITERALS: Final = 256
"""Literals of one rule, or of the body of one aggregate."""
MOST_DEFAULTS: Final = 8
"""Aggregates of one such body that are 0 of nothing."""


def limit_rules(draft: Draft) -> Outcome:
    """Leaves rules out that are too long (E0227) or have too many counts and sums (E0228)."""
    findings = Findings(draft.tree.source)
    kept = []
    told = set()
    for clause in draft.flat_clauses:
        problem = next((found for body in _bodies(clause.body) if (found := _problem(body)) is not None), None)
        if problem is None:
            kept.append(clause)
        elif clause.span not in told:
            told.add(clause.span)
            code, message, note, advice = problem
            findings.error(code, message, primary(clause.span, "this rule"), note=note, advice=advice)
    return replace(draft, flat_clauses=tuple(kept)), findings.diagnostics


def _bodies(body: FlatBody) -> Iterator[FlatBody]:
    """A body, and those of the aggregates in it."""
    pending = [body]
    while pending:
        found = pending.pop()
        yield found
        for literal in found:
            if type(literal) is SeparatedAggregate:
                pending.extend(literal.bodies)


def _problem(body: FlatBody) -> tuple[str, str, str, str] | None:
    if len(body) > MOST_LITERALS:
        return (
            "E0227",
            f"a body of {len(body):,} literals",
            f"a body may have {MOST_LITERALS} literals",
            "give parts of it relations of their own",
        )
    defaults = sum(type(literal) is SeparatedAggregate and literal.operator in ("count", "sum") for literal in body)
    if defaults > MOST_DEFAULTS:
        return (
            "E0228",
            f"a body with {defaults} counts and sums",
            f"a body may have {MOST_DEFAULTS}: each can be 0 of nothing, which doubles the rules that it stands for",
            "give some of them relations of their own, and join these",
        )
    return None
