"""Inline relations: their rules take the place of the atoms that use them, and they are gone from the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from elastalog.analysis import inline_faults as faults
from elastalog.analysis.dependencies import Uses, components
from elastalog.analysis.findings import Findings
from elastalog.analysis.substitute import substitute, substitute_term
from elastalog.analysis.variables import variables_of
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.negation import negate
from elastalog.syntax.walk import nodes_of

_Rule = tuple[tree.Atom, tree.Body]


def inline(program: tree.Tree) -> tuple[tree.Tree, tuple[Diagnostic, ...]]:
    """A flat program without its inline relations; what cannot be inlined is reported. Names and numbers of arguments
    have been checked. Variables of a rule that takes the place of an atom get names of their own."""
    findings = Findings(program.source)
    inlined = {item.name: item for item in program.items if type(item) is tree.RelationDeclaration and item.is_inline}
    records = _record_types(program)
    types = {
        name: [a.type_name if a.type_name in records else None for a in item.attributes]
        for name, item in inlined.items()
    }
    rules: dict[str, list[_Rule]] = {name: [] for name in inlined}
    for item in program.items:
        if type(item) is tree.Clause:
            for head in item.heads:
                if head.relation in rules:
                    rules[head.relation].append((head, item.body))
        elif type(item) is tree.Directive and item.relation in inlined:
            faults.has_directive(item, inlined[item.relation], findings)
        elif type(item) is tree.Subsumption and item.dominated.relation in inlined:
            faults.has_subsumption(item, inlined[item.dominated.relation], findings)
    order = _innermost_first(rules, inlined, findings)
    if findings.diagnostics:
        return program, tuple(findings.diagnostics)
    expanded: dict[str, list[_Rule]] = {}
    for name in order:
        inliner = _Inliner(expanded, types, findings)
        expanded[name] = [(head, inliner.body_of(head, body)) for head, body in rules[name]]
    items = tuple(_rewritten(program, inlined, _Inliner(expanded, types, findings)))
    return replace(program, items=items), tuple(findings.diagnostics)


def _innermost_first(
    rules: dict[str, list[_Rule]], inlined: dict[str, tree.RelationDeclaration], findings: Findings
) -> list[str]:
    """The relations in an order in which each uses only earlier ones; cycles are reported."""
    bodies = {name: tuple([body for _, body in own]) for name, own in rules.items()}
    uses: Uses = {
        name: {atom.relation: atom.span for atom in nodes_of(tree.Atom, own) if atom.relation in rules}
        for name, own in bodies.items()
    }
    order: list[str] = []
    for component in components(uses):
        if len(component) > 1 or component[0] in uses[component[0]]:
            members = sorted(component)
            used = {name: uses[name][other] for name in members for other in uses[name] if other in component}
            faults.is_cyclic([inlined[name] for name in members], used, findings)
        order += component
    return order


def _rewritten(
    program: tree.Tree,
    inlined: dict[str, tree.RelationDeclaration],
    inliner: _Inliner,
) -> Iterator[tree.Item]:
    for item in program.items:
        match item:
            case tree.Clause():
                heads = tuple([head for head in item.heads if head.relation not in inlined])
                if heads:
                    yield inliner.clause(replace(item, heads=heads))
            case tree.Subsumption():
                yield inliner.subsumption(item)
            case tree.RelationDeclaration() if item.name in inlined:
                pass
            case _:
                yield item


def _record_types(program: tree.Tree) -> set[str]:
    """The names of types that come down to records."""
    declared = [item for item in program.items if type(item) is tree.TypeDeclaration]
    found = {item.name for item in declared if any(not branch.name for branch in item.branches)}
    size = -1
    while size < len(found):
        size = len(found)
        found.update(item.name for item in declared if any(name in found for name, _ in item.parents))
    return found


class _Inliner:
    """Rewrites one clause."""

    def __init__(
        self, expanded: dict[str, list[_Rule]], types: dict[str, list[str | None]], findings: Findings
    ) -> None:
        self.expanded = expanded
        self.types = types  # of the attributes that are records
        self.findings = findings
        self.used: set[str] = set()
        self.number = 0
        self.aggregate: str | None = None  # the operator of the aggregate at hand

    def clause(self, clause: tree.Clause) -> tree.Clause:
        if not any(atom.relation in self.expanded for atom in nodes_of(tree.Atom, (clause.heads, clause.body))):
            return clause
        self.findings.instance = clause.instance
        body = self.body_of(clause.heads, clause.body)
        heads = tuple([self.head(head) for head in clause.heads])
        return tree.Clause(heads, body, clause.plan, clause.span, clause.instance)

    def subsumption(self, item: tree.Subsumption) -> tree.Subsumption:
        if not any(atom.relation in self.expanded for atom in nodes_of(tree.Atom, item.body)):
            return item
        self.findings.instance = item.instance
        return replace(item, body=self.body_of((item.dominated, item.dominating), item.body))

    def body_of(self, head: object, body: tree.Body) -> tree.Body:
        self.number = 0
        self.used = {variable.name for variable in nodes_of(tree.Variable, (head, body))}
        return self.body(body)

    def head(self, head: tree.Atom) -> tree.Atom:
        return replace(head, arguments=tuple([self.term(term) for term in head.arguments]))

    def body(self, body: tree.Body) -> tree.Body:
        found: list[tree.Literal] = []
        for literal in body:
            match literal:
                case tree.Atom():
                    atom = self.head(literal)
                    found.extend(self.positive(atom) if atom.relation in self.expanded else (atom,))
                case tree.Negation():
                    atom = self.head(literal.atom)
                    is_inline = atom.relation in self.expanded
                    found.extend(self.negative(atom, literal.span) if is_inline else (replace(literal, atom=atom),))
                case tree.Comparison():
                    found.append(replace(literal, left=self.term(literal.left), right=self.term(literal.right)))
                case tree.Disjunction():
                    found.append(replace(literal, alternatives=tuple([self.body(b) for b in literal.alternatives])))
                case tree.Truth():
                    found.append(literal)
        return tuple(found)

    def term(self, term: Any) -> Any:
        """A term, and what it is made of, with the bodies of its aggregates rewritten."""
        if isinstance(term, tree.Aggregate):
            around, self.aggregate = self.aggregate, term.operator
            rewritten = replace(term, target=self.term(term.target), body=self.body(term.body))
            self.aggregate = around
            return rewritten
        if isinstance(term, Span) or not (isinstance(term, tuple) or is_dataclass(term)):
            return term
        if isinstance(term, tuple):
            return tuple([self.term(part) for part in term])
        if not any(True for _ in nodes_of(tree.Aggregate, term)):
            return term
        return replace(term, **{part.name: self.term(getattr(term, part.name)) for part in fields(term)})  # type: ignore[type-var]

    # --- one atom --------------------------------------------------------------------------------------------------

    def positive(self, atom: tree.Atom) -> tree.Body:
        alternatives = [self.instance(atom, head, body) or (_true(atom),) for head, body in self.rules(atom)]
        if not alternatives:
            return (tree.Truth(False, atom.span),)
        return alternatives[0] if len(alternatives) == 1 else (tree.Disjunction(tuple(alternatives), atom.span),)

    def negative(self, atom: tree.Atom, span: Span) -> tree.Body:
        found: list[tree.Literal] = []
        for head, body in self.rules(atom):
            found.extend(negate(self.negated_instance(atom, head, body), span))
        return tuple(found) or (tree.Truth(True, span),)

    def rules(self, atom: tree.Atom) -> list[_Rule]:
        return self.expanded[atom.relation]

    def typed(self, atom: tree.Atom) -> list[tree.Term]:
        """The arguments of an atom, those that are records with their types."""
        return [
            term if name is None or type(term) is tree.Wildcard else tree.Cast(term, name, term.span, term.span)
            for term, name in zip(atom.arguments, self.types[atom.relation], strict=True)
        ]

    def instance(self, atom: tree.Atom, head: tree.Atom, body: tree.Body) -> tree.Body:
        """What makes a rule derive an atom. Nothing but the attribute may tell of which type a record is."""
        terms: dict[str, tree.Term] = {}
        equal: list[tree.Literal] = []
        waiting: list[tuple[tree.Term, tree.Term]] = []
        for argument, given, wanted in zip(atom.arguments, self.typed(atom), head.arguments, strict=True):
            if type(wanted) is not tree.Variable or wanted.name in terms:
                if type(given) is not tree.Wildcard:
                    waiting.append((given, wanted))
            elif isinstance(argument, tree.Variable | tree.Integer | tree.Float | tree.String):
                terms[wanted.name] = given
            else:
                variable = terms[wanted.name] = self.fresh(wanted.name, given.span)
                if type(given) is not tree.Wildcard:
                    meant = substitute_term(given, {}, self.fresh)  # a `_` inside may not stand in a comparison
                    equal.append(tree.Comparison("=", variable, meant, given.span, given.span))
        own = [v for v in nodes_of(tree.Variable, (head, body)) if v.name not in terms]
        if self.aggregate not in (None, "min", "max") and (own or any(True for _ in nodes_of(tree.Wildcard, body))):
            faults.changes_aggregate(atom, self.aggregate, head, self.findings)
        for variable in own:
            if variable.name not in terms:
                terms[variable.name] = self.fresh(variable.name, variable.span)
        for given, wanted in waiting:
            meant = substitute_term(wanted, terms, self.fresh)
            equal.append(tree.Comparison("=", given, meant, given.span, given.span))
        return (*equal, *substitute(body, terms, self.fresh))

    def negated_instance(self, atom: tree.Atom, head: tree.Atom, body: tree.Body) -> tree.Body:
        """Like `instance`, to be negated: no variable may be left that is the rule's own, unless it is like a `_`."""
        terms: dict[str, tree.Term] = {}
        equal: list[tree.Literal] = []
        for given, wanted in zip(self.typed(atom), head.arguments, strict=True):
            if type(wanted) is tree.Variable and wanted.name not in terms:
                terms[wanted.name] = given
            elif type(given) is not tree.Wildcard:
                meant = substitute_term(wanted, terms, _wildcard)
                equal.append(tree.Comparison("=", given, meant, given.span, given.span))
        outside = Counter(v.name for v in variables_of(body, is_deep=False))
        alone = {
            term.name
            for literal in body
            if type(literal) is tree.Atom
            for term in literal.arguments
            if type(term) is tree.Variable and outside[term.name] == 1
        }
        for name in outside:
            if name not in terms or type(terms[name]) is tree.Wildcard:
                if name not in alone:
                    faults.negated_with_own(atom, head, name, self.findings)
                terms[name] = tree.Wildcard(atom.span)
        for variable in nodes_of(tree.Variable, body):  # those inside aggregates
            if variable.name not in terms:
                terms[variable.name] = self.fresh(variable.name, variable.span)
        return (*equal, *substitute(body, terms, _wildcard))

    def fresh(self, name: str, span: Span) -> tree.Variable:
        """A variable with a name that the clause does not use. It begins with `_`, so that it may occur only once."""
        stem = name.lstrip("_?") or "any"
        while True:
            self.number += 1
            new = f"_{stem}_{self.number}"
            if new not in self.used:
                self.used.add(new)
                return tree.Variable(new, span)


def _true(atom: tree.Atom) -> tree.Truth:
    return tree.Truth(True, atom.span)


def _wildcard(name: str, span: Span) -> tree.Wildcard:
    return tree.Wildcard(span)
