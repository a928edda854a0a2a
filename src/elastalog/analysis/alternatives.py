"""The conjunctions that a body with disjunctions stands for."""

from __future__ import annotations

from typing import Final

from elastalog.analysis.findings import Findings, primary
from elastalog.analysis.negation import without_groups
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

MOST_ALTERNATIVES: Final = 1_000
"""How many rules one clause may become."""
MOST_LITERALS: Final = 200_000
"""How many literals these rules may have in all."""


def alternatives_of(body: tree.Body, copies: int, span: Span, findings: Findings) -> list[list[tree.Literal]]:
    """The conjunctions of a body, left alternatives first, without `true`. None at all, and a report, when the body
    taken `copies` times would be too large."""
    body = without_groups(body)
    if copies == 1 and tree.Disjunction not in map(type, body):
        return [[literal for literal in body if type(literal) is not tree.Truth or not literal.value]]
    count, literals = _size(body)
    count *= copies
    if count > 1 and (count > MOST_ALTERNATIVES or literals * copies > MOST_LITERALS):
        report_too_large(str(count) if count < 10**9 else "billions of", span, findings)
        return []
    return _expand(body)


def report_too_large(count: str, span: Span, findings: Findings) -> None:
    """E0221."""
    findings.error(
        "E0221",
        f"this stands for {count} rules",
        primary(span, "heads and alternatives multiply here"),
        note=f"a clause may stand for at most {MOST_ALTERNATIVES} rules and {MOST_LITERALS} literals",
        advice="move each group of alternatives into a relation of its own",
    )


def _size(body: tree.Body) -> tuple[int, int]:
    """The number of conjunctions and the number of literals in all of them."""
    count, literals = 1, 0
    for literal in body:
        inner_count, inner_literals = 1, 1
        if type(literal) is tree.Disjunction:
            sizes = [_size(alternative) for alternative in literal.alternatives]
            inner_count, inner_literals = sum(c for c, _ in sizes), sum(n for _, n in sizes)
        count, literals = count * inner_count, literals * inner_count + inner_literals * count
    return count, literals


def _expand(body: tree.Body) -> list[list[tree.Literal]]:
    found: list[list[tree.Literal]] = [[]]
    for literal in body:
        if type(literal) is tree.Disjunction:
            choices = [choice for alternative in literal.alternatives for choice in _expand(alternative)]
            found = [before + choice for before in found for choice in choices]
        elif type(literal) is not tree.Truth or not literal.value:
            for conjunction in found:
                conjunction.append(literal)
    return found
