"""Pass: every expression has a base type, and number, unsigned, float and symbol do not mix.

A value may only go to a column or functor of its own declared type or of a type above it (`SubtypeCheck`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from elastalog.analysis import program as checked
from elastalog.analysis.build_typed import TypedBuilder
from elastalog.analysis.declare_types import BASE_TYPES
from elastalog.analysis.draft import Draft, TypedRule, is_constructor
from elastalog.analysis.findings import Findings, secondary
from elastalog.analysis.graphs import reached
from elastalog.analysis.infer import StructuredTypes, infer, simple_fact
from elastalog.analysis.resolve_names import constructors_of
from elastalog.analysis.subsumptions import MARK as PAIRS
from elastalog.analysis.subsumptions import is_of_pairs
from elastalog.analysis.values import Branch, Record
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span
from elastalog.syntax.tree import nodes_of


def infer_types(draft: Draft, findings: Findings) -> Draft:
    """Give every clause its types, as a fact or a rule; clauses at fault are reported and left out."""
    types = StructuredTypes(draft.types, constructors_of(draft), draft.functors)
    kinds = {
        name: tuple([types.kind(a.type_name) for a in relation.attributes])
        for name, relation in draft.relations.items()
    }
    subtypes = SubtypeCheck(draft, findings)
    facts: list[checked.Fact] = []
    rules: list[TypedRule] = []
    judged = _judged(draft)
    for clause in draft.flat_clauses:
        findings.instance = clause.written.instance
        is_fact = not clause.written.body and clause.head.relation not in judged
        if is_fact:
            fact = simple_fact(clause.head, kinds)
            if fact is not None:
                facts.append(fact)
                continue
        builder = TypedBuilder(draft, kinds, infer(clause, kinds, types), findings)
        rule = builder.rule(clause)
        if rule is None:
            continue
        values = values_of_fact(rule) if is_fact else None
        if values is not None:
            facts.append(checked.Fact(rule.head.relation, values, rule.head.span))
            continue
        rules.append(rule)
        if subtypes.is_needed:
            subtypes.check(rule, builder)
    return replace(draft, facts=tuple(facts), typed_rules=tuple(rules))


def _judged(draft: Draft) -> frozenset[str]:
    """The relations with a choice domain or a subsumption. As in Soufflé, a fact of such a relation in the program text
    is a candidate like a derived one: it becomes a rule without a body."""
    return frozenset(
        name.removesuffix(PAIRS) for name, relation in draft.relations.items() if relation.choices or is_of_pairs(name)
    )


_Source: TypeAlias = tuple[str, Span, tuple[Span, ...]]
"""A type, where it comes from, and the equations it came through."""


class SubtypeCheck:
    """Reports head arguments that a rule fills with values of a type that is not below the declared one.

    A variable has all the types of the positive atoms, and fields of records and branches, that it, or a variable that
    equals it, stands in; it is enough that one of them, or what they have in common, is below the type of the head.
    Constants and results of functors have every type of their base."""

    def __init__(self, draft: Draft, findings: Findings) -> None:
        self.types = draft.types
        self.relations = draft.relations
        self.functors = draft.functors
        self.findings = findings
        self.is_strict = draft.is_strict
        self.is_needed = len(draft.types) > len(BASE_TYPES)
        self._above: dict[str, set[str]] = {}

    def check(self, rule: TypedRule, builder: TypedBuilder) -> None:
        """Reports head arguments of the wrong type, and variables whose types have nothing in common. `builder`: what
        has built the rule."""
        casts = builder.casts
        sources: dict[str, list[_Source]] | None = None
        if self.is_strict:
            sources = self._sources(rule, builder)
            self._check_common(sources)
        places: list[tuple[checked.Expression | checked.Wildcard, str]] = list(self._columns(rule.head))
        if self.functors:
            places += self._arguments_of_functors(rule)
        wanted = [
            (term, self.canonical(type_name))
            for term, type_name in places
            if type(term) is checked.Variable and self.canonical(type_name) not in BASE_TYPES
        ]
        if not wanted:
            return
        sources = self._sources(rule, builder) if sources is None else sources
        for term, head_type in wanted:
            if term.span in casts:
                found: list[_Source] = [(self.canonical(casts[term.span]), term.span, ())]
            else:
                found = sources.get(term.name, [])
            if found and not self._fits([name for name, _, _ in found], head_type):
                self._report(term, head_type, *found[0])

    def _check_common(self, sources: Mapping[str, list[_Source]]) -> None:
        """Reports variables for which no type is below all types of their places."""
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
                "E0312", other[1], None if first[1] == other[1] else first[1],
                *(secondary(span, "made equal here") for span in (*first[2], *other[2])[:8]),
                name=shown, one=first[0], other=other[0],
            )  # fmt: skip

    def _common(self, kinds: Collection[str]) -> bool:
        """Whether some type is below all of these."""
        return any(all(self.is_below(one, other) for other in kinds) for one in kinds) or any(
            all(self.is_below(self.canonical(name), kind) for kind in kinds) for name in self.types
        )

    def _arguments_of_functors(self, rule: TypedRule) -> list[tuple[checked.Expression | checked.Wildcard, str]]:
        """The arguments that a rule passes to the user's functors, with the parameter types."""
        found: list[tuple[checked.Expression | checked.Wildcard, str]] = []
        for apply in nodes_of(checked.Apply, (rule.head, rule.body), closed=(checked.Negation, checked.Aggregation)):
            if apply.functor[0] == "@":
                found += zip(apply.arguments, self.functors[apply.functor[1:]].parameter_types, strict=True)
        return found

    def _columns(self, atom: checked.Atom) -> Iterator[tuple[checked.Variable, str]]:
        """The variables that are arguments of an atom, with the types of their columns."""
        for term, attribute in zip(atom.arguments, self.relations[atom.relation].attributes, strict=True):
            if type(term) is checked.Variable:
                yield term, attribute.type_name

    def _sources(self, rule: TypedRule, builder: TypedBuilder) -> dict[str, list[_Source]]:
        """The types of each variable, where each comes from, and the equations on the way."""
        casts = builder.casts
        found: dict[str, list[_Source]] = {}
        equal: dict[str, list[tuple[str, Span]]] = {}
        literals = list(checked.literals_in(rule.body))
        columns = (column for atom in literals if type(atom) is checked.Atom for column in self._columns(atom))
        for term, type_name in (*builder.parts, *columns):
            if term.span not in casts:
                found.setdefault(term.name, []).append((self.canonical(type_name), term.span, ()))
        for literal in literals:
            if type(literal) is checked.Comparison and literal.operator == "=":
                for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if type(one) is not checked.Variable or one.span in casts or type(other) is not checked.Variable:
                        continue
                    if other.span in casts:
                        cast = self.canonical(casts[other.span]), other.span, ()
                        found.setdefault(one.name, []).append(cast)
                    else:
                        equal.setdefault(one.name, []).append((other.name, literal.span))
        for name in list(equal):
            found.setdefault(name, []).extend(self._through(name, equal, found))
        return found

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

    def _report(self, term: checked.Variable, head_type: str, source: str, place: Span, way: tuple[Span, ...]) -> None:
        labels: list[Label] = [] if place == term.span else [secondary(place, f"it is a {quoted(source)} here")]
        labels += [secondary(span, "and goes on here") for span in reversed(way[:8])]
        report = self.findings.error if self.is_strict else self.findings.warning
        report("E0307", term.span, *labels, source_type=source, type=head_type, name=term.name.partition("@")[0])

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
        """Whether every value of a type is one of the other: it is declared so, or all members of a union are."""
        above = self._all_above(one)
        unions = [name for name in above if self.types[name].members]
        return other in above or any(all(other in self._all_above(m) for m in self._members(n)) for n in unions)

    def _members(self, name: str) -> list[str]:
        """The types that a union consists of, with nested unions expanded."""
        members = self.types[name].members
        return [inner for member in members for inner in self._members(member)] if members else [name]

    def _all_above(self, name: str) -> set[str]:
        """A type and all those above it."""
        known = self._above.get(name)
        if known is None:
            known = self._above[name] = reached([name], lambda one: map(self.canonical, self.types[one].above))
        return known


