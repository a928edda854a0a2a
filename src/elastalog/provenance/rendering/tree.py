"""An indented tree, for narrow terminals."""

from __future__ import annotations

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Node, Proof, children_of, clipped
from elastalog.provenance.rendering.label import label, reason

MOST_NODES = 2_000
"""Larger proofs are cut."""


def render(proof: Proof) -> str:
    """The proof as a tree, a node a line."""
    lines: list[str] = []
    pending: list[tuple[Node, str, str]] = [(clipped(proof, MOST_NODES), "", "")]
    while pending:
        node, first, rest = pending.pop()
        how = reason(node)
        lines.append(f"{first}{label(node)}" + (f"  ({how})" if how else ""))
        below = children_of(node)
        for position in range(len(below) - 1, -1, -1):
            is_last = position == len(below) - 1
            pending.append(
                (below[position], rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))
            )
    return "\n".join(lines)


def render_absence(absence: Absence) -> str:
    """The failing instantiations as a tree, a literal a line."""
    lines = [absence.headline]
    for number, found in enumerate(absence.instantiations, 1):
        lines.append(f"{number}. {absence.fact}  (R{found.rule.number_in_relation})")
        for position, literal in enumerate(found.literals):
            corner = "└─" if position == len(found.literals) - 1 else "├─"
            lines.append(f"   {corner} {literal.mark} {literal.text}")
    lines += [f"(R{rule.number_in_relation}) can not derive it: {why}" for rule, why in absence.impossible]
    lines += [] if absence.is_exhaustive else ["The search was cut short: there may be nearer ones."]
    return "\n".join(lines)
