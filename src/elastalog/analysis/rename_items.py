"""Items of a component with the names that they have in one of its instances."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from elastalog.analysis.component_names import Names
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_PLAIN: Final = frozenset((tree.Variable, tree.Wildcard, tree.Integer, tree.Float, tree.String))
"""Terms that name no relation and no type."""


class Renamer:
    """Renames the relations and types that items name. Nodes that name none are shared with the component."""

    def __init__(self, relations: Names, types: Names, instance: tree.Instance) -> None:
        self.relations = relations
        self.types = types
        self.instance = instance

    def declaration(self, item: tree.RelationDeclaration, name: str) -> tree.RelationDeclaration:
        attributes = item.attributes
        for attribute in attributes:
            if self.types[attribute.type_name] != attribute.type_name:
                attributes = tuple([self.attribute(each) for each in attributes])
                break
        return tree.RelationDeclaration(
            name, attributes, item.qualifiers, item.name_span, item.span, self.instance, item.choices
        )

    def attribute(self, attribute: tree.Attribute) -> tree.Attribute:
        name = self.types[attribute.type_name]
        return replace(attribute, type_name=name)

    def type_declaration(self, item: tree.TypeDeclaration, name: str) -> tree.TypeDeclaration:
        renamed: tree.TypeDeclaration = self._types_inside(item)
        return replace(renamed, name=name, instance=self.instance)

    def directive(self, item: tree.Directive) -> tree.Directive:
        return replace(item, relation=self.relations[item.relation], instance=self.instance)

    def clause(self, item: tree.Clause, heads: tuple[tree.Atom, ...]) -> tree.Clause:
        body = tuple([self.literal(literal) for literal in item.body])
        return tree.Clause(tuple([self.atom(head) for head in heads]), body, item.plan, item.span, self.instance)

    def subsumption(self, item: tree.Subsumption) -> tree.Subsumption:
        body = tuple([self.literal(literal) for literal in item.body])
        dominated, dominating = self.atom(item.dominated), self.atom(item.dominating)
        return tree.Subsumption(dominated, dominating, body, item.span, self.instance)

    def lattice(self, item: tree.Lattice) -> tree.Lattice:
        operators = tuple([(name, self.term(term), span) for name, term, span in item.operators])
        return replace(item, type_name=self.types[item.type_name], operators=operators, instance=self.instance)

    def literal(self, literal: tree.Literal) -> tree.Literal:
        if type(literal) is tree.Atom:
            return self.atom(literal)
        match literal:
            case tree.Negation():
                return tree.Negation(self.atom(literal.atom), literal.span)
            case tree.Comparison():
                if type(literal.left) in _PLAIN and type(literal.right) in _PLAIN:
                    return literal
                left, right = self.term(literal.left), self.term(literal.right)
                return tree.Comparison(literal.operator, left, right, literal.operator_span, literal.span)
            case tree.NegatedGroup():
                return tree.NegatedGroup(tuple([self.literal(x) for x in literal.body]), literal.span)
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
        return tree.Atom(self.relations[atom.relation], arguments, atom.relation_span, atom.span)

    def term(self, term: tree.Term) -> tree.Term:
        match term:
            case tree.Call():
                arguments = tuple([self.term(argument) for argument in term.arguments])
                return tree.Call(term.functor, arguments, term.functor_span, term.span)
            case tree.Cast():
                return tree.Cast(self.term(term.term), self.types[term.type_name], term.type_span, term.span)
            case tree.Aggregate():
                target = None if term.target is None else self.term(term.target)
                body = tuple([self.literal(literal) for literal in term.body])
                return tree.Aggregate(term.operator, target, body, term.span)
            case _:
                return term

    def _types_inside(self, node: Any) -> Any:
        """A declaration of a type, whatever it is made of: every name of a type in it is renamed."""
        if isinstance(node, Span) or node is None:
            return node
        if isinstance(node, tuple):
            if len(node) == 2 and isinstance(node[0], str) and isinstance(node[1], Span):
                return (self.types[node[0]], node[1])
            return tuple([self._types_inside(part) for part in node])
        if not is_dataclass(node) or isinstance(node, type):
            return node
        changed = {
            part.name: self.types[value] if part.name == "type_name" else self._types_inside(value)
            for part in fields(node)
            if not isinstance(value := getattr(node, part.name), str) or part.name == "type_name"
        }
        return replace(node, **changed)
