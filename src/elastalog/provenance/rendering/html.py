"""HTML for notebooks and pages: collapsible, all values escaped. `page` makes a whole page around it: it needs nothing
else, opens anywhere, and prints unfolded.
"""

from __future__ import annotations

from html import escape

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import AggregatePremise, Node, Proof
from elastalog.provenance.rendering.text import AGAIN, Shown, fitting, label, reason, shortened, shown_children, summary

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


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d5dae1; --paper: #fff; --mark: #0b6bcb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #98a3b3; --line: #3a4351; --paper: #171b21; --mark: #6cb6ff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; font-weight: 600; overflow-wrap: anywhere; }
code { font: 0.92em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
summary { cursor: pointer; padding: 0.15rem 0; }
summary:hover { background: color-mix(in srgb, var(--mark) 8%, transparent); }
details > div { border-left: 2px solid var(--line); padding-left: 0.8rem; }
details > summary::marker { color: var(--mark); }
small { color: var(--soft); }
small.rule { margin-left: 0.6rem; }
footer { margin-top: 2rem; border-top: 1px solid var(--line); padding-top: 0.5rem;
         color: var(--soft); font-size: 0.85rem; }
@media print {
  body { max-width: none; margin: 0; color: #000; background: #fff; }
  details::details-content { content-visibility: visible; block-size: auto; }
  details > summary { list-style: none; }
  summary, div { break-inside: avoid-page; }
}
""".strip()

# Browsers that cannot style what is folded up unfold it before they print.
_UNFOLD = "addEventListener('beforeprint',()=>document.querySelectorAll('details').forEach(d=>d.open=true))"


def page(title: str, content: str) -> str:
    """A page with a title and a piece of HTML."""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n<main>\n{content}\n</main>\n"
        f"<footer>Made by Elastalog</footer>\n<script>{_UNFOLD}</script>\n</body>\n</html>"
    )
