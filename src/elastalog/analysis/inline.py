"""Inline relations: their rules replace the atoms that use them, and the relations disappear from the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from elastalog.analysis.declare_types import types_below
from elastalog.analysis.findings import Findings, secondary
from elastalog.analysis.graphs import Uses, components
from elastalog.analysis.negation import alternatives_of, is_partial, negate, none_of, without_groups
from elastalog.analysis.program import EQUIVALENCE
from elastalog.analysis.scopes import with_witnesses
from elastalog.analysis.variables import substitute, variables_of
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.keywords import AUTOINC
from elastalog.syntax.tree import nodes_of, with_parts

_Rule = tuple[tree.Atom, tree.Body]


def inline(program: tree.Tree) -> tuple[tree.Tree, tuple[Diagnostic, ...]]:
    """A flat program without its inline relations; what cannot be inlined is reported. Names and numbers of arguments
    have been checked. The variables of a rule that replaces an atom get new names."""
    findings = Findings(program.source)
    inlined = {item.name: item for item in program.items if type(item) is tree.RelationDeclaration and item.is_inline}
    declared_types = (item for item in program.items if type(item) is tree.TypeDeclaration)
    records = types_below(program, [t.name for t in declared_types if any(not branch.name for branch in t.branches)])
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
            _report_need_of_facts(inlined[item.relation], item.span, f"`.{item.kind}`", item.instance, findings)
        elif type(item) is tree.Subsumption and item.dominated.relation in inlined:
            _report_need_of_facts(inlined[item.dominated.relation], item.span, "a subsumption", item.instance, findings)
    for declared in inlined.values():
        kinds = [("`eqrel`", span)] if (span := declared.qualifier(EQUIVALENCE)) is not None else []
        kinds += [("a column that improves", each.type_span) for each in declared.attributes if each.improves]
        for what, span in (*kinds, *(("a choice domain", span) for key in declared.choices for _, span in key)):
            _report_need_of_facts(declared, span, what, declared.instance, findings)
        for call in (c for c in nodes_of(tree.Call, tuple(rules[declared.name])) if c.functor == AUTOINC):
            _report_need_of_facts(declared, call.span, "`autoinc`", declared.instance, findings)
    order = _innermost_first(rules, inlined, findings)
    if findings.diagnostics:
        return program, tuple(findings.diagnostics)
    expanded: dict[str, list[_Rule]] = {}
    for name in order:
        inliner = _Inliner(expanded, types, findings)
        expanded[name] = [rule for own in rules[name] for rule in inliner.alternatives(*own)]
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
            _report_cycle([inlined[name] for name in members], used, findings)
        order += component
    return order


def _rewritten(
    program: tree.Tree, inlined: dict[str, tree.RelationDeclaration], inliner: _Inliner
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


@dataclass(slots=True, eq=False)
class _Inliner:
    """Rewrites one clause."""

    expanded: dict[str, list[_Rule]]
    types: dict[str, list[str | None]]  # of the attributes that are records
    findings: Findings
    used: set[str] = field(default_factory=set)
    number: int = 0
    aggregate: str | None = None  # what counts derivations: the aggregate at hand, or `autoinc`

    def clause(self, clause: tree.Clause) -> tree.Clause:
        if not any(atom.relation in self.expanded for atom in nodes_of(tree.Atom, (clause.heads, clause.body))):
            return clause
        self.findings.instance = clause.instance
        is_numbered = any(call.functor == AUTOINC for call in nodes_of(tree.Call, (clause.heads, clause.body)))
        with self.inside(AUTOINC if is_numbered else None):
            self.begin(clause.heads, clause.body)
            body = self.body(clause.body)
            heads = tuple([self.head(head) for head in clause.heads])
        return tree.Clause(heads, body, clause.plan, clause.span, clause.instance)

    def subsumption(self, item: tree.Subsumption) -> tree.Subsumption:
        if not any(atom.relation in self.expanded for atom in nodes_of(tree.Atom, item.body)):
            return item
        self.findings.instance = item.instance
        self.begin((item.dominated, item.dominating), item.body)
        return replace(item, body=self.body(item.body))

    def begin(self, head: object, body: tree.Body) -> None:
        self.number = 0
        self.used = {variable.name for variable in nodes_of(tree.Variable, (head, body))}

    def alternatives(self, head: tree.Atom, body: tree.Body) -> Iterator[_Rule]:
        """A rule in the form in which others use it. Witnesses and groups inside it do not depend on the rules that use
        it."""
        self.begin(head, body)
        if not any(aggregate.operator in ("min", "max") for aggregate in nodes_of(tree.Aggregate, body)):
            yield head, self.body(body)
            return
        for alternative in alternatives_of(body, 1, head.span, self.findings):
            visible = {variable.name for variable in variables_of((head, *alternative), is_deep=False)}
            yield head, self.body(tuple(with_witnesses(alternative, visible, self.fresh)))

    def head(self, head: tree.Atom) -> tree.Atom:
        return replace(head, arguments=tuple([self.term(term) for term in head.arguments]))

    def body(self, body: tree.Body) -> tree.Body:
        found: list[tree.Literal] = []
        for literal in without_groups(body):
            match literal:
                case tree.Atom():
                    atom = self.head(literal)
                    found.extend(self.positive(atom) if atom.relation in self.expanded else (atom,))
                case tree.Negation():
                    atom = self.head(literal.atom)
                    is_inline = atom.relation in self.expanded
                    found.extend(self.negative(atom, literal.span) if is_inline else (replace(literal, atom=atom),))
                case tree.Comparison(left=tree.Integer(value=0), right=tree.Aggregate(operator="count") as over):
                    with self.inside(None):  # whether there are any, however many
                        found.append(replace(literal, right=replace(over, body=self.body(over.body))))
                case tree.Comparison():
                    found.append(self.term(literal))
                case tree.Disjunction():
                    found.append(replace(literal, alternatives=tuple([self.body(b) for b in literal.alternatives])))
                case tree.Truth() | tree.NegatedGroup():  # of these there are none left
                    found.append(literal)
        return tuple(found)

    def term(self, term: Any) -> Any:
        """A term, and what it is made of, with the bodies of its aggregates rewritten."""
        if isinstance(term, tree.Aggregate):
            with self.inside(term.operator):
                return replace(term, target=self.term(term.target), body=self.body(term.body))
        return with_parts(term, self.term)

    @contextmanager
    def inside(self, operator: str | None) -> Iterator[None]:
        """A block that rewrites the inside of an aggregate; None is for one that only asks whether it has members."""
        around, self.aggregate = self.aggregate, operator
        yield
        self.aggregate = around

    # --- one atom --------------------------------------------------------------------------------------------------

    def positive(self, atom: tree.Atom) -> tree.Body:
        alternatives = [
            self.instance(atom, head, body) or (tree.Truth(True, atom.span),)
            for head, body in self.expanded[atom.relation]
        ]
        if not alternatives:
            return (tree.Truth(False, atom.span),)
        return alternatives[0] if len(alternatives) == 1 else (tree.Disjunction(tuple(alternatives), atom.span),)

    def negative(self, atom: tree.Atom, span: Span) -> tree.Body:
        found: list[tree.Literal] = []
        for head, body in self.expanded[atom.relation]:
            instance = self.negated_instance(atom, head, body)
            if instance is not None:
                found.extend(negate(instance, span))
                continue
            with self.inside(None):
                found.append(none_of(self.instance(atom, head, body), span))
        return tuple(found) or (tree.Truth(True, span),)

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
                    meant = substitute(given, {}, self.fresh)  # a `_` inside may not stand in a comparison
                    equal.append(tree.Comparison("=", variable, meant, given.span, given.span))
        own = [v for v in nodes_of(tree.Variable, (head, body)) if v.name not in terms]
        counts = own or any(True for _ in nodes_of(tree.Wildcard, body))
        counts = counts or (self.aggregate == AUTOINC and len(self.expanded[atom.relation]) > 1)
        if self.aggregate not in (None, "min", "max") and counts:
            self.findings.error(
                "E0226.aggregate", atom.span, head.span, name=atom.relation, operator=self.aggregate,
                does="numbers" if self.aggregate == AUTOINC else "ranges over",
            )  # fmt: skip
        for variable in own:
            if variable.name not in terms:
                terms[variable.name] = self.fresh(variable.name, variable.span)
        for given, wanted in waiting:
            meant = substitute(wanted, terms, self.fresh)
            equal.append(tree.Comparison("=", given, meant, given.span, given.span))
        return (*equal, *substitute(body, terms, self.fresh))

    def negated_instance(self, atom: tree.Atom, head: tree.Atom, body: tree.Body) -> tree.Body | None:
        """Like `instance`, to be negated literal by literal: None if a variable is left that is the rule's own, unless
        it is like a `_`, or if an argument may have no value."""
        terms: dict[str, tree.Term] = {}
        equal: list[tree.Literal] = []
        for given, wanted in zip(self.typed(atom), head.arguments, strict=True):
            if is_partial(given):
                return None
            if type(wanted) is tree.Variable and wanted.name not in terms:
                terms[wanted.name] = given
            elif type(given) is not tree.Wildcard:
                meant = substitute(wanted, terms)
                equal.append(tree.Comparison("=", given, meant, given.span, given.span))
        times = Counter(v.name for v in nodes_of(tree.Variable, (head, body)))
        alone = {
            term.name
            for literal in body
            if type(literal) is tree.Atom
            for term in literal.arguments
            if type(term) is tree.Variable and times[term.name] == 1
        }
        for name in {v.name: None for v in variables_of((head, *body), is_deep=False)}:
            if name not in terms or type(terms[name]) is tree.Wildcard:
                if name not in alone:
                    return None
                terms[name] = tree.Wildcard(atom.span)
        for variable in nodes_of(tree.Variable, body):  # those inside aggregates
            if variable.name not in terms:
                terms[variable.name] = self.fresh(variable.name, variable.span)
        return (*equal, *substitute(body, terms))

    def fresh(self, name: str, span: Span) -> tree.Variable:
        """A variable with a name that the clause does not use. It begins with `_`, so that it may occur only once."""
        stem = name.lstrip("_?") or "any"
        while True:
            self.number += 1
            new = f"_{stem}_{self.number}"
            if new not in self.used:
                self.used.add(new)
                return tree.Variable(new, span)


# --- reports ---------------------------------------------------------------------------------------------------------


def _report_need_of_facts(
    declared: tree.RelationDeclaration, span: Span, what: str, instance: tree.Instance | None, findings: Findings
) -> None:
    """E0226."""
    findings.instance = instance
    findings.error("E0226", span, declared.qualifier("inline"), name=declared.name, what=what)


def _report_cycle(members: list[tree.RelationDeclaration], uses: Mapping[str, Span], findings: Findings) -> None:
    """E0226."""
    first = members[0]
    findings.instance = first.instance
    findings.error(
        "E0226.itself" if len(members) == 1 else "E0226.circle", first.qualifier("inline"),
        *(secondary(span, f"{quoted(name)} uses it here") for name, span in list(uses.items())[:8]),
        name=first.name, names=", ".join(quoted(member.name) for member in members[:8]),
    )  # fmt: skip
