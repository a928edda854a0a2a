"""The variables of a rule replaced by terms, and its wildcards by variables of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_CONSTANTS: Final = (tree.Integer, tree.Float, tree.String, Span)

Fresh = Callable[[str, Span], tree.Term]
"""Makes the variable that stands for a wildcard, or the wildcard itself."""


def substitute(body: tree.Body, terms: Mapping[str, tree.Term], wildcard: Fresh) -> tree.Body:
    """A body with terms in the place of variables. A wildcard of a positive atom becomes what `wildcard` makes; one of
    a negated atom stays."""
    return tuple([_literal(literal, terms, wildcard) for literal in body])


def substitute_term(term: tree.Term, terms: Mapping[str, tree.Term], wildcard: Fresh) -> tree.Term:
    """A term with terms in the place of variables."""
    found: tree.Term = _inside(term, terms, wildcard)
    return found


def _literal(literal: tree.Literal, terms: Mapping[str, tree.Term], wildcard: Fresh) -> tree.Literal:
    found: tree.Literal = _inside(literal, terms, wildcard)
    return found


def _inside(node: Any, terms: Mapping[str, tree.Term], wildcard: Fresh) -> Any:
    match node:
        case tree.Variable():
            return terms.get(node.name, node)
        case tree.Wildcard():
            return wildcard("any", node.span)
        case tree.Negation():
            arguments = tuple(
                [
                    term if isinstance(term, tree.Wildcard) else _inside(term, terms, wildcard)
                    for term in node.atom.arguments
                ]
            )
            return replace(node, atom=replace(node.atom, arguments=arguments))
        case tuple() if not isinstance(node, Span):
            return tuple([_inside(part, terms, wildcard) for part in node])
        case _ if isinstance(node, _CONSTANTS) or not is_dataclass(node) or isinstance(node, type):
            return node
        case _:
            parts = {part.name: getattr(node, part.name) for part in fields(node)}
            return replace(node, **{name: _inside(value, terms, wildcard) for name, value in parts.items()})
