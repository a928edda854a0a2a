"""HTML for notebooks and pages: collapsible, all values escaped."""

from __future__ import annotations

from html import escape

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Node, Proof, children_of, clipped
from elastalog.provenance.rendering.label import label, reason, summary

MOST_NODES = 2_000
"""Larger proofs are cut."""
OPEN_LEVELS = 3
"""Levels that are open at first."""
_COLOURS = {"holds": "#06c", "fails": "#c00", "open": "#666"}


def render(proof: Proof) -> str:
    """The proof as nested `<details>`."""
    parts: list[str] = []
    pending: list[tuple[Node, int] | str] = [(clipped(proof, MOST_NODES), 0)]
    while pending:
        entry = pending.pop()
        if isinstance(entry, str):
            parts.append(entry)
            continue
        node, level = entry
        how = reason(node)
        text = f"<code>{escape(label(node))}</code>" + (f" <small>({escape(how)})</small>" if how else "")
        below = children_of(node)
        if not below:
            parts.append(f"<div>{text}</div>")
            continue
        is_open = " open" if level < OPEN_LEVELS else ""
        parts.append(f"<details{is_open}><summary>{text}</summary><div style='margin-left:1.5em'>")
        pending.append("</div></details>")
        pending.extend((child, level + 1) for child in reversed(below))
    note = summary(proof)
    return (
        f"<div class='elastalog-proof'>{''.join(parts)}" + (f"<small>{escape(note)}</small>" if note else "") + "</div>"
    )


def render_absence(absence: Absence) -> str:
    """The failing instantiations as `<details>`, the nearest open."""
    parts = [f"<div class='elastalog-absence'><div>{escape(absence.headline)}</div>"]
    for number, found in enumerate(absence.instantiations):
        is_open = " open" if number == 0 else ""
        title = f"<code>{escape(str(absence.fact))}</code> <small>(R{found.rule.number_in_relation})</small>"
        parts.append(f"<details{is_open}><summary>{title}</summary>")
        parts += [
            f"<div style='margin-left:1.5em;color:{_COLOURS[literal.status]}'>"
            f"<code>{escape(literal.text)}</code> {literal.mark}</div>"
            for literal in found.literals
        ]
        parts.append("</details>")
    parts += [
        f"<div>(R{rule.number_in_relation}) can not derive it: {escape(why)}</div>" for rule, why in absence.impossible
    ]
    return "".join(parts) + "</div>"
