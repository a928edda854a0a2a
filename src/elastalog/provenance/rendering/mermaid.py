"""Mermaid flowcharts."""

from __future__ import annotations

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Proof
from elastalog.provenance.rendering.graph import graph_of

_STYLES = {
    "explicit": "fill:#eee,stroke:#666",
    "cut": "stroke-dasharray:4",
    "leaf": "fill:none,stroke:none",
    "fails": "stroke:#c00",
    "holds": "stroke:#06c",
}


def render(shown: Proof | Absence) -> str:
    """A flowchart, conclusions at the bottom."""
    graph = graph_of(shown)
    lines = ["flowchart TD"]
    lines += [f'  n{i}["{_escaped(node.text)}"]' for i, node in enumerate(graph.nodes)]
    lines += [
        f"  n{source} -->" + (f'|"{_escaped(rule)}"|' if rule else "") + f" n{target}"
        for source, target, rule in graph.edges
    ]
    for kind, style in _STYLES.items():
        members = [f"n{i}" for i, node in enumerate(graph.nodes) if node.kind == kind]
        if members:
            lines += [f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}"]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """With entities for what Mermaid or the page around it would take as its own."""
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"), ("\n", " ")):
        text = text.replace(character, entity)
    return text
