"""A proof or an absence as nodes and edges, and drawn: in Graphviz DOT, and as a Mermaid flowchart."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Proof, children_of, nodes_of
from elastalog.provenance.rendering.text import label, reason


@dataclass(frozen=True, slots=True)
class GraphNode:
    """`kind`: explicit, derived, cut, leaf, aggregate, member, fails or holds."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges go from a premise to its conclusion, with the rule's number."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int, str], ...]


def graph_of(shown: Proof | Absence) -> Graph:
    """The graph of a proof, or of the failing instantiations of a fact."""
    return _of_proof(shown) if isinstance(shown, Proof) else _of_absence(shown)


def _of_proof(proof: Proof) -> Graph:
    nodes = list(nodes_of(proof))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    drawn: list[GraphNode] = []
    edges: list[tuple[int, int, str]] = []
    for number, node in enumerate(nodes):
        match node:
            case Proof():
                kind = "explicit" if node.is_explicit else "derived" if node.is_expanded else "cut"
            case Condition():
                kind = "leaf"
            case AggregatePremise():
                kind = "aggregate"
            case Member():
                kind = "member"
        drawn.append(GraphNode(label(node), kind))
        edges.extend((numbers[id(child)], number, reason(node)) for child in children_of(node))
    return Graph(tuple(drawn), tuple(edges))


def _of_absence(absence: Absence) -> Graph:
    nodes = [GraphNode(absence.subject, "fails")]
    edges: list[tuple[int, int, str]] = []
    for found in absence.instantiations:
        rule = len(nodes)
        nodes.append(GraphNode(f"R{found.rule.number_in_relation}", "member"))
        edges.append((rule, 0, ""))
        for literal in found.literals:
            edges.append((len(nodes), rule, ""))
            nodes.append(GraphNode(f"{literal.text} {literal.mark}", "fails" if literal.status == "fails" else "holds"))
    return Graph(tuple(nodes), tuple(edges))


_DOT_STYLES = {
    "explicit": "shape=box, style=filled, fillcolor=lightgrey",
    "derived": "shape=box",
    "cut": "shape=box, style=dashed",
    "leaf": "shape=plaintext",
    "aggregate": "shape=hexagon",
    "member": "shape=ellipse",
    "holds": "shape=box, color=blue",
    "fails": "shape=box, color=red",
}


def render_dot(shown: Proof | Absence) -> str:
    """A directed graph, conclusions at the bottom."""
    graph = graph_of(shown)
    lines = ["digraph proof {"]
    lines += [f'  n{i} [label="{_dot_escaped(n.text)}", {_DOT_STYLES[n.kind]}];' for i, n in enumerate(graph.nodes)]
    lines += [
        f"  n{source} -> n{target}" + (f' [label="{_dot_escaped(rule)}"];' if rule else ";")
        for source, target, rule in graph.edges
    ]
    return "\n".join([*lines, "}"])


def _dot_escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_MERMAID_STYLES = {
    "explicit": "fill:#eee,stroke:#666",
    "cut": "stroke-dasharray:4",
    "leaf": "fill:none,stroke:none",
    "fails": "stroke:#c00",
    "holds": "stroke:#06c",
}


def render_mermaid(shown: Proof | Absence) -> str:
    """A flowchart, conclusions at the bottom."""
    graph = graph_of(shown)
    lines = ["flowchart TD"]
    lines += [f'  n{i}["{_mermaid_escaped(node.text)}"]' for i, node in enumerate(graph.nodes)]
    lines += [
        f"  n{source} -->" + (f'|"{_mermaid_escaped(rule)}"|' if rule else "") + f" n{target}"
        for source, target, rule in graph.edges
    ]
    for kind, style in _MERMAID_STYLES.items():
        members = [f"n{i}" for i, node in enumerate(graph.nodes) if node.kind == kind]
        if members:
            lines += [f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}"]
    return "\n".join(lines)


def _mermaid_escaped(text: str) -> str:
    """With entities for what Mermaid or the page around it would take as its own."""
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"), ("\n", " ")):
        text = text.replace(character, entity)
    return text
