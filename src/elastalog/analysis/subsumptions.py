"""Subsumption as rules of hidden relations: `R(x, a) <= R(x, b) :- b < a.` gives the pairs of facts of which the first
is dominated, `R<=(x, a, x, b) :- R(x, a), R(x, b), b < a.`

Names, types and groundedness are judged as those of any rule; then the rules are taken out of the program again and
belong to their relation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.variable_names import wildcard_name
from elastalog.syntax.tree import (
    Atom,
    Attribute,
    Clause,
    Item,
    RelationDeclaration,
    Subsumption,
    Tree,
    Variable,
    Wildcard,
)

MARK = "<="
"""The end of the name of a relation of pairs, which no program can write."""
_FAR: Final = 1_000_000


def is_of_pairs(relation: str) -> bool:
    """Whether a relation holds the pairs of a subsumption."""
    return relation.endswith(MARK)


def with_pairs(draft: Draft) -> Outcome:
    """Pass: put a relation of pairs and a rule for it in the place of every subsumption."""
    subsumptions = [item for item in draft.tree.items if isinstance(item, Subsumption)]
    if not subsumptions:
        return draft, []
    findings = Findings(draft.tree.source)
    declared = {item.name: item for item in draft.tree.items if isinstance(item, RelationDeclaration)}
    items: list[Item] = [item for item in draft.tree.items if not isinstance(item, Subsumption)]
    pairs: set[str] = set()
    for item in subsumptions:
        findings.instance = item.instance
        one, other = item.dominated, item.dominating
        if one.relation != other.relation:
            findings.error(
                "E0247",
                "a subsumption is between two facts of one relation",
                primary(other.span, f"of {quoted(other.relation)}"),
                secondary(one.span, f"of {quoted(one.relation)}"),
                advice=f"write {quoted(one.relation)} on both sides of `<=`",
            )
            continue
        one, other = _with_names(one, 1), _with_names(other, 2)
        declaration = declared.get(one.relation)
        name = one.relation + MARK
        if name not in pairs and declaration is not None:
            pairs.add(name)
            items.append(_of_pairs(declaration, name))
        if declaration is None:
            items.append(Clause((one,), (other, *item.body), None, item.span, item.instance))  # the name is reported
        else:
            head = replace(one, relation=name, arguments=(*one.arguments, *other.arguments), span=item.span)
            items.append(Clause((head,), (one, other, *item.body), None, item.span, item.instance))
    tree = Tree(draft.tree.source, tuple(items))
    return replace(draft, tree=tree), findings.diagnostics


def _with_names(head: Atom, side: int) -> Atom:
    """A head whose wildcards are variables, other than those of the body: their values belong to the pair."""
    arguments = tuple(
        [
            Variable(wildcard_name(side * _FAR + place), term.span) if isinstance(term, Wildcard) else term
            for place, term in enumerate(head.arguments)
        ]
    )
    return replace(head, arguments=arguments)


def _of_pairs(declaration: RelationDeclaration, name: str) -> RelationDeclaration:
    attributes = tuple(
        Attribute(f"{attribute.name}{side}", attribute.type_name, attribute.name_span, attribute.type_span)
        for side in ("", "'")
        for attribute in declaration.attributes
    )
    return RelationDeclaration(name, attributes, (), declaration.name_span, declaration.span, declaration.instance)
