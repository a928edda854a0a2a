"""Graphviz DOT."""

from __future__ import annotations

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import Proof
from elastalog.provenance.rendering.graph import graph_of

_STYLES = {
    "explicit": "shape=box, style=filled, fillcolor=lightgrey",
    "derived": "shape=box",
    "cut": "shape=box, style=dashed",
    "leaf": "shape=plaintext",
    "aggregate": "shape=hexagon",
    "member": "shape=ellipse",
    "holds": "shape=box, color=blue",
    "fails": "shape=box, color=red",
}


def render(shown: Proof | Absence) -> str:
    """A directed graph, conclusions at the bottom."""
    graph = graph_of(shown)
    lines = ["digraph proof {"]
    lines += [f'  n{i} [label="{_escaped(n.text)}", {_STYLES[n.kind]}];' for i, n in enumerate(graph.nodes)]
    lines += [
        f"  n{source} -> n{target}" + (f' [label="{_escaped(rule)}"];' if rule else ";")
        for source, target, rule in graph.edges
    ]
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
