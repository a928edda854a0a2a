"""What a node of a proof says in one line, the same in every form."""

from __future__ import annotations

from typing import assert_never

from elastalog.analysis.program import Rule
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Node, Proof, nodes_of

CUT = "…"
_WIDEST = 160
"""Stands where the depth ends."""


def label(node: Node) -> str:
    """The fact, constraint or aggregate of a node."""
    match node:
        case Proof():
            by = "" if node.superseded_by is None else f" [superseded by {node.superseded_by}]"
            among = "" if node.chosen_among is None else f" [chosen among {node.chosen_among}]"
            return f"{node.fact}{by}{among}" if node.is_expanded else f"{node.fact}{by} {CUT}"
        case Condition():
            return node.text
        case AggregatePremise():
            return node.text if node.is_complete else f"{node.text} {CUT}"
        case Member():
            return "member"
        case _:
            assert_never(node)


def reason(node: Node) -> str:
    """How a node follows from those below it: `R2`, `3 members`; empty where nothing is below."""
    match node:
        case Proof():
            return "" if node.rule is None else f"R{node.rule.number_in_relation}"
        case AggregatePremise():
            return f"{node.number} {'member' if node.number == 1 else 'members'}" if node.members else ""
        case Condition() | Member():
            return ""
        case _:
            assert_never(node)


def summary(proof: Proof) -> str:
    """The height of a proof and in which sense it is the best."""
    height = "" if proof.height is None else f"height {proof.height}"
    return ", ".join(part for part in (height, proof.claim) if part)


def rules_of(proof: Proof) -> list[Rule]:
    """The rules that a proof uses, each once, in the order of their numbers."""
    used = {
        node.rule.number: node.rule for node in nodes_of(proof) if isinstance(node, Proof) and node.rule is not None
    }
    return [used[number] for number in sorted(used)]


def legend(proof: Proof) -> str:
    """What `(R1)` means: the rules that a proof uses, a line each, with their places. Rules of several relations are
    named with their relation, `path.R1`, which is that of the fact below `(R1)`."""
    rules = [rule for rule in rules_of(proof) if rule.text]
    are_of_one = len({rule.head.relation for rule in rules}) == 1
    return "\n".join(
        f"{'' if are_of_one else f'{rule.head.relation}.'}R{rule.number_in_relation}: {shortened(rule.text)}"
        f"  ({rule.place})"
        for rule in rules
    )


def shortened(text: str) -> str:
    """A text that fits a line."""
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}{CUT}"
