"""Two passes: clauses with several heads, alternatives or aggregates become clauses with one head and one conjunction,
and those are refused that planning would take for ever over: every literal is a place where an update can begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

from elastalog.analysis.alternatives import alternatives_of, report_too_large
from elastalog.analysis.draft import Draft, FlatBody, FlatClause, Outcome, SeparatedAggregate, Shape
from elastalog.analysis.findings import Findings, counted, primary
from elastalog.analysis.scopes import ScopeSeparator, TooLargeError
from elastalog.syntax import tree

MOST_LITERALS: Final = 256
"""Literals of one rule, or of the body of one aggregate."""


def take_apart(draft: Draft) -> Outcome:
    """Write every clause as rules with one head and a conjunction, aggregates as literals of their own."""
    findings = Findings(draft.tree.source)
    flat: list[FlatClause] = []
    for clause, shape in draft.clauses:
        findings.instance = clause.instance
        if shape is Shape.FLAT:
            body = cast(FlatBody, tuple(_without_untyped_records(clause.heads[0], clause.body)))
            if tree.Truth in map(type, body):
                continue
            flat.append(
                FlatClause(clause.heads[0], body, clause.plan, True, not clause.body, clause.span, clause.instance)
            )
            if clause.plan is not None:
                _check_plan(clause.plan, body, findings)
        else:
            flat.extend(_take_clause_apart(clause, shape, findings))
    return replace(draft, flat_clauses=tuple(flat)), findings.diagnostics


def _take_clause_apart(clause: tree.Clause, shape: Shape, findings: Findings) -> list[FlatClause]:
    flat: list[FlatClause] = []
    alternatives = alternatives_of(clause.body, len(clause.heads), clause.span, findings)
    separator = ScopeSeparator(findings)
    for head in clause.heads:
        for written in alternatives:
            alternative = _without_untyped_records(head, written)
            if tree.Truth in map(type, alternative):  # only `false` is left, and this alternative never holds
                continue
            errors = findings.count
            new_head, body = head, cast(FlatBody, tuple(alternative))
            if shape is Shape.NESTED:
                try:
                    new_head, body = separator.separate(head, alternative)
                except TooLargeError:  # alternatives inside aggregates inside alternatives
                    report_too_large("too many", clause.span, findings)
                    return []
            if clause.plan is not None:
                _check_plan(clause.plan, body, findings)
            if findings.count > errors:
                return []  # every further alternative would repeat the report
            is_flat, is_fact = shape is not Shape.NESTED, not clause.body
            flat.append(FlatClause(new_head, body, clause.plan, is_flat, is_fact, clause.span, clause.instance))
    return flat


def _check_plan(plan: tree.Plan, body: FlatBody, findings: Findings) -> None:
    """Every order of a plan names each positive atom once."""
    atoms = sum(type(literal) is tree.Atom for literal in body)
    seen: set[int] = set()
    for version, order in plan.versions:
        if version in seen:
            problem = f"version {version} is given twice"
        elif len(order) != atoms or set(order) != set(range(1, atoms + 1)):
            problem = f"version {version} does not order the {counted(atoms, 'atom')} of the rule"
        else:
            seen.add(version)
            continue
        example = ", ".join(str(i) for i in range(1, min(atoms, 8) + 1)) + (", …" if atoms > 8 else "")
        findings.error(
            "E0218",
            f"`.plan` does not fit its rule: {problem}",
            primary(plan.span, "this plan"),
            note="an order names every positive atom of the body once, counted from 1",
            advice=f"write for example `.plan {version}:({example})`" if atoms else "remove the plan",
        )
        return


def _without_untyped_records(head: tree.Atom, body: Sequence[tree.Literal]) -> Sequence[tree.Literal]:
    for literal in body:
        if type(literal) is tree.Comparison and tree.Call in (type(literal.left), type(literal.right)):
            from elastalog.analysis.untyped_records import without_untyped_records  # most programs have none

            return without_untyped_records(head, body)
    return body


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
