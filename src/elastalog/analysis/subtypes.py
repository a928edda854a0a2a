"""Declared subtypes: a head argument should be fed by a type that has to do with its own."""

from __future__ import annotations

from elastalog.analysis.declare_types import BASE_TYPES
from elastalog.analysis.draft import Draft, TypedRule
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.program import Atom, Variable
from elastalog.diagnostics.source import Span


class SubtypeCheck:
    """Warns where a variable of a head comes only from types unrelated to the declared one. Two types are related when
    one is above the other; a base type is related to all of its own."""

    def __init__(self, draft: Draft, findings: Findings) -> None:
        self.types = draft.types
        self.relations = draft.relations
        self.findings = findings
        self.is_needed = len(draft.types) > len(BASE_TYPES)
        self._known: dict[tuple[str, str], bool] = {}

    def check(self, rule: TypedRule) -> None:
        """Report the arguments of the head that are fed by unrelated types only."""
        attributes = self.relations[rule.head.relation].attributes
        wanted = {
            term.name: (self.canonical(attribute.type_name), term.span)
            for term, attribute in zip(rule.head.arguments, attributes, strict=True)
            if type(term) is Variable and self.canonical(attribute.type_name) not in BASE_TYPES
        }
        if not wanted:
            return
        sources: dict[str, list[tuple[str, Span]]] = {}
        for literal in rule.body:
            if type(literal) is Atom:
                for term, attribute in zip(literal.arguments, self.relations[literal.relation].attributes, strict=True):
                    if type(term) is Variable and term.name in wanted:
                        sources.setdefault(term.name, []).append((self.canonical(attribute.type_name), term.span))
        for name, found in sources.items():
            head_type, span = wanted[name]
            if not any(self.are_related(source, head_type) for source, _ in found):
                source, source_span = found[0]
                self.findings.warning(
                    "E0307",
                    f"variable {quoted(name)} goes from type {quoted(source)} to unrelated type {quoted(head_type)}",
                    primary(span, f"declared as {quoted(head_type)}"),
                    secondary(source_span, f"{quoted(source)} here"),
                    advice=f"declare the argument as {quoted(source)}, or one of the types as a subtype of the other",
                )

    def canonical(self, name: str) -> str:
        """The type that an alias stands for."""
        return self.types[name].same_as or name

    def are_related(self, one: str, other: str) -> bool:
        """Whether one of two types is the other or above it."""
        key = (one, other)
        if key not in self._known:
            self._known[key] = one == other or other in self._above(one) or one in self._above(other)
        return self._known[key]

    def _above(self, name: str) -> set[str]:
        seen: set[str] = set()
        pending = [name]
        while pending:
            for above in self.types[pending.pop()].above:
                above = self.canonical(above)
                if above not in seen:
                    seen.add(above)
                    pending.append(above)
        return seen
