"""Items of a component with the names that they have in one of its instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_PLAIN: Final = frozenset((tree.Variable, tree.Wildcard, tree.Integer, tree.Float, tree.String))
"""Terms that name no relation and no type."""

Rename = Callable[[str], str]


class Renamer:
    """Renames the relations and types that items name. Nodes that name none are shared with the component."""

    def __init__(self, relation: Rename, type_name: Rename, instance: tree.Instance) -> None:
        self.relation = relation
        self.type_name = type_name
        self.instance = instance

    def declaration(self, item: tree.RelationDeclaration, name: str) -> tree.RelationDeclaration:
        attributes = tuple([replace(a, type_name=self.type_name(a.type_name)) for a in item.attributes])
        return replace(item, name=name, attributes=attributes, instance=self.instance)

    def type_declaration(self, item: tree.TypeDeclaration, name: str) -> tree.TypeDeclaration:
        renamed: tree.TypeDeclaration = self._types_inside(item)
        return replace(renamed, name=name, instance=self.instance)

    def directive(self, item: tree.Directive) -> tree.Directive:
        return replace(item, relation=self.relation(item.relation), instance=self.instance)

    def clause(self, item: tree.Clause, heads: tuple[tree.Atom, ...]) -> tree.Clause:
        body = tuple([self.literal(literal) for literal in item.body])
        return tree.Clause(tuple([self.atom(head) for head in heads]), body, item.plan, item.span, self.instance)

    def subsumption(self, item: tree.Subsumption) -> tree.Subsumption:
        body = tuple([self.literal(literal) for literal in item.body])
        dominated, dominating = self.atom(item.dominated), self.atom(item.dominating)
        return tree.Subsumption(dominated, dominating, body, item.span, self.instance)

    def literal(self, literal: tree.Literal) -> tree.Literal:
        match literal:
            case tree.Atom():
                return self.atom(literal)
            case tree.Negation():
                return tree.Negation(self.atom(literal.atom), literal.span)
            case tree.Comparison():
                if type(literal.left) in _PLAIN and type(literal.right) in _PLAIN:
                    return literal
                return replace(literal, left=self.term(literal.left), right=self.term(literal.right))
            case tree.Disjunction():
                return replace(
                    literal,
                    alternatives=tuple([tuple([self.literal(x) for x in body]) for body in literal.alternatives]),
                )
            case _:
                return literal

    def atom(self, atom: tree.Atom) -> tree.Atom:
        arguments = atom.arguments
        for term in arguments:
            if type(term) not in _PLAIN:
                arguments = tuple([self.term(term) for term in arguments])
                break
        return tree.Atom(self.relation(atom.relation), arguments, atom.relation_span, atom.span)

    def term(self, term: tree.Term) -> tree.Term:
        if type(term) in _PLAIN:
            return term
        renamed: tree.Term = self._inside(term)
        return renamed

    def _inside(self, node: Any) -> Any:
        """Any node below a term: atoms and types are renamed wherever they stand."""
        if isinstance(node, tree.Atom | tree.Negation | tree.Disjunction):
            return self.literal(node)
        if isinstance(node, Span) or type(node) in _PLAIN:
            return node
        if isinstance(node, tuple):
            return tuple([self._inside(part) for part in node])
        if not is_dataclass(node) or isinstance(node, type):
            return node
        changed = {}
        for part in fields(node):
            value = getattr(node, part.name)
            new = self.type_name(value) if part.name == "type_name" else self._inside(value)
            if new is not value:
                changed[part.name] = new
        return replace(node, **changed) if changed else node

    def _types_inside(self, node: Any) -> Any:
        """A declaration of a type, whatever it is made of: every name of a type in it is renamed."""
        if isinstance(node, Span) or node is None:
            return node
        if isinstance(node, tuple):
            if len(node) == 2 and isinstance(node[0], str) and isinstance(node[1], Span):
                return (self.type_name(node[0]), node[1])
            return tuple([self._types_inside(part) for part in node])
        if not is_dataclass(node) or isinstance(node, type):
            return node
        changed = {
            part.name: self.type_name(value) if part.name == "type_name" else self._types_inside(value)
            for part in fields(node)
            if not isinstance(value := getattr(node, part.name), str) or part.name == "type_name"
        }
        return replace(node, **changed)
