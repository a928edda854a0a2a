"""Pass: the functors that users implement."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from elastalog.analysis.declare_types import report_unknown_type
from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.findings import Findings, primary, quoted
from elastalog.analysis.program import Base, UserFunctor
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import FunctorDeclaration


def declare_functors(draft: Draft) -> Outcome:
    """Resolve the `.functor` declarations: each once, and only if stateful of values that are made of values."""
    findings = Findings(draft.tree.source)
    declared: dict[str, UserFunctor] = {}
    for item in draft.tree.items:
        if type(item) is not FunctorDeclaration:
            continue
        if item.name in declared:
            findings.declared_twice("E0243", f"functor `@{item.name}`", item.name_span, declared[item.name].span)
            continue
        stateful = item.is_stateful
        parameters = tuple([_base(p.type_name, p.type_span, stateful, draft, findings) for p in item.parameters])
        result = _base(*item.result, stateful, draft, findings)
        declared[item.name] = UserFunctor(
            item.name,
            parameters,
            result,
            stateful,
            item.name_span,
            tuple([p.type_name for p in item.parameters]),
            item.result[0],
        )
    return replace(draft, functors=MappingProxyType(declared)), findings.diagnostics


def _base(name: str, span: Span, is_stateful: bool, draft: Draft, findings: Findings) -> Base:
    meaning = draft.types.get(name)
    if meaning is None:
        report_unknown_type(name, span, list(draft.types), findings)
        return Base.NUMBER
    if meaning.base is Base.RECORD and not is_stateful:
        findings.error(
            "E0244",
            f"a functor does not take or give values of type {quoted(name)}",
            primary(span, "made of parts"),
            note="only a stateful functor knows records; others are functions of numbers and texts",
            advice="declare it `stateful`, or take the value apart in the rule and give the functor its parts",
        )
        return Base.NUMBER
    return meaning.base
