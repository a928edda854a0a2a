"""JSON: a table of nodes that refer to each other by position, so that shared and deep sub-proofs are no trouble."""

from __future__ import annotations

import json
from typing import Any, assert_never

from elastalog.analysis.listing import json_value
from elastalog.provenance.absence import Absence, PatternAbsence
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof, children_of, nodes_of
from elastalog.provenance.rendering.text import rules_of


def render(proof: Proof) -> str:
    """The proof as a JSON object; its `nodes` are listed from the root, which is the first."""
    nodes = list(nodes_of(proof))
    numbers = {id(node): number for number, node in enumerate(nodes)}
    table = [{**_described(node), "children": [numbers[id(child)] for child in children_of(node)]} for node in nodes]
    rules = [
        {"rule": rule.number, "rule_in_relation": rule.number_in_relation, "text": rule.text, "place": rule.place}
        for rule in rules_of(proof)
    ]
    shown = {
        "fact": _fact(proof.fact), "height": proof.height, "claim": proof.claim, "root": 0, "nodes": table,
        "rules": rules,
    }  # fmt: skip
    return json.dumps(shown, ensure_ascii=False, indent=2)


def render_absence(absence: Absence) -> str:
    """The failing instantiations as a JSON object."""
    found = [
        {
            "rule": instantiation.rule.number,
            "rule_in_relation": instantiation.rule.number_in_relation,
            "bindings": {name: json_value(value) for name, value in instantiation.bindings.items()},
            "free": list(instantiation.free),
            **({"conclusion": absence.conclusion(instantiation)} if isinstance(absence, PatternAbsence) else {}),
            "literals": [
                {
                    "kind": literal.kind,
                    "text": literal.text,
                    "status": literal.status,
                    "fact": None if literal.fact is None else _fact(literal.fact),
                }
                for literal in instantiation.literals
            ],
        }
        for instantiation in absence.instantiations
    ]
    impossible = [{"rule": rule.number, "reason": why} for rule, why in absence.impossible]
    asked = {"present": absence.present} if isinstance(absence, PatternAbsence) else {}
    shown = {
        "fact": {**_fact(absence.fact), "text": absence.subject},
        **asked,
        "instantiations": found,
        "impossible": impossible,
        "is_exhaustive": absence.is_exhaustive,
        **({"notes": list(absence.notes)} if absence.notes else {}),
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)


def _described(node: Node) -> dict[str, Any]:
    match node:
        case Proof():
            return {
                "kind": "fact",
                **_fact(node.fact),
                "rule": None if node.rule is None else node.rule.number,
                "rule_in_relation": None if node.rule is None else node.rule.number_in_relation,
                "explicit": node.is_explicit,
                "expanded": node.is_expanded,
                "height": node.height,
                **({} if node.superseded_by is None else {"superseded_by": _fact(node.superseded_by)}),
                **({} if node.chosen_among is None else {"chosen_among": node.chosen_among}),
            }
        case Condition():
            return {"kind": node.kind, "text": node.text}
        case AggregatePremise():
            return {"kind": "aggregate", "text": node.text, "result": json_value(node.result), "members": node.number}
        case Member():
            return {"kind": "member", "alternative": node.body}
        case _:
            assert_never(node)


def _fact(fact: Fact) -> dict[str, Any]:
    return {"relation": fact.relation, "values": [json_value(value) for value in fact.values], "text": str(fact)}
