"""One clause with its types: builds the rule and reports every place where types clash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from elastalog.analysis.constants import LIMITS, constant_value, negated_literal
from elastalog.analysis.draft import FlatClause, FlatLiteral, SeparatedAggregate, TypedRule
from elastalog.analysis.findings import Findings, primary, quoted, secondary, with_article
from elastalog.analysis.functors import AGGREGATES, COMPARISONS, FUNCTORS, Functor
from elastalog.analysis.infer import Bases, Environment
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Base,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Variable,
    Wildcard,
)
from elastalog.diagnostics.diagnostic import Label
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_CONVERSIONS = {
    Base.NUMBER: "to_number",
    Base.UNSIGNED: "to_unsigned",
    Base.FLOAT: "to_float",
    Base.SYMBOL: "to_string",
}


class ClauseAtFaultError(Exception):
    """A clause is at fault and that has been reported."""


class TypedBuilder:
    """Builds one rule from the types inferred for it."""

    def __init__(
        self,
        declarations: Mapping[str, tree.RelationDeclaration],
        bases: Bases,
        environment: Environment,
        findings: Findings,
    ) -> None:
        self.declarations = declarations
        self.bases = bases
        self.environment = environment
        self.findings = findings
        self.wildcards = 0
        self.is_sound = True
        self.without_type: set[str] = set()  # results of aggregates at fault; their uses say nothing new

    def rule(self, clause: FlatClause) -> TypedRule | None:
        """The rule, or None when it has faults. A literal at fault does not hide those of the others."""
        body = self.body(clause.body)
        head = self.atom_or_none(clause.head)
        if head is None or not self.is_sound:
            return None
        return TypedRule(head, body, clause.plan, clause.span)

    def body(self, literals: Sequence[FlatLiteral]) -> tuple[Literal, ...]:
        built: list[Literal] = []
        for literal in literals:
            try:
                built.append(self.literal(literal))
            except ClauseAtFaultError:
                self.is_sound = False
        return tuple(built)

    def atom_or_none(self, atom: tree.Atom) -> Atom | None:
        try:
            return self.atom(atom, is_negated=False)
        except ClauseAtFaultError:
            return None

    def literal(self, literal: FlatLiteral) -> Literal:
        match literal:
            case tree.Atom():
                return self.atom(literal, is_negated=False)
            case tree.Negation():
                return Negation(self.atom(literal.atom, is_negated=True), literal.span)
            case tree.Comparison():
                return self.comparison(literal)
            case SeparatedAggregate():
                return self.aggregation(literal)
            case _:
                assert_never(literal)

    # --- literals --------------------------------------------------------------------------------------------------

    def atom(self, atom: tree.Atom, is_negated: bool) -> Atom:
        arguments: list[Expression | Wildcard] = []
        variables = self.environment.variables
        for position, (term, base) in enumerate(zip(atom.arguments, self.bases[atom.relation], strict=True)):
            if type(term) is tree.Variable and variables[term.name] is base:
                arguments.append(Variable(term.name, base, term.span))
                continue
            if type(term) is tree.Wildcard:
                if is_negated:
                    arguments.append(Wildcard(term.span))
                else:
                    self.wildcards += 1
                    arguments.append(Variable(f"_@{self.wildcards}", base, term.span))
                continue
            expression = self.expression(term, base)
            if expression.base is not base:
                self.report_argument(atom, position, term, expression.base, base)
            arguments.append(expression)
        return Atom(atom.relation, tuple(arguments), atom.span)

    def comparison(self, comparison: tree.Comparison) -> Comparison:
        operator = comparison.operator
        if len(COMPARISONS[operator]) == 1:
            base = COMPARISONS[operator][0]
            left, right = self.expression(comparison.left, base), self.expression(comparison.right, base)
            for side, term in ((left, comparison.left), (right, comparison.right)):
                if side.base is not base:
                    self.report_operand(comparison, term, side.base, base)
            if operator == "match" and type(left) is Constant:
                self.check_pattern(left)
            return Comparison(operator, base, left, right, comparison.span)
        hint = self.definite(comparison.left) or self.definite(comparison.right)
        left, right = self.expression(comparison.left, hint), self.expression(comparison.right, hint)
        if left.base is not right.base:
            self.report_comparison(comparison, left.base, right.base)
        return Comparison(operator, left.base, left, right, comparison.span)

    def aggregation(self, aggregate: SeparatedAggregate) -> Aggregation:
        bodies = tuple([self.body(body) for body in aggregate.bodies])
        operator = aggregate.operator
        result = self.variable(aggregate.result)
        target = None
        base = Base.NUMBER
        if aggregate.target is not None:
            target = self.expression(aggregate.target, None if operator == "mean" else result.base)
            if target.base not in AGGREGATES[operator]:
                self.findings.error(
                    "E0308",
                    f"{quoted(operator)} does not take {with_article(target.base)}",
                    primary(target.span, with_article(target.base)),
                    *self.origin(aggregate.target, target.base),
                    advice="aggregate a number, unsigned or float; convert with `to_number` where that is meant",
                )
                self.without_type.add(result.name)
                raise ClauseAtFaultError
            base = Base.FLOAT if operator == "mean" else target.base
        if result.base is not base:
            self.findings.error(
                "E0303",
                f"{quoted(operator)} gives {with_article(base)} here, not {with_article(result.base)}",
                primary(aggregate.span, with_article(base)),
                *self.origin(aggregate.result, result.base),
                advice=f"convert the result in a second step, for example `y = {_CONVERSIONS[result.base]}(x)`",
            )
            raise ClauseAtFaultError
        groups = tuple([self.variable(group) for group in aggregate.groups])
        return Aggregation(result, operator, target, bodies, groups, aggregate.span)

    # --- expressions -----------------------------------------------------------------------------------------------

    def definite(self, term: tree.Term) -> Base | None:
        """The type of a term whatever stands beside it; None for literals that adapt."""
        match term:
            case tree.Variable():
                return self.environment.variables.get(term.name)
            case tree.Integer():
                return Base.UNSIGNED if term.is_unsigned else None
            case tree.Float():
                return Base.FLOAT
            case tree.String():
                return Base.SYMBOL
            case tree.Call():
                functor = FUNCTORS[term.functor]
                return self.environment.calls.get(id(term)) if functor.is_uniform else functor.overloads[0].result
            case _:
                return None

    def variable(self, variable: tree.Variable) -> Variable:
        return Variable(variable.name, self.environment.variables.get(variable.name, Base.NUMBER), variable.span)

    def expression(self, term: tree.Term, hint: Base | None) -> Expression:
        """The typed term. The hint is the type that its place asks for; whether it has it is for the caller to see."""
        match term:
            case tree.Variable():
                if term.name in self.without_type:
                    raise ClauseAtFaultError
                return self.variable(term)
            case tree.Integer() | tree.Float() | tree.String():
                return self.constant(term, hint)
            case tree.Call():
                if negated_literal(term) is not None:
                    return self.constant(term, hint)
                return self.call(term, hint)
            case _:
                raise AssertionError("wildcards have been reported and aggregates separated")

    def constant(self, term: tree.Term, hint: Base | None) -> Constant:
        literal = negated_literal(term) or term
        if type(literal) is tree.String:
            return Constant(literal.value, Base.SYMBOL, term.span)
        if type(literal) is tree.Float:
            base = Base.FLOAT
        elif type(literal) is tree.Integer and literal.is_unsigned:
            base = Base.UNSIGNED
        else:
            base = hint if hint in LIMITS else Base.NUMBER
        value = constant_value(term, base)
        if value is None:
            self.report_literal(term, base)
            raise ClauseAtFaultError
        return Constant(value, base, term.span)

    def call(self, call: tree.Call, hint: Base | None) -> Apply:
        functor = FUNCTORS[call.functor]
        if len(functor.overloads) == 1:
            overload = functor.overloads[0]
            expected = [overload.parameter(position) for position in range(len(call.arguments))]
            result = overload.result
        elif functor.is_uniform:
            possible = [overload.result for overload in functor.overloads]
            result = self.environment.calls.get(id(call)) or (hint if hint in possible else Base.NUMBER)
            expected = [result] * len(call.arguments)
        else:  # a conversion: takes any type, whichever its argument has
            result = functor.overloads[0].result
            expected = [self.definite(call.arguments[0]) or Base.NUMBER]
        arguments = []
        for term, base in zip(call.arguments, expected, strict=True):
            argument = self.expression(term, base)
            if argument.base is not base:
                self.report_call(call, functor, term, argument.base, base)
            arguments.append(argument)
        return Apply(call.functor, tuple(arguments), result, call.span)

    def check_pattern(self, pattern: Constant) -> None:
        try:
            re.compile(str(pattern.value))
        except (re.error, RecursionError, OverflowError) as fault:
            self.findings.error(
                "E0310",
                "the pattern is not a regular expression",
                primary(pattern.span, str(fault)),
                advice=r"write a regular expression; a backslash before a special character takes it as it is: `\\(`",
            )
            raise ClauseAtFaultError from None

    # --- reports ---------------------------------------------------------------------------------------------------

    def origin(self, term: tree.Term, base: Base) -> tuple[Label, ...]:
        """Where the type of a variable comes from, unless that is the place itself."""
        if type(term) is not tree.Variable:
            return ()
        place = self.environment.places.get(term.name)
        if place is None or place == term.span:
            return ()
        return (secondary(place, f"{quoted(_written(term.name))} becomes {with_article(base)} here"),)

    def describe(self, term: tree.Term) -> str:
        if type(term) is tree.Variable and term.name[0] != "_" and term.span != self.environment.places.get(term.name):
            return quoted(_written(term.name))
        text = self.findings.source.text[term.span.start : term.span.end]
        return quoted(" ".join(text.split())) if len(text) <= 40 else "this expression"

    def report_argument(self, atom: tree.Atom, position: int, term: tree.Term, found: Base, expected: Base) -> None:
        attribute = self.declarations[atom.relation].attributes[position]
        declared = Span(attribute.name_span.start, attribute.type_span.end)
        if type(term) is tree.Variable:
            name = quoted(_written(term.name))
            self.findings.error(
                "E0301",
                f"variable {name} is used as {found.value} and as {expected.value}",
                primary(term.span, f"{name} is {with_article(expected)} here"),
                *self.origin(term, found),
                advice=_conversion_help(found, expected, _written(term.name)),
            )
        else:
            name = quoted(atom.relation)
            self.findings.error(
                "E0302",
                f"argument {position + 1} of {name} is {with_article(expected)}, not {with_article(found)}",
                primary(term.span, with_article(found)),
                secondary(declared, f"declared as {expected.value} here"),
                advice=self.constant_help(term, found, expected),
            )
        raise ClauseAtFaultError

    def report_operand(self, comparison: tree.Comparison, term: tree.Term, found: Base, expected: Base) -> None:
        self.findings.error(
            "E0303",
            f"{quoted(comparison.operator)} compares two {expected.value}s, not {with_article(found)}",
            primary(term.span, with_article(found)),
            *self.origin(term, found),
            advice=self.constant_help(term, found, expected),
        )
        raise ClauseAtFaultError

    def report_comparison(self, comparison: tree.Comparison, left: Base, right: Base) -> None:
        self.findings.error(
            "E0303",
            f"{quoted(comparison.operator)} compares {with_article(left)} with {with_article(right)}",
            primary(comparison.left.span, with_article(left)),
            primary(comparison.right.span, with_article(right)),
            *self.origin(comparison.left, left),
            *self.origin(comparison.right, right),
            advice=self.constant_help(comparison.right, right, left),
        )
        raise ClauseAtFaultError

    def report_call(self, call: tree.Call, functor: Functor, term: tree.Term, found: Base, expected: Base) -> None:
        takes = [overload.parameter(0).value for overload in functor.overloads] if functor.is_uniform else []
        if functor.is_uniform and found.value not in takes:
            message = f"{quoted(call.functor)} does not take {with_article(found)}"
        else:
            message = f"{quoted(call.functor)} takes {with_article(expected)} here, not {with_article(found)}"
        if call.functor == "+" and found is Base.SYMBOL:
            advice = "join symbols with `cat(a, b)`"
        else:
            advice = self.constant_help(term, found, expected)
        self.findings.error(
            "E0305",
            message,
            primary(term.span, with_article(found)),
            *self.origin(term, found),
            note=_forms(functor),
            advice=advice,
        )
        raise ClauseAtFaultError

    def report_literal(self, term: tree.Term, base: Base) -> None:
        limits = "finite floats" if base is Base.FLOAT else f"whole numbers from {LIMITS[base][0]} to {LIMITS[base][1]}"
        self.findings.error(
            "E0304",
            f"{self.describe(term)} does not fit into {base.value}",
            primary(term.span, f"read as {base.value}"),
            note=f"{base.value} holds {limits}",
            advice="use a value within that range, or another type",
        )

    def constant_help(self, term: tree.Term, found: Base, expected: Base) -> str:
        text = self.findings.source.text[term.span.start : term.span.end]
        if type(term) is tree.Integer and expected is Base.SYMBOL:
            return f'write it as a symbol: `"{text[:40]}"`'
        if type(term) is tree.String and constant_looks_numeric(term.value):
            return f"write it without quotes: `{term.value}`"
        if type(term) is tree.Float and expected is not Base.SYMBOL:
            return "write a whole number, or make the other side a float"
        if type(term) is tree.String or type(term) is tree.Float:
            return f"write {with_article(expected)} here, or change the type of the other side"
        return _conversion_help(found, expected, text if len(text) <= 30 else "…")


def constant_looks_numeric(text: str) -> bool:
    """Whether a string spells a number."""
    return len(text) <= 20 and text.isascii() and text.removeprefix("-").replace(".", "", 1).isdigit()


def _written(name: str) -> str:
    """The name of a variable as the user wrote it."""
    return name.partition("@")[0]


def _conversion_help(found: Base, expected: Base, text: str) -> str:
    return f"convert the {found.value} with `{_CONVERSIONS[expected]}({text})`, or change a declaration"


def _forms(functor: Functor) -> str:
    if functor.is_uniform and len(functor.overloads) > 1:
        *first, last = [overload.result.value for overload in functor.overloads]
        return f"{quoted(functor.name)} takes arguments of one type: {', '.join(first)} or {last}"
    return f"its form is `{functor.signatures[0]}`"
