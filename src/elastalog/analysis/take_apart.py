"""Pass: clauses with several heads, alternatives or aggregates become clauses with one head and one conjunction.
Clauses that planning would take too long for are refused: every literal is a place where an update can begin.

If only equations of a rule mention a record, no column determines its type. Its parts are equated instead, and the
record is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

from elastalog.analysis.draft import Draft, FlatBody, FlatClause, SeparatedAggregate
from elastalog.analysis.findings import Findings
from elastalog.analysis.negation import alternatives_of, report_too_large
from elastalog.analysis.scopes import ScopeSeparator, TooLargeError
from elastalog.analysis.variables import mentions, substitute
from elastalog.diagnostics.messages import counted
from elastalog.syntax import tree

MOST_LITERALS: Final = 256
"""Literals of one rule, or of the body of one aggregate."""


def take_apart(draft: Draft, findings: Findings) -> Draft:
    """Rewrites every clause as rules with one head and one conjunction, in which aggregates are literals of their
    own."""
    flat: list[FlatClause] = []
    for clause, is_nested in draft.clauses:
        findings.instance = clause.instance
        flat.extend(_take_clause_apart(clause, is_nested, findings))
    return replace(draft, flat_clauses=tuple(_limited(flat, findings)))


def _take_clause_apart(clause: tree.Clause, is_nested: bool, findings: Findings) -> list[FlatClause]:
    flat: list[FlatClause] = []
    alternatives = alternatives_of(clause.body, len(clause.heads), clause.span, findings)
    separator = ScopeSeparator(findings) if is_nested else None
    for head in clause.heads:
        for written in alternatives:
            alternative = without_untyped_records(head, written)
            if tree.Truth in map(type, alternative):  # only `false` is left, and this alternative never holds
                continue
            errors = findings.count
            new_head, body = head, cast(FlatBody, tuple(alternative))
            if separator is not None:
                try:
                    new_head, body = separator.separate(head, alternative)
                except TooLargeError:  # alternatives inside aggregates inside alternatives
                    report_too_large("too many", clause.span, findings)
                    return []
            if clause.plan is not None:
                _check_plan(clause.plan, body, findings)
            if findings.count > errors:
                return []  # every further alternative would repeat the report
            flat.append(FlatClause(new_head, body, clause))
    return flat


def _check_plan(plan: tree.Plan, body: FlatBody, findings: Findings) -> None:
    """Checks that every order of a plan names each positive atom once."""
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
        findings.error("E0218", plan.span, problem=problem, version=version, example=example or None)
        return


def _limited(clauses: list[FlatClause], findings: Findings) -> Iterator[FlatClause]:
    """The clauses, without those that are too long (E0227)."""
    told = set()
    for clause in clauses:
        aggregates = tree.nodes_of(SeparatedAggregate, clause.body, closed=(tree.Atom, tree.Negation, tree.Comparison))
        longest = max(map(len, (clause.body, *(body for each in aggregates for body in each.bodies))))
        if longest <= MOST_LITERALS:
            yield clause
        elif clause.written.span not in told:
            told.add(clause.written.span)
            findings.instance = clause.written.instance
            findings.error("E0227", clause.written.span, longest=longest, most=MOST_LITERALS)


def without_untyped_records(head: tree.Atom, body: Sequence[tree.Literal]) -> Sequence[tree.Literal]:
    """A conjunction in which the parts of such records are equated: `x = [a, 1], x = [2, b]`, if nothing else reads
    `x`, means `a = 2, 1 = b`."""
    simpler: Sequence[tree.Literal] | None = body
    while simpler is not None:
        body, simpler = simpler, _simpler(head, simpler)
    return body


def _simpler(head: tree.Atom, body: Sequence[tree.Literal]) -> list[tree.Literal] | None:
    """The conjunction with one record fewer; None if there is none left to take apart."""
    for equation in body:
        if not _is_equation(equation):
            continue
        assert isinstance(equation, tree.Comparison)
        others = [literal for literal in body if literal is not equation]
        one, other = equation.left, equation.right
        if _is_record(one) and _is_record(other):
            return [*others, *_parts(one, other, equation)]
        record, name = (one, other) if _is_record(one) else (other, one)
        if not isinstance(name, tree.Variable) or mentions(head, (name.name,)) or mentions(record, (name.name,)):
            continue
        # The variable is that record, if nothing but equations with others like it reads it.
        uses = [literal for literal in others if mentions(literal, (name.name,))]
        if all(_is_equation(use, name) for use in uses):
            return [substitute(literal, {name.name: record}) if literal in uses else literal for literal in others]
    return None


def _parts(one: tree.Term, other: tree.Term, equation: tree.Comparison) -> list[tree.Literal]:
    assert isinstance(one, tree.Call)
    assert isinstance(other, tree.Call)
    if len(one.arguments) != len(other.arguments):
        return [tree.Truth(False, equation.span)]
    return [
        replace(equation, left=left, right=right)
        for left, right in zip(one.arguments, other.arguments, strict=True)
        if not isinstance(left, tree.Wildcard) and not isinstance(right, tree.Wildcard)
    ]


def _is_equation(literal: tree.Literal, name: tree.Variable | None = None) -> bool:
    """Whether it equates a record, or the given variable, with something."""
    if type(literal) is not tree.Comparison or literal.operator != "=":
        return False
    sides = literal.left, literal.right
    if name is None:
        return any(map(_is_record, sides))
    return any(isinstance(side, tree.Variable) and side.name == name.name for side in sides)


def _is_record(term: tree.Term) -> bool:
    return type(term) is tree.Call and term.functor == "[]"
