"""Pass: every expression has a base type, and number, unsigned, float and symbol do not mix."""

from __future__ import annotations

from dataclasses import replace

from elastalog.analysis.build_typed import TypedBuilder
from elastalog.analysis.draft import Draft, Outcome, TypedRule
from elastalog.analysis.findings import Findings
from elastalog.analysis.infer import StructuredTypes, infer
from elastalog.analysis.program import Fact
from elastalog.analysis.resolve_names import constructors_of
from elastalog.analysis.simple_types import simple_fact, simple_rule
from elastalog.analysis.subsumptions import MARK as PAIRS
from elastalog.analysis.subsumptions import is_of_pairs
from elastalog.analysis.subtypes import SubtypeCheck
from elastalog.analysis.text_facts import values_of_fact
from elastalog.diagnostics.source import Span


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
        if is_fact and clause.is_flat:
            fact = simple_fact(clause.head, kinds)
            if fact is not None:
                facts.append(fact)
                continue
        rule = simple_rule(clause, kinds) if clause.is_flat else None
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
