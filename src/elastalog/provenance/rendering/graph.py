"""A proof or an absence as nodes and edges, for the forms that draw graphs."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.provenance.absence import Absence
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Proof, children_of, nodes_of
from elastalog.provenance.rendering.label import label, reason


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