# --- facts whose values are made of values ---------------------------------------------------------------------------


def values_of_fact(rule: TypedRule) -> tuple[checked.Value, ...] | None:
    """The values of a clause without a body if all are constants, also inside records; None if something is
    computed."""
    known: dict[str, checked.Value] = {}
    for literal in rule.body:
        if type(literal) is not checked.Comparison or type(literal.left) is not checked.Variable:
            return None
        value = _value(literal.right, known)
        if value is None:
            return None
        known[literal.left.name] = value
    values = [_value(term, known) for term in rule.head.arguments]
    found = tuple([value for value in values if value is not None])
    return found if len(found) == len(values) else None


def _value(term: checked.Expression | checked.Wildcard, known: dict[str, checked.Value]) -> checked.Value | None:
    if type(term) is checked.Constant:
        return term.value
    if type(term) is checked.Variable:
        return known.get(term.name)
    if type(term) is not checked.Apply or not is_constructor(term.functor):
        return None
    parts = [_value(argument, known) for argument in term.arguments]
    if any(part is None for part in parts):
        return None
    return build(term, parts)


def build(term: checked.Apply, parts: Sequence[checked.Value | None]) -> checked.Value:
    """The value that a constructor makes of its parts."""
    record = Record(parts, tuple([argument.base for argument in term.arguments]))
    return record if term.functor == "[]" else Branch.of(term.functor[1:], record)
