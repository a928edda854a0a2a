"""Declared subtypes: a value may go to a column or functor of its own type or of one above it, nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from elastalog.analysis.declare_types import BASE_TYPES
from elastalog.analysis.draft import Draft, TypedRule
from elastalog.analysis.findings import Findings, primary, quoted, secondary
from elastalog.analysis.program import Apply, Atom, Comparison, Expression, Variable, Wildcard
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.source import Span

_Source: TypeAlias = tuple[str, Span, tuple[Span, ...]]
"""A type, where it comes from, and the equations it came through."""


class SubtypeCheck:
    """Reports head arguments that a rule fills with values of a type that is not below the declared one.

    A variable has all the types of the positive atoms that it, or a variable that equals it, stands in; it is enough
    that one of them, or what they have in common, is below the type of the head. Constants and results of functors have
    every type of their base."""

    def __init__(self, draft: Draft, findings: Findings) -> None:
        self.types = draft.types
        self.relations = draft.relations
        self.functors = draft.functors
        self.findings = findings
        self.is_strict = draft.is_strict
        self.is_needed = len(draft.types) > len(BASE_TYPES)
        self._above: dict[str, frozenset[str]] = {}
        self._members: dict[str, list[str]] = {}
        for name, meaning in draft.types.items():
            for above in meaning.above:
                self._members.setdefault(self.canonical(above), []).append(name)

    def check(self, rule: TypedRule, casts: Mapping[Span, str]) -> None:
        """Report the arguments of the head at fault, and variables of types that have nothing in common. `casts`: the
        types of the occurrences that are casts."""
        sources: dict[str, list[_Source]] | None = None
        if self.is_strict and self._may_clash(rule):
            sources = self._sources(rule, casts)
            self._check_common(sources)
        attributes = self.relations[rule.head.relation].attributes
        places = [(term, attribute.type_name) for term, attribute in zip(rule.head.arguments, attributes, strict=True)]
        if self.functors:
            places += self._arguments_of_functors(rule)
        wanted = [
            (term, self.canonical(type_name))
            for term, type_name in places
            if type(term) is Variable and self.canonical(type_name) not in BASE_TYPES
        ]
        if not wanted:
            return
        sources = self._sources(rule, casts) if sources is None else sources
        for term, head_type in wanted:
            if term.span in casts:
                found: list[_Source] = [(self.canonical(casts[term.span]), term.span, ())]
            else:
                found = sources.get(term.name, [])
            if found and not self._fits([name for name, _, _ in found], head_type):
                self._report(term, head_type, *found[0])

    def _may_clash(self, rule: TypedRule) -> bool:
        """Whether two declared types meet in the body, which is seldom: a quick look before the long one."""
        types: dict[str, str] = {}
        for literal in rule.body:
            if type(literal) is Atom:
                attributes = self.relations[literal.relation].attributes
                for term, attribute in zip(literal.arguments, attributes, strict=True):
                    if type(term) is not Variable or attribute.type_name in BASE_TYPES:
                        continue
                    if types.setdefault(term.name, attribute.type_name) != attribute.type_name:
                        return True
            elif type(literal) is Comparison and type(literal.left) is type(literal.right) is Variable:
                return True
        return False

    def _check_common(self, sources: Mapping[str, list[_Source]]) -> None:
        """Every variable has a type: one that is below all those of its places."""
        reported: set[frozenset[Span]] = set()
        for name, found in sources.items():
            kinds = {kind for kind, _, _ in found if kind not in BASE_TYPES}
            places = frozenset(place for _, place, _ in found)
            if len(kinds) < 2 or places in reported or self._common(kinds):
                continue
            reported.add(places)
            first = found[0]
            other = next((s for s in found if not self._common({first[0], s[0]})), found[-1])
            shown = name.partition("@")[0]
            self.findings.error(
                "E0312",
                f"{quoted(shown)} would be a {quoted(first[0])} and a {quoted(other[0])}",
                primary(other[1], f"a {quoted(other[0])} here"),
                *([] if first[1] == other[1] else [secondary(first[1], f"a {quoted(first[0])} here")]),
                *(secondary(span, "made equal here") for span in (*first[2], *other[2])[:8]),
                note="no declared type is below both",
                advice=f"write `as({shown}, {first[0]})` where it is taken for one, or declare a type for both",
            )

    def _common(self, kinds: Collection[str]) -> bool:
        """Whether a type is below all of these."""
        return any(all(self.is_below(one, other) for other in kinds) for one in kinds) or any(
            all(self.is_below(self.canonical(name), kind) for kind in kinds) for name in self.types
        )

    def _arguments_of_functors(self, rule: TypedRule) -> list[tuple[Expression | Wildcard, str]]:
        """What a rule gives to functors of the user, and the types that these take."""
        pending: list[Expression | Wildcard] = list(rule.head.arguments)
        for literal in rule.body:
            if type(literal) is Atom:
                pending += literal.arguments
            elif type(literal) is Comparison:
                pending += (literal.left, literal.right)
        found: list[tuple[Expression | Wildcard, str]] = []
        while pending:
            term = pending.pop()
            if type(term) is Apply:
                pending += term.arguments
                if term.functor[0] == "@":
                    types = self.functors[term.functor[1:]].parameter_types
                    found += zip(term.arguments, types, strict=True)
        return found

    def _sources(self, rule: TypedRule, casts: Mapping[Span, str]) -> dict[str, list[_Source]]:
        """The types of each variable, where they come from, and the equations they came through."""
        found: dict[str, list[_Source]] = {}
        equal: dict[str, list[tuple[str, Span]]] = {}
        for literal in rule.body:
            if type(literal) is Atom:
                attributes = self.relations[literal.relation].attributes
                for term, attribute in zip(literal.arguments, attributes, strict=True):
                    if type(term) is Variable and term.span not in casts:
                        found.setdefault(term.name, []).append((self.canonical(attribute.type_name), term.span, ()))
            elif type(literal) is Comparison and literal.operator == "=":
                for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if type(one) is Variable and one.span not in casts:
                        self._equate(one.name, other, literal.span, casts, found, equal)
        for name in list(equal):
            found.setdefault(name, []).extend(self._through(name, equal, found))
        return found

    def _equate(
        self,
        name: str,
        other: Expression | Wildcard,
        span: Span,
        casts: Mapping[Span, str],
        found: dict[str, list[_Source]],
        equal: dict[str, list[tuple[str, Span]]],
    ) -> None:
        if type(other) is Variable:
            if other.span in casts:
                found.setdefault(name, []).append((self.canonical(casts[other.span]), other.span, ()))
            else:
                equal.setdefault(name, []).append((other.name, span))

    def _through(
        self,
        name: str,
        equal: dict[str, list[tuple[str, Span]]],
        found: dict[str, list[_Source]],
    ) -> list[_Source]:
        """The types of the variables that equal one, directly or through others."""
        seen = {name}
        pending: list[tuple[str, tuple[Span, ...]]] = [(name, ())]
        types: list[_Source] = []
        while pending:
            current, way = pending.pop(0)
            for other, span in equal.get(current, ()):
                if other not in seen:
                    seen.add(other)
                    further = (*way, span)
                    pending.append((other, further))
                    types += [(kind, place, further) for kind, place, before in found.get(other, ()) if not before]
        return types

    def _report(self, term: Variable, head_type: str, source: str, place: Span, way: tuple[Span, ...]) -> None:
        labels: list[Label] = [] if place == term.span else [secondary(place, f"it is a {quoted(source)} here")]
        labels += [secondary(span, "and goes on here") for span in reversed(way[:8])]
        report = self.findings.error if self.is_strict else self.findings.warning
        report(
            "E0307",
            f"a {quoted(source)} cannot go into a column of type {quoted(head_type)}",
            primary(term.span, f"declared as {quoted(head_type)}"),
            *labels,
            note=f"not every {quoted(source)} is a {quoted(head_type)}",
            advice=f"declare the column as {quoted(source)}, or write `as({term.name.partition('@')[0]}, {head_type})`",
        )

    # --- the order of types ----------------------------------------------------------------------------------------

    def canonical(self, name: str) -> str:
        """The type that an alias stands for."""
        return self.types[name].same_as or name

    def _fits(self, sources: list[str], wanted: str) -> bool:
        if any(self.is_below(source, wanted) for source in sources):
            return True
        if len(set(sources)) < 2:
            return False
        common = [n for n in self.types if all(self.is_below(self.canonical(n), source) for source in sources)]
        # Types that have nothing in common meet only in comparisons; nothing can be said of the values.
        return all(self.is_below(self.canonical(name), wanted) for name in common)

    def is_below(self, one: str, other: str) -> bool:
        """Whether every value of a type is one of the other."""
        if one == other or other in self._all_above(one):
            return True
        meaning = self.types[one]
        is_union = one not in BASE_TYPES and not meaning.above and self._members.get(one)
        if not is_union:
            return False
        return meaning.base.value == other or all(self.is_below(self.canonical(m), other) for m in self._members[one])

    def _all_above(self, name: str) -> frozenset[str]:
        known = self._above.get(name)
        if known is None:
            seen: set[str] = set()
            pending = [name]
            while pending:
                for above in self.types[pending.pop()].above:
                    above = self.canonical(above)
                    if above not in seen:
                        seen.add(above)
                        pending.append(above)
            known = self._above[name] = frozenset(seen)
        return known
