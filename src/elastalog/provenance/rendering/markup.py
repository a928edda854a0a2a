"""HTML for notebooks and pages, graphs in Graphviz DOT and as Mermaid flowcharts, and JSON.

HTML is collapsible, with all values escaped. `page` makes a whole page of it, which needs nothing else, opens anywhere,
and prints unfolded. JSON is a table of nodes that refer to each other by position, so that shared and deep sub-proofs
are no trouble.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any, assert_never, cast

from elastalog.analysis.listing import json_value
from elastalog.provenance.absence import Absence, Instantiation, LiteralStatus, PatternAbsence
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof, nodes_of
from elastalog.provenance.rendering.text import AGAIN, Drawn, heading, remarks, rules_of, shortened, summary, walked

MOST_NODES = 2_000
"""Larger proofs are cut."""
OPEN_LEVELS = 3
"""Levels that are open at first."""
_COLOURS = {"holds": "#06c", "fails": "#c00", "open": "#666"}
_INDENTED = "style='margin-left:1.5em'"


def render_html(shown: Proof | Absence) -> str:
    """Nested `<details>`: each step of a proof with its rule; of failing instantiations, the nearest is open. A
    repeated sub-proof is shown once; aggregates are closed, and show some of their members."""
    parts = [f"<div>{escape(told)}</div>" for told in heading(shown)]
    ends: list[str] = []
    """Of the nodes that are being shown, from the root."""
    nearest = next(iter(getattr(shown, "instantiations", ())), None)
    for node, level, _, is_again in walked(shown, MOST_NODES):
        parts += reversed(ends[level:])
        del ends[level:]
        if isinstance(node, str):
            parts.append(f"<div><small>{node}</small></div>")
        elif is_again or not node.children:
            parts.append(f"<div>{_line(node, is_again)}</div>")
        else:
            is_closed = isinstance(node, AggregatePremise) or (isinstance(node, Instantiation) and node is not nearest)
            is_open = " open" if level < OPEN_LEVELS and not is_closed else ""
            parts.append(f"<details{is_open}><summary>{_line(node, is_again)}</summary><div {_INDENTED}>")
            ends.append("</div></details>")
    parts += reversed(ends)
    parts += [f"<div>{escape(remark)}</div>" for remark in remarks(shown)]
    note, what = (summary(shown), "proof") if isinstance(shown, Proof) else ("", "absence")
    return (
        f"<div class='elastalog-{what}'>{''.join(parts)}"
        + (f"<small>{escape(note)}</small>" if note else "")
        + "</div>"
    )


def _line(node: Drawn, is_again: bool) -> str:
    """What stands in the line of a node: the fact, and the rule that it follows by."""
    if isinstance(node, LiteralStatus):
        return f"<span style='color:{_COLOURS[node.status]}'><code>{escape(node.text)}</code> {node.mark}</span>"
    how = f"{node.how}, {AGAIN}" if is_again else node.how
    text = f"<code>{escape(node.label)}</code>" + (f" <small>({escape(how)})</small>" if how else "")
    rule = node.rule if isinstance(node, Proof | Instantiation) else None
    if rule is None or is_again or not rule.text:
        return text
    return f"{text} <small class='rule'><code>{escape(shortened(rule.text))}</code> {escape(rule.place)}</small>"


def page(title: str, content: str) -> str:
    """A page with a title and a piece of HTML. Browsers that cannot style what is folded up unfold it to print."""
    template = Path(__file__).with_name("page.html").read_text()
    return Template(template).substitute(title=escape(title), content=content)


# --- graphs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphNode:
    """`kind`: explicit, derived, cut, leaf, aggregate, member, fails, holds or open."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges go from a premise to its conclusion, with the rule's number."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int, str], ...]


def graph_of(shown: Proof | Absence) -> Graph:
    """The graph of a proof, or of the failing instantiations of a fact."""
    nodes: list[Any] = list(nodes_of(cast(Node, shown)))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    edges = [(numbers[id(child)], numbers[id(node)], node.how) for node in nodes for child in node.children]
    return Graph(tuple(GraphNode(node.label, node.shape) for node in nodes), tuple(edges))


_DOT_STYLES = {
    "explicit": "shape=box, style=filled, fillcolor=lightgrey",
    "derived": "shape=box",
    "cut": "shape=box, style=dashed",
    "leaf": "shape=plaintext",
    "aggregate": "shape=hexagon",
    "member": "shape=ellipse",
    "holds": "shape=box, color=blue",
    "fails": "shape=box, color=red",
    "open": "shape=box, style=dashed",
}


