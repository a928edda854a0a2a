"""Text for people: premises over a line with the number of the rule and the conclusion below, as in the papers; or an
indented tree, for narrow terminals.

The line of a node is the same in every form, also in HTML and graphs. Proofs are shortened for people: a repeated
sub-proof is shown once, an aggregate by its first members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, TypeAlias

from elastalog.analysis.listing import show_rule
from elastalog.analysis.program import Rule
from elastalog.diagnostics.messages import counted
from elastalog.provenance.absence import Absence, Instantiation, LiteralStatus
from elastalog.provenance.proof import (
    BY_RANKS,
    CUT,
    LEAST_BY_STRATUM,
    AggregatePremise,
    Member,
    Node,
    Proof,
    clipped,
    fold_tree,
    nodes_of,
)

MOST_NODES = 200
"""Larger proofs are cut: every level adds to the width."""
WIDTH = 160
"""Wider texts become trees where the form is not chosen, and longer rules are cut."""
_GAP = "   "

Block = tuple[str, ...]
Drawn: TypeAlias = Node | Instantiation | LiteralStatus
"""A node of a proof or of an absence."""


def render(shown: Proof | Absence) -> str:
    """The proof as text; or the failing instantiations, each as a rule whose premises hold (✓), fail (X) or are open
    (?)."""
    roots: Any = (clipped(shown, MOST_NODES),) if isinstance(shown, Proof) else shown.instantiations
    drawn = ["\n".join(line.rstrip() for line in fold_tree(root, _block)) for root in roots]
    return "\n\n".join((*heading(shown), *drawn, *remarks(shown)))


def render_narrow(absence: Absence) -> str:
    """Why a fact is absent as text, or as a tree where a rule is wide."""
    drawn = render(absence)
    return render_tree(absence) if any(line[WIDTH:] for line in drawn.splitlines() if line[:1] == "-") else drawn


def render_fitting(proof: Proof) -> str:
    """The proof as text if it is narrow enough and all members of its aggregates are shown, otherwise as a tree; then
    what is known of its height, and the rules that it uses."""
    drawn = render(proof)
    is_wide = max(map(len, drawn.splitlines())) > WIDTH or clipped(proof, MOST_NODES) is not proof
    if is_wide or any(shown_children(node)[1] for node in nodes_of(proof)):
        drawn = render_tree(proof)
    return "\n\n".join(part for part in (drawn, summary(proof), legend(proof)) if part)


def heading(shown: Proof | Absence) -> tuple[str, ...]:
    """What stands above instantiations."""
    return () if isinstance(shown, Proof) else (shown.headline, *shown.notes)


def remarks(shown: Proof | Absence) -> Iterator[str]:
    """What stands below instantiations."""
    if isinstance(shown, Proof):
        return
    for rule, why in shown.impossible:
        yield f"(R{rule.number_in_relation}) cannot derive it: {why}"
    if shown.more:
        verb = "is" if shown.more == 1 else "are"
        how = "ask with a greater `limit` (as an option: `--limit`, in the shell: `setlimit`)"
        yield f"{counted(shown.more, 'more derivation')} {verb} not shown: {how}."
    if not shown.is_exhaustive:
        yield "The search was cut short: there may be nearer ones."
    if shown.further:
        how = "ask with a greater `depth` (as an option: `--depth`, in the shell: `setdepth`)"
        yield f"To see why {shown.further}, {how}."


def _block(node: Drawn, below: Sequence[Block]) -> Block:
    if not below and not node.how:
        return (node.label,)
    premises = _beside(below)
    return premises if isinstance(node, Member) else _over(premises, node.label, node.how)


def _over(premises: Block, conclusion: str, rule: str) -> Block:
    width = max(len(premises[0]), len(conclusion))
    above = tuple(_centred(line, width) for line in _padded(premises)) if premises != ("",) else ()
    mark = f"({rule})" if rule else ""
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


# --- what every form has in common -----------------------------------------------------------------------------------


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


def shown_children(node: Drawn) -> tuple[tuple[Drawn, ...], str]:
    """The children to show, and what stands for those that are not."""
    below = node.children
    if isinstance(node, AggregatePremise) and len(below) > MOST_MEMBERS:
        return below[:MOST_MEMBERS], f"… {node.number - MOST_MEMBERS:,} more"
    if isinstance(node, LiteralStatus) and isinstance(node.because, Absence) and node.because.more_rules:
        return below, f"… {counted(node.because.more_rules, 'more rule')}: ask about {node.text}"
    return below, ""


def walked(shown: Proof | Absence, most: int) -> Iterator[tuple[Drawn | str, int, bool, bool]]:
    """Every node to show, parents first, with its level, whether it is the last below its parent, and whether it was
    shown before, and with it all below. A text stands for the members that are not shown."""
    roots: Sequence[Drawn] = [fitting(shown, most)] if isinstance(shown, Proof) else shown.instantiations
    pending: list[tuple[Drawn | str, int, bool]] = [(root, 0, True) for root in reversed(roots)]
    seen: set[int] = set()
    while pending:
        node, level, is_last = pending.pop()
        is_again = id(node) in seen
        yield node, level, is_last, is_again
        if isinstance(node, str) or is_again:
            continue
        below, hidden = shown_children(node)
        if below and isinstance(node, Proof):
            seen.add(id(node))
        entries: list[Drawn | str] = [*below, *[hidden] * bool(hidden)]
        for place, entry in enumerate(reversed(entries)):
            pending.append((entry, level + 1, place == 0))


def summary(proof: Proof) -> str:
    """The height of a proof and in which sense it is the best."""
    if proof.is_explicit:
        return "an explicit fact: it was given, and needs no rule"
    height = "" if proof.height is None else f"height {proof.height}"
    is_about_recursion = proof.claim in (LEAST_BY_STRATUM, BY_RANKS)
    is_said = not is_about_recursion or any(rule.is_recursive for rule in rules_of(proof))
    return ", ".join(part for part in (height, proof.claim if is_said else "") if part)


def rules_of(proof: Proof) -> list[Rule]:
    """The rules that a proof uses, each once, in the order of their numbers."""
    used = {
        node.rule.number: node.rule for node in nodes_of(proof) if isinstance(node, Proof) and node.rule is not None
    }
    return [used[number] for number in sorted(used)]


def legend(proof: Proof) -> str:
    """The rules that a proof uses, a line each, with their places. Where they are of several relations, they are named
    with their relation, as `path.R1`. Of alternatives of one rule, each shows its own."""
    rules = [rule for rule in rules_of(proof) if rule.text]
    are_of_one = len({rule.head.relation for rule in rules}) == 1
    lines, texts = [], Counter(rule.text for rule in rules)
    for rule in rules:
        name = f"{'' if are_of_one else f'{rule.head.relation}.'}R{rule.number_in_relation}"
        lines.append(f"{name}: {shortened(rule.text if texts[rule.text] == 1 else show_rule(rule))}  ({rule.place})")
    return "\n".join(lines)


def shortened(text: str) -> str:
    """A text that fits a line."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}{CUT}"


# --- trees -----------------------------------------------------------------------------------------------------------


MOST_TREE_NODES = 2_000
"""Larger proofs are cut."""


def render_tree(shown: Proof | Absence) -> str:
    """The proof as a tree, a node a line, or the failing instantiations, a literal a line. A repeated sub-proof is
    shown once, an aggregate by its first members."""
    lines, roots = [*heading(shown)], count(1)
    rest = [""]
    """What stands before the lines of each level."""
    for node, level, is_last, is_again in walked(shown, MOST_TREE_NODES):
        if level:
            first, before = rest[level] + ("└─ " if is_last else "├─ "), rest[level] + ("   " if is_last else "│  ")
        else:
            first, before = ("", "") if isinstance(shown, Proof) else (f"{next(roots)}. ", "   ")
        rest[level + 1 :] = [before]
        if isinstance(node, str):
            lines.append(f"{first}{node}")
            continue
        how = f"{node.how}, {AGAIN}" if is_again else node.how
        text = f"{node.mark} {node.text}" if isinstance(node, LiteralStatus) else node.label
        lines.append(f"{first}{text}" + (f"  ({how})" if how else ""))
    return "\n".join((*lines, *remarks(shown)))
