"""One clause with its types: builds the rule, and has every place where types clash reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from elastalog.analysis.constants import LIMITS, constant_value, negated_literal
from elastalog.analysis.draft import Draft, FlatClause, FlatLiteral, SeparatedAggregate, TypedRule
from elastalog.analysis.findings import Findings
from elastalog.analysis.functors import AGGREGATES, COMPARISONS, FUNCTORS
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
from elastalog.analysis.regular import NotRegular, matcher
from elastalog.analysis.type_reports import ClauseAtFaultError, TypeReports
from elastalog.analysis.variable_names import wildcard_name
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

_CASTS: Final = {
    (Base.SYMBOL, Base.NUMBER): "ord",
    (Base.NUMBER, Base.UNSIGNED): "itou",
    (Base.UNSIGNED, Base.NUMBER): "utoi",
}
"""What reads a value of one base type as one of another."""


class TypedBuilder:
    """Builds one rule from the types inferred for it."""

    def __init__(
        self,
        draft: Draft,
        bases: Bases,
        environment: Environment,
        findings: Findings,
    ) -> None:
        self.bases = bases
        self.types = draft.types
        self.environment = environment
        self.reports = TypeReports(draft.declarations, environment, findings)
        self.wildcards: dict[Span, int] = {}
        self.is_sound = True
        self.casts: dict[Span, str] = {}  # the types that variables are taken for, by the place of the cast
        self.without_type: set[str] = set()  # results of aggregates at fault; their uses say nothing new

    def rule(self, clause: FlatClause) -> TypedRule | None:
        """The rule, or None when it has faults. A literal at fault does not hide those of the others."""
        body = self.body(clause.body)
        head = self.atom_or_none(clause.head)
        if head is None or not self.is_sound:
            return None
        return TypedRule(head, body, clause.plan, clause.span, clause.instance)

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
                    # One wildcard written before a disjunction is one variable in all its alternatives.
                    number = self.wildcards.setdefault(term.span, len(self.wildcards) + 1)
                    arguments.append(Variable(wildcard_name(number), base, term.span))
                continue
            expression = self.expression(term, base)
            if expression.base is not base:
                self.reports.argument(atom, position, term, expression.base, base)
            arguments.append(expression)
        return Atom(atom.relation, tuple(arguments), atom.span)

    def comparison(self, comparison: tree.Comparison) -> Comparison:
        operator = comparison.operator
        if len(COMPARISONS[operator]) == 1:
            base = COMPARISONS[operator][0]
            left, right = self.expression(comparison.left, base), self.expression(comparison.right, base)
            for side, term in ((left, comparison.left), (right, comparison.right)):
                if side.base is not base:
                    self.reports.operand(comparison, term, side.base, base)
            if operator in ("match", "!match") and type(left) is Constant:
                self.check_pattern(left)
            return Comparison(operator, base, left, right, comparison.span)
        hint = self.definite(comparison.left) or self.definite(comparison.right)
        left, right = self.expression(comparison.left, hint), self.expression(comparison.right, hint)
        if left.base is not right.base:
            self.reports.comparison(comparison, left.base, right.base)
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
                self.without_type.add(result.name)
                self.reports.target(operator, aggregate.target, target.base)
            base = Base.FLOAT if operator == "mean" else target.base
        if result.base is not base:
            self.reports.result(aggregate, base, result.base)
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
            case tree.Cast():
                return self.types[term.type_name].base
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
            case tree.Cast():
                return self.cast(term)
            case _:
                raise InternalError("types", f"a {type(term).__name__} is left in an expression")

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
            self.reports.literal(term, base)
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
                self.reports.call(call, functor, term, argument.base, base)
            arguments.append(argument)
        name = "cat" if call.functor == "+" and result is Base.SYMBOL else call.functor
        return Apply(name, tuple(arguments), result, call.span)

    def cast(self, cast: tree.Cast) -> Expression:
        """The value itself where both types have the same base; a symbol as a number is its `ord`."""
        wanted = self.types[cast.type_name].base
        inner = self.expression(cast.term, self.definite(cast.term) or wanted)
        if inner.base is wanted:
            self.casts[cast.span] = cast.type_name
            return replace(inner, span=cast.span) if type(inner) is Variable else inner
        functor = _CASTS.get((inner.base, wanted))
        if functor is None:
            self.reports.cast(cast, inner.base, wanted)
        return Apply(functor, (inner,), wanted, cast.span)

    def check_pattern(self, pattern: Constant) -> None:
        try:
            matcher(str(pattern.value))
        except NotRegular as fault:
            self.reports.pattern(pattern.span, str(fault))