def render_dot(shown: Proof | Absence) -> str:
    """A directed graph, conclusions at the bottom."""
    graph = graph_of(shown)
    lines = [f'  n{i} [label="{_dot_escaped(n.text)}", {_DOT_STYLES[n.kind]}];' for i, n in enumerate(graph.nodes)]
    for source, target, rule in graph.edges:
        lines.append(f"  n{source} -> n{target}" + (f' [label="{_dot_escaped(rule)}"];' if rule else ";"))
    return "\n".join(["digraph proof {", *lines, "}"])


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
    lines = ["flowchart TD", *(f'  n{i}["{_mermaid_escaped(node.text)}"]' for i, node in enumerate(graph.nodes))]
    for source, target, rule in graph.edges:
        lines.append(f"  n{source} -->" + (f'|"{_mermaid_escaped(rule)}"|' if rule else "") + f" n{target}")
    for kind, style in _MERMAID_STYLES.items():
        if members := [f"n{i}" for i, node in enumerate(graph.nodes) if node.kind == kind]:
            lines += [f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}"]
    return "\n".join(lines)


def _mermaid_escaped(text: str) -> str:
    """With entities for what Mermaid or the page around it would take as its own."""
    for character, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"), ("\n", " ")):
        text = text.replace(character, entity)
    return text


# --- JSON ------------------------------------------------------------------------------------------------------------


def render_json(shown: Proof | Absence) -> str:
    """A JSON object. The `nodes` of a proof are listed from the root, which is the first."""
    return json.dumps(as_json(shown), ensure_ascii=False, indent=2)


def as_json(shown: Proof | Absence) -> dict[str, Any]:
    """What `render_json` writes."""
    return _proof_json(shown) if isinstance(shown, Proof) else _absence_json(shown)


def _proof_json(proof: Proof) -> dict[str, Any]:
    nodes = list(nodes_of(proof))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    table = [{**_described(node), "children": [numbers[id(child)] for child in node.children]} for node in nodes]
    rules = [
        {"rule": rule.number, "rule_in_relation": rule.number_in_relation, "text": rule.text, "place": rule.place}
        for rule in rules_of(proof)
    ]
    return {
        "fact": fact_as_json(proof.fact), "height": proof.height, "claim": proof.claim, "root": 0, "nodes": table,
        "rules": rules,
    }  # fmt: skip


def _absence_json(absence: Absence) -> dict[str, Any]:
    found = [
        {
            "rule": instantiation.rule.number,
            "rule_in_relation": instantiation.rule.number_in_relation,
            "bindings": {name: json_value(value) for name, value in instantiation.bindings.items()},
            "free": list(instantiation.free),
            **({"conclusion": instantiation.conclusion} if isinstance(absence, PatternAbsence) else {}),
            "literals": [
                {
                    "kind": literal.kind,
                    "text": literal.text,
                    "status": literal.status,
                    "fact": None if literal.fact is None else fact_as_json(literal.fact),
                    **({} if literal.because is None else {"because": as_json(literal.because)}),
                }
                for literal in instantiation.literals
            ],
        }
        for instantiation in absence.instantiations
    ]
    impossible = [{"rule": rule.number, "reason": why} for rule, why in absence.impossible]
    asked = {"present": absence.present, "read": [*absence.read]} if isinstance(absence, PatternAbsence) else {}
    return {
        "fact": {**fact_as_json(absence.fact), "text": absence.subject},
        **asked,
        "instantiations": found,
        "impossible": impossible,
        "is_exhaustive": absence.is_exhaustive,
        **({"notes": list(absence.notes)} if absence.notes else {}),
        **({"further": absence.further} if absence.further else {}),
        **({"more": absence.more} if absence.more else {}),
        **({"more_rules": absence.more_rules} if absence.more_rules else {}),
    }


def _described(node: Node) -> dict[str, Any]:
    match node:
        case Proof():
            return {
                "kind": "fact",
                **fact_as_json(node.fact),
                "rule": None if node.rule is None else node.rule.number,
                "rule_in_relation": None if node.rule is None else node.rule.number_in_relation,
                "explicit": node.is_explicit if node.is_expanded else None,
                "expanded": node.is_expanded,
                "height": node.height,
                **({} if node.superseded_by is None else {"superseded_by": fact_as_json(node.superseded_by)}),
                **({} if node.chosen_among is None else {"chosen_among": node.chosen_among}),
                **({"given": True} if node.is_given else {}),
            }
        case Condition():
            return {"kind": node.kind, "text": node.text}
        case AggregatePremise():
            return {"kind": "aggregate", "text": node.text, "result": json_value(node.result), "members": node.number}
        case Member():
            return {"kind": "member", "alternative": node.body}
        case _:
            assert_never(node)


def fact_as_json(fact: Fact) -> dict[str, Any]:
    """A fact as JSON has it."""
    return {"relation": fact.relation, "values": [json_value(value) for value in fact.values], "text": str(fact)}
