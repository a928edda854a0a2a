"""HTML for notebooks and pages: collapsible, all values escaped."""

from __future__ import annotations

from html import escape

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import AggregatePremise, Node, Proof
from elastalog.provenance.rendering.folded import AGAIN, Shown, fitting, shown_children
from elastalog.provenance.rendering.label import label, reason, shortened, summary

MOST_NODES = 2_000
"""Larger proofs are cut."""
OPEN_LEVELS = 3
"""Levels that are open at first."""
_COLOURS = {"holds": "#06c", "fails": "#c00", "open": "#666"}
_INDENTED = "style='margin-left:1.5em'"


def render(proof: Proof) -> str:
    """The proof as nested `<details>`, each step with its rule. A sub-proof that stands in several places is shown in
    the first; aggregates are closed, and of many members the first are shown."""
    parts: list[str] = []
    shown = Shown()
    pending: list[tuple[Node, int] | str] = [(fitting(proof, MOST_NODES), 0)]
    while pending:
        entry = pending.pop()
        if isinstance(entry, str):
            parts.append(entry)
            continue
        node, level = entry
        is_again = shown.is_again(node)
        below, hidden = ((), 0) if is_again else shown_children(node)
        text = _line(node, is_again)
        if not below:
            parts.append(f"<div>{text}</div>")
            continue
        is_open = " open" if level < OPEN_LEVELS and not isinstance(node, AggregatePremise) else ""
        parts.append(f"<details{is_open}><summary>{text}</summary><div {_INDENTED}>")
        more = f"<div><small>… {hidden:,} more</small></div>" if hidden else ""
        pending.append(f"{more}</div></details>")
        pending.extend((child, level + 1) for child in reversed(below))
    note = summary(proof)
    return (
        f"<div class='elastalog-proof'>{''.join(parts)}" + (f"<small>{escape(note)}</small>" if note else "") + "</div>"
    )


def _line(node: Node, is_again: bool) -> str:
    """What stands in the line of a node: the fact, and the rule that it follows by."""
    how = f"{reason(node)}, {AGAIN}" if is_again else reason(node)
    text = f"<code>{escape(label(node))}</code>" + (f" <small>({escape(how)})</small>" if how else "")
    rule = node.rule if isinstance(node, Proof) else None
    if rule is None or is_again or not rule.text:
        return text
    return f"{text} <small class='rule'><code>{escape(shortened(rule.text))}</code> {escape(rule.place)}</small>"


def render_absence(absence: Absence) -> str:
    """The failing instantiations as `<details>`, the nearest open."""
    parts = [f"<div class='elastalog-absence'><div>{escape(absence.headline)}</div>"]
    parts += [f"<div>{escape(note)}</div>" for note in absence.notes]
    for number, found in enumerate(absence.instantiations):
        is_open = " open" if number == 0 else ""
        title = f"<code>{escape(absence.conclusion(found))}</code> <small>(R{found.rule.number_in_relation})</small>"
        if found.rule.text:
            written = f"<code>{escape(shortened(found.rule.text))}</code> {escape(found.rule.place)}"
            title += f" <small class='rule'>{written}</small>"
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
