"""Why a relation cannot be inlined."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_ADVICE = "remove the qualifier `inline`"


def needs_facts(
    declared: tree.RelationDeclaration, span: Span, what: str, instance: tree.Instance | None, findings: Findings
) -> None:
    """E0226."""
    findings.instance = instance
    findings.error(
        "E0226",
        f"relation {quoted(declared.name)} is inline and has no facts of its own",
        primary(span, f"{what} needs them"),
        secondary(_place(declared), "declared inline here"),
        advice=f"{_ADVICE}, or {what}",
    )


def is_cyclic(members: list[tree.RelationDeclaration], uses: Mapping[str, Span], findings: Findings) -> None:
    """E0226."""
    first = members[0]
    findings.instance = first.instance
    names = ", ".join(quoted(member.name) for member in members[:8])
    message = f"relation {names} is inline and uses itself" if len(members) == 1 else f"{names} are inline, in a circle"
    findings.error(
        "E0226",
        message,
        primary(_place(first), "declared inline here"),
        *(secondary(span, f"{quoted(name)} uses it here") for name, span in list(uses.items())[:8]),
        advice=_ADVICE if len(members) == 1 else f"{_ADVICE} from one of them",
    )


def changes_aggregate(atom: tree.Atom, operator: str, head: tree.Atom, findings: Findings) -> None:
    """E0226."""
    findings.error(
        "E0226",
        f"relation {quoted(atom.relation)} is inline and would change what {quoted(operator)} "
        + ("numbers" if operator == "autoinc" else "ranges over"),
        primary(atom.span, "used here"),
        secondary(head.span, "a rule for it has variables of its own, or is one of several"),
        note="all variables of a body count, also those of rules that take the place of an atom",
        advice=_ADVICE,
    )


def _place(declared: tree.RelationDeclaration) -> Span:
    return next((span for text, span in declared.qualifiers if text == "inline"), declared.name_span)
