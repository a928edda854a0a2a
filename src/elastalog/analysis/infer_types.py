"""Pass: every expression has a base type, and number, unsigned, float and symbol do not mix."""

from __future__ import annotations

from dataclasses import replace

from elastalog.analysis.build_typed import TypedBuilder
from elastalog.analysis.constants import constant_value
from elastalog.analysis.draft import Draft, FlatClause, Outcome, TypedRule
from elastalog.analysis.findings import Findings
from elastalog.analysis.infer import Kinds, StructuredTypes, infer
from elastalog.analysis.program import Atom, Base, Constant, Expression, Fact, Literal, Negation, Variable, Wildcard
from elastalog.analysis.resolve_names import constructors_of
from elastalog.analysis.structures import Kind, base_of
from elastalog.analysis.subsumptions import MARK as PAIRS
from elastalog.analysis.subsumptions import is_of_pairs
from elastalog.analysis.subtypes import SubtypeCheck
from elastalog.analysis.text_facts import values_of_fact
from elastalog.analysis.variable_names import wildcard_name
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree


def infer_types(draft: Draft) -> Outcome:
    """Give every clause its types, as a fact or a rule; clauses at fault are reported and left out."""
    findings = Findings(draft.tree.source)
    types = StructuredTypes(draft.types, constructors_of(draft), draft.functors)
    kinds = {
        name: tuple([types.kind(a.type_name) for a in relation.attributes])
        for name, relation in draft.relations.items()
    }
    subtypes = SubtypeCheck(draft, findings)
    facts: list[Fact] = []
    rules: list[TypedRule] = []
    judged = _judged(draft)
    for clause in draft.flat_clauses:
        findings.instance = clause.instance
        is_fact = clause.is_fact and clause.head.relation not in judged
        if is_fact and clause.is_plain:
            fact = _plain_fact(clause.head, kinds)
            if fact is not None:
                facts.append(fact)
                continue
        rule = _plain_rule(clause, kinds) if clause.is_plain else None
        casts: dict[Span, str] = {}
        if rule is None:
            builder = TypedBuilder(draft, kinds, types, infer(clause, kinds, types), findings)
            rule = builder.rule(clause)
            casts = builder.casts
        if rule is None:
            continue
        values = values_of_fact(rule) if is_fact else None
        if values is not None:
            facts.append(Fact(rule.head.relation, values, rule.head.span))
            continue
        rules.append(rule)
        if subtypes.is_needed:
            subtypes.check(rule, casts)
    return replace(draft, facts=tuple(facts), typed_rules=tuple(rules)), findings.diagnostics


def _judged(draft: Draft) -> frozenset[str]:
    """The relations with a choice domain or a subsumption. What the text says of them is a candidate like what rules
    derive, as it is to Soufflé: a rule without a body, not a fact that holds whatever there is beside it."""
    return frozenset(
        name.removesuffix(PAIRS) for name, relation in draft.relations.items() if relation.choices or is_of_pairs(name)
    )


def _plain_fact(head: tree.Atom, kinds: Kinds) -> Fact | None:
    """The fact, or None when it is none or at fault."""
    values = []
    for term, kind in zip(head.arguments, kinds[head.relation], strict=True):
        value = constant_value(term, base_of(kind))
        if value is None:
            return None
        values.append(value)
    return Fact(head.relation, tuple(values), head.span)


def _plain_rule(clause: FlatClause, kinds: Kinds) -> TypedRule | None:
    """The rule, or None when its types clash: the slower way then finds out where."""
    known: dict[str, Kind] = {}
    wildcards = 0
    body: list[Literal] = []
    for literal in (*clause.body, clause.head):
        is_negated = type(literal) is tree.Negation
        atom: tree.Atom = literal.atom if is_negated else literal  # type: ignore[union-attr,assignment]  # plain
        arguments: list[Expression | Wildcard] = []
        for term, kind in zip(atom.arguments, kinds[atom.relation], strict=True):
            base = kind if type(kind) is Base else Base.RECORD
            if type(term) is tree.Variable:
                name = term.name
                if known.setdefault(name, kind) is not kind:
                    return None
                arguments.append(Variable(name, base, term.span))
            elif type(term) is tree.Wildcard:
                if is_negated:
                    arguments.append(Wildcard(term.span))
                else:
                    wildcards += 1
                    arguments.append(Variable(wildcard_name(wildcards), base, term.span))
            else:
                value = constant_value(term, base)
                if value is None:
                    return None
                arguments.append(Constant(value, base, term.span))
        typed = Atom(atom.relation, tuple(arguments), atom.span)
        body.append(Negation(typed, literal.span) if is_negated else typed)
    head = body.pop()
    return TypedRule(head, tuple(body), clause.plan, clause.span, clause.instance)  # type: ignore[arg-type]  # the head came last
