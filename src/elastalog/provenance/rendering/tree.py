"""An indented tree, for narrow terminals."""

from __future__ import annotations

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Node, Proof
from elastalog.provenance.rendering.folded import AGAIN, Shown, fitting, shown_children
from elastalog.provenance.rendering.label import label, reason

MOST_NODES = 2_000
"""Larger proofs are cut."""


def render(proof: Proof) -> str:
    """The proof as a tree, a node a line. A sub-proof that stands in several places is shown in the first, and of an
    aggregate the first members are."""
    lines: list[str] = []
    shown = Shown()
    pending: list[tuple[Node | str, str, str]] = [(fitting(proof, MOST_NODES), "", "")]
    while pending:
        node, first, rest = pending.pop()
        if isinstance(node, str):
            lines.append(f"{first}{node}")
            continue
        how, is_again = reason(node), shown.is_again(node)
        how = f"{how}, {AGAIN}" if is_again else how
        lines.append(f"{first}{label(node)}" + (f"  ({how})" if how else ""))
        if is_again:
            continue
        below, hidden = shown_children(node)
        entries: list[Node | str] = [*below, *([f"… {hidden:,} more"] if hidden else [])]
        for position in range(len(entries) - 1, -1, -1):
            is_last = position == len(entries) - 1
            pending.append(
                (entries[position], rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))
            )
    return "\n".join(lines)


def render_absence(absence: Absence) -> str:
    """The failing instantiations as a tree, a literal a line."""
    lines = [absence.headline, *absence.notes]
    for number, found in enumerate(absence.instantiations, 1):
        lines.append(f"{number}. {absence.conclusion(found)}  (R{found.rule.number_in_relation})")
        for position, literal in enumerate(found.literals):
            corner = "└─" if position == len(found.literals) - 1 else "├─"
            lines.append(f"   {corner} {literal.mark} {literal.text}")
    lines += [f"(R{rule.number_in_relation}) can not derive it: {why}" for rule, why in absence.impossible]
    lines += [] if absence.is_exhaustive else ["The search was cut short: there may be nearer ones."]
    return "\n".join(lines)
