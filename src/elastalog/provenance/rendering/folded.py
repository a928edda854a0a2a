"""Proofs made short for people: a sub-proof that stands in several places is shown once, an aggregate by its first
members."""

from __future__ import annotations

from itertools import islice

from elastalog.provenance.proof import AggregatePremise, Condition, Node, Proof, children_of, clipped, nodes_of

MOST_MEMBERS = 3
"""Members of an aggregate that are shown."""
DEEPEST = 200
"""Levels that are shown."""
AGAIN = "as above"


def fitting(proof: Proof, most: int) -> Proof:
    """The proof, cut down if it has more than `most` different nodes or too many levels."""
    is_large = next(islice(nodes_of(proof), most, None), None) is not None
    is_deep = proof.height is None or proof.height > DEEPEST
    return clipped(proof, most, DEEPEST) if is_large or is_deep else proof


def shown_children(node: Node) -> tuple[tuple[Node, ...], int]:
    """The children to show, and how many are not."""
    below = children_of(node)
    if isinstance(node, AggregatePremise) and len(below) > MOST_MEMBERS:
        return below[:MOST_MEMBERS], node.number - MOST_MEMBERS
    return below, 0


class Shown:
    """Which nodes have been shown already."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def is_again(self, node: Node) -> bool:
        """Whether the node, with what is below it, has been shown before; from now on it has."""
        if isinstance(node, Condition) or not children_of(node):
            return False
        if isinstance(node, Proof) and id(node) in self._seen:
            return True
        self._seen.add(id(node))
        return False
