"""Text as in the papers: premises over a line with the number of the rule, the conclusion below."""

from __future__ import annotations

from collections.abc import Sequence

from elastalog.provenance.absence import Absence, Instantiation
from elastalog.provenance.proof import Member, Node, Proof, children_of, clipped, fold_tree, nodes_of
from elastalog.provenance.rendering import tree
from elastalog.provenance.rendering.folded import shown_children
from elastalog.provenance.rendering.label import label, legend, reason, summary

MOST_NODES = 200
"""Larger proofs are cut: every level adds to the width."""
WIDTH = 160
"""Wider texts become trees where the form is not chosen."""
_GAP = "   "

Block = tuple[str, ...]


def render(proof: Proof) -> str:
    """The proof as text."""
    return "\n".join(line.rstrip() for line in fold_tree(clipped(proof, MOST_NODES), _block))


def render_fitting(proof: Proof) -> str:
    """The proof as text if it is narrow enough and has no aggregate of many, otherwise as a tree; then what is known of
    its height, and the rules that it uses."""
    drawn = render(proof)
    is_wide = max(map(len, drawn.splitlines())) > WIDTH or clipped(proof, MOST_NODES) is not proof
    if is_wide or any(shown_children(node)[1] for node in nodes_of(proof)):
        drawn = tree.render(proof)
    return "\n\n".join(part for part in (drawn, summary(proof), legend(proof)) if part)


def render_absence(absence: Absence) -> str:
    """The failing instantiations, each as a rule application whose premises hold (✓), fail (X) or are open (?)."""
    parts = [absence.headline, *absence.notes]
    parts += ["\n".join(line.rstrip() for line in _instantiation(absence, found)) for found in absence.instantiations]
    parts += [f"(R{rule.number_in_relation}) can not derive it: {why}" for rule, why in absence.impossible]
    parts += [] if absence.is_exhaustive else ["The search was cut short: there may be nearer ones."]
    return "\n\n".join(parts)


def _instantiation(absence: Absence, found: Instantiation) -> Block:
    premises = [(f"{literal.text} {literal.mark}",) for literal in found.literals]
    return _over(_beside(premises), absence.conclusion(found), f"R{found.rule.number_in_relation}")


def _block(node: Node, below: Sequence[Block]) -> Block:
    if not children_of(node):
        if isinstance(node, Proof) and node.rule is not None:
            return _over(("",), label(node), reason(node))
        return (label(node),)
    premises = _beside(below)
    return premises if isinstance(node, Member) else _over(premises, label(node), reason(node))


def _over(premises: Block, conclusion: str, rule: str) -> Block:
    width = max(len(premises[0]), len(conclusion))
    above = tuple(_centred(line, width) for line in _padded(premises)) if premises != ("",) else ()
    mark = f"({rule})"
    lines = (*above, "-" * width + mark, _centred(conclusion, width))
    return _padded(lines)


def _beside(blocks: Sequence[Block]) -> Block:
    """Blocks next to each other, standing on one line."""
    tallest = max((len(block) for block in blocks), default=0)
    filled = [(" " * len(block[0]),) * (tallest - len(block)) + _padded(block) for block in blocks]
    return tuple(_GAP.join(lines) for lines in zip(*filled, strict=True)) or ("",)


def _padded(lines: Block) -> Block:
    width = max(map(len, lines), default=0)
    return tuple(line.ljust(width) for line in lines)


def _centred(line: str, width: int) -> str:
    left = (width - len(line)) // 2
    return " " * left + line
