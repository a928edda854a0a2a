"""Pass: every variable gets its values from somewhere.

A variable is grounded by a positive atom that has it as an argument; by `v = expression` or `v = range(…)` once the
variables of the right side are grounded; and by `v = aggregate` once the variables shared with the aggregate are. In `v
= [a, b]` the parts are grounded once `v` is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from elastalog.analysis.draft import Draft, TypedRule, is_constructor
from elastalog.analysis.findings import NO_NULL, Findings, secondary
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Base,
    Comparison,
    Literal,
    Negation,
    Variable,
    names_of,
    variables_in,
    variables_of,
)
from elastalog.analysis.variables import is_made_name, written_name
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.source import Span

_MOST_REPORTS: Final = 20  # of one conjunction; each costs a new look at it


def check_grounded(draft: Draft, findings: Findings) -> Draft:
    """Reports every variable that nothing grounds, once per rule, at each place that needs its value."""
    rules = [rule for rule in draft.typed_rules if _RuleGrounder(rule, findings).is_grounded()]
    return replace(draft, typed_rules=tuple(rules))


class _RuleGrounder:
    def __init__(self, rule: TypedRule, findings: Findings) -> None:
        self.rule = rule
        self.findings = findings
        findings.instance = rule.written.instance

    def is_grounded(self) -> bool:
        used = list(variables_in((*self.rule.body, self.rule.head), is_deep=False))
        is_sound = self.check_conjunction(self.rule.body, (), used)
        for literal in self.rule.body:
            if type(literal) is Aggregation:
                is_sound = self.check_aggregation(literal) and is_sound
        return is_sound

    def check_aggregation(self, aggregation: Aggregation) -> bool:
        """Checks the variables inside an aggregate, and its target, which must be grounded inside."""
        is_sound = True
        groups = {group.name for group in aggregation.groups}
        # What a functor of the user folds is built in the body: whether that can be is found there.
        target: tuple[Variable, ...] = ()
        if aggregation.target is not None and aggregation.operator[0] != "@":
            target = tuple(variables_of(aggregation.target))
        target_names = {variable.name for variable in target}
        for body in aggregation.bodies:
            from_inside = ground(body, groups - target_names)
            # In an expression of several, such as `sum z + x`, one may come from outside: it has one value a group.
            outside = () if type(aggregation.target) is Variable else groups
            missing = [variable for variable in target if variable.name not in from_inside.union(outside)]
            if missing:
                is_sound, name = False, written_name(missing[0].name)
                self.findings.error("E0323", missing[0].span, name=name, operator=aggregation.operator)
            given = groups | {variable.name for variable in missing}
            is_sound = self.check_conjunction(body, given, list(variables_in(body, is_deep=False))) and is_sound
            for literal in body:
                if type(literal) is Aggregation:
                    is_sound = self.check_aggregation(literal) and is_sound
            if not is_sound:
                break  # further alternatives would mostly repeat the report
        return is_sound

    def check_conjunction(self, body: Sequence[Literal], given: Iterable[str], used: list[Variable]) -> bool:
        """Reports the variables that have no value, but not those that only wait for one of them."""
        assumed = set(given)
        for _ in range(_MOST_REPORTS):
            grounded = ground(body, assumed)
            missing = [variable for variable in used if variable.name not in grounded]
            if not missing:
                break
            missing.sort(key=lambda variable: (is_made_name(variable.name), variable.span))
            waiting = {defined for literal in body for defined, _ in _definitions(literal)}
            root = next((variable.name for variable in missing if variable.name not in waiting), missing[0].name)
            self.report(root, sorted({variable.span for variable in missing if variable.name == root}), body)
            assumed.add(root)
        return assumed == set(given)

    def report(self, name: str, spans: list[Span], body: Sequence[Literal]) -> None:
        if written_name(name) == "_":
            self.report_wildcard(spans[0], body)
            return
        written = written_name(name)
        note = "a variable gets its values from a positive atom of the body, or from `=` and grounded variables"
        if any(group.name == name for literal in body if type(literal) is Aggregation for group in literal.groups):
            note = f"{quoted(written)} also stands outside the aggregate, which is therefore taken for each value of it"
        every = list(variables_in((self.rule.head, *body), is_deep=True))
        is_text = name[0].islower() and any(v.name == name and v.base is Base.SYMBOL for v in every)
        other = next((v.name for v in every if v.name != name and v.name.lower() == name.lower()), None)
        quotes = f'write `"{written[:60]}"`' if is_text else ""
        self.findings.error(
            "E0320", spans[0], *(secondary(span, "and here") for span in spans[1:8]),
            name=written, note=note, null=NO_NULL if name.lower() == "null" else None,
            other=other and written_name(other), constant=None if self.rule.body else quotes or "write a constant",
            otherwise=f", or {quotes} if it is a string" * bool(quotes)
            + ", or write `_` if its value does not matter" * self.is_only_negated(name),
        )  # fmt: skip

    def report_wildcard(self, span: Span, body: Sequence[Literal]) -> None:
        """Reports a wildcard in a record or branch that is built, not taken apart."""
        advice = "name a variable here and bind it in a positive atom"
        if any(type(literal) is Negation and literal.span.start <= span.start < literal.span.end for literal in body):
            advice = "take the value apart in a rule of its own, and negate what that rule derives"
        self.findings.error("E0321", span, where="a record that is built", advice=advice)

    def is_only_negated(self, name: str) -> bool:
        occurrences = [v.name for v in variables_in((*self.rule.body, self.rule.head), is_deep=False)]
        if occurrences.count(name) != 1:
            return False
        negations = [literal.atom.arguments for literal in self.rule.body if type(literal) is Negation]
        return any(type(term) is Variable and term.name == name for terms in negations for term in terms)


def ground(body: Sequence[Literal], given: Iterable[str]) -> set[str]:
    """The names of the variables that a conjunction grounds, together with those given."""
    grounded = set(given)
    waiting: dict[str, list[_Definition]] = {}
    ready: list[str] = []
    for literal in body:
        if type(literal) is Atom:
            grounded.update([term.name for term in literal.arguments if type(term) is Variable])
    for literal in body:
        for defined, missing in _definitions(literal):
            missing -= grounded
            if not missing:
                ready.append(defined)
            for name in missing:
                waiting.setdefault(name, []).append((defined, missing))
    while ready:
        known = ready.pop()
        if known not in grounded:
            grounded.add(known)
            for defined, missing in waiting.get(known, ()):
                missing.discard(known)
                if not missing:
                    ready.append(defined)
    return grounded


_Definition: TypeAlias = tuple[str, set[str]]
"""A variable that gets its value once others have theirs, and these."""


def _definitions(literal: Literal) -> Iterator[_Definition]:
    if type(literal) is Aggregation:
        yield literal.result.name, {group.name for group in literal.groups}
    elif type(literal) is Comparison and literal.operator == "=":
        for variable, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if type(variable) is Variable:
                yield variable.name, set(names_of(other))
                if type(other) is Apply and is_constructor(other.functor):
                    for part in names_of(*other.arguments):
                        yield part, {variable.name}
