"""Refuses rules that planning would take for ever over: every literal is a place where an update can begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from elastalog.analysis.draft import Draft, FlatBody, Outcome, SeparatedAggregate
from elastalog.analysis.findings import Findings, primary

MOST_LITERALS: Final = 256
"""Literals of one rule, or of the body of one aggregate."""


def limit_rules(draft: Draft) -> Outcome:
    """Leaves rules out that are too long (E0227)."""
    findings = Findings(draft.tree.source)
    kept = []
    told = set()
    for clause in draft.flat_clauses:
        longest = len(clause.body) if clause.is_flat else max(map(len, _bodies(clause.body)))
        if longest <= MOST_LITERALS:
            kept.append(clause)
        elif clause.span not in told:
            told.add(clause.span)
            findings.error(
                "E0227",
                f"a body of {longest:,} literals",
                primary(clause.span, "this rule"),
                note=f"a body may have {MOST_LITERALS} literals",
                advice="give parts of it relations of their own",
            )
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
