"""Parts of a rule replaced: its variables by terms, its wildcards by variables of their own, any node by another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_CONSTANTS: Final = (tree.Integer, tree.Float, tree.String, Span)

_Node = TypeVar("_Node")

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


def mapped(node: _Node, change: Callable[[Any], Any]) -> _Node:
    """A tree with every node changed, from below."""
    given: Any = node
    if isinstance(given, tuple) and not isinstance(given, Span):
        return tuple(mapped(part, change) for part in given)  # type: ignore[return-value]
    if not is_dataclass(given):
        return node
    parts = {part.name: mapped(getattr(given, part.name), change) for part in fields(given)}
    changed: _Node = change(replace(given, **parts))  # type: ignore[type-var]
    return changed
