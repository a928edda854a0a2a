"""Builds the rule of one clause from the types that were inferred for it, and reports every place where types clash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, assert_never

from elastalog.analysis.draft import (
    LIMITS,
    Draft,
    FlatClause,
    FlatLiteral,
    Kind,
    SeparatedAggregate,
    TypedRule,
    base_of,
    constant_value,
    is_constructor,
    negated_literal,
)
from elastalog.analysis.findings import Findings
from elastalog.analysis.functor_values import NotRegular, is_number, matcher, moment_of
from elastalog.analysis.functors import (
    AGGREGATES,
    BRANCH_NUMBER,
    BRANCH_WITH_NUMBER,
    COMPARISONS,
    CONVERTING,
    DATED,
    applied_name,
)
from elastalog.analysis.infer import Kinds, Solver
from elastalog.analysis.listing import show_value
from elastalog.analysis.negation import opposite
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
    Part,
    StructuredType,
    Variable,
    Wildcard,
)
from elastalog.analysis.type_reports import ClauseAtFaultError, TypeReports
from elastalog.analysis.values import NIL, Branch, Record
from elastalog.analysis.variables import made_name, wildcard_name
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT

_CASTS: Final[dict[tuple[Base, Base], str]] = {
    (Base.SYMBOL, Base.NUMBER): "ord",
    (Base.NUMBER, Base.UNSIGNED): "itou",
    (Base.UNSIGNED, Base.NUMBER): "utoi",
    (Base.NUMBER, Base.FLOAT): "as float",
    (Base.UNSIGNED, Base.FLOAT): "as float",
    (Base.FLOAT, Base.NUMBER): "as number",
    (Base.FLOAT, Base.UNSIGNED): "as unsigned",
}
"""What reads a value of one base type as one of another."""


_INTEGERS: Final = (Base.NUMBER, Base.UNSIGNED)


def _names(structure: StructuredType, span: Span) -> Constant:
    """The names of the branches of a type, in order, as one text."""
    return Constant("|".join(sorted(name[1:] for name in structure.branches)), Base.SYMBOL, span)


class TypedBuilder:
    """Builds one rule from the types inferred for it."""

    def __init__(
        self,
        draft: Draft,
        kinds: Kinds,
        solver: Solver,
        findings: Findings,
    ) -> None:
        self.kinds = kinds
        self.solver = solver
        self.types = solver.types
        # Equations that build or take apart what stands inside the literal at hand, innermost first.
        self.definitions: list[Comparison] = []
        self.constructed: dict[int, tuple[Expression, StructuredType]] = {}  # by identity of the expression
        self.reports = TypeReports(draft.declarations, solver.places, findings)
        self.wildcards: dict[Span, int] = {}
        self.is_sound = True
        self.casts: dict[Span, str] = {}  # the types that variables are taken for, by the place of the cast
        # The variables inside values that are built or taken apart, with the types of their fields.
        self.parts: list[tuple[Variable, str]] = []
        self.made = 0  # variables for what expressions build
        self.without_type: set[str] = set()  # results of aggregates at fault; their uses say nothing new

    def rule(self, clause: FlatClause) -> TypedRule | None:
        """Returns the rule, or None if the clause has errors. An error in one literal does not hide those of the
        others."""
        body = self.body(clause.body)
        try:
            head = self.atom(clause.head, is_negated=False)
        except ClauseAtFaultError:
            return None
        if not self.is_sound:
            return None
        return TypedRule(head, (*body, *self.definitions), clause.written)

    def body(self, literals: Sequence[FlatLiteral]) -> tuple[Literal, ...]:
        around, self.definitions = self.definitions, []
        built: list[Literal] = []
        for literal in literals:
            try:
                built.append(self.literal(literal))
            except ClauseAtFaultError:
                self.is_sound = False
            built.extend(self.definitions)
            self.definitions.clear()
        self.definitions = around
        return tuple(built)

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
        variables = self.solver.variables
        for position, (term, kind) in enumerate(zip(atom.arguments, self.kinds[atom.relation], strict=True)):
            if type(term) is tree.Variable and variables[term.name] is kind:
                arguments.append(Variable(term.name, base_of(kind), term.span))
                continue
            if type(term) is tree.Wildcard:
                arguments.append(Wildcard(term.span) if is_negated else self.wildcard(term, kind))
                continue
            expression = self.expression(term, kind)
            if self.kind(expression) is not kind:
                self.reports.argument(atom, position, term, self.kind(expression), kind)
            arguments.append(expression)
        return Atom(atom.relation, tuple(arguments), atom.span)

    def wildcard(self, term: tree.Wildcard, kind: Kind) -> Variable:
        # One wildcard written before a disjunction is one variable in all its alternatives.
        number = self.wildcards.setdefault(term.span, len(self.wildcards) + 1)
        return Variable(wildcard_name(number), base_of(kind), term.span)

    def comparison(self, comparison: tree.Comparison) -> Comparison:
        operator = comparison.operator
        if COMPARISONS[operator] == (Base.SYMBOL,):
            base = COMPARISONS[operator][0]
            left, right = self.expression(comparison.left, base), self.expression(comparison.right, base)
            for side, term in ((left, comparison.left), (right, comparison.right)):
                if self.kind(side) is not base:
                    self.reports.operand(comparison, term, self.kind(side), base)
            if operator.removeprefix(NOT) == "match":
                self.check_pattern(left)
            return Comparison(operator, base, left, right, comparison.span)
        hint = self.solver.kind_of(comparison.left) or self.solver.kind_of(comparison.right)
        left, right = self.expression(comparison.left, hint), self.expression(comparison.right, hint)
        kind = self.kind(left)
        if kind is not self.kind(right):
            self.reports.comparison(comparison, kind, self.kind(right))
        if isinstance(kind, StructuredType):
            if operator == "=":
                return self.equation(comparison, left, right)
            if operator.removeprefix(NOT) not in ("=", "!=") and not kind.is_ordered:
                self.reports.fail("E0342", comparison.span, type=kind.name, operator=operator.removeprefix(NOT))
        operator = opposite(operator, left.base, left, right)
        return Comparison(operator, left.base, left, right, comparison.span)

    def equation(self, comparison: tree.Comparison, left: Expression, right: Expression) -> Comparison:
        """`x = [a, b]` as it stands: no variable other than `x` is needed for the value that it builds or takes
        apart."""
        for variable, other in ((left, right), (right, left)):
            last = self.definitions[-1] if self.definitions else None
            if last is not None and last.left is other and type(variable) is Variable:
                self.definitions.pop()
                return Comparison("=", Base.RECORD, variable, last.right, comparison.span)
        return Comparison("=", Base.RECORD, left, right, comparison.span)

    def aggregation(self, aggregate: SeparatedAggregate) -> Aggregation:
        bodies = tuple([self.body(body) for body in aggregate.bodies])
        operator = aggregate.operator
        result = self.variable(aggregate.result)
        target = None
        base: Kind = Base.NUMBER
        if operator[0] == "@" and aggregate.target is not None:
            target, definitions = self.folded(aggregate.target, operator)
            bodies = tuple([(*body, *definitions) for body in bodies])
            base = self.types.functor(operator).overloads[0].result
        elif aggregate.target is not None:
            target = self.expression(aggregate.target, None if operator == "mean" else self.kind(result))
            if target.base not in AGGREGATES[operator]:
                self.without_type.add(result.name)
                self.reports.target(operator, aggregate.target, self.kind(target))
            base = Base.FLOAT if operator == "mean" else target.base
        if self.kind(result) is not base:
            self.reports.result(aggregate, base, self.kind(result))
        groups = tuple([self.variable(group) for group in aggregate.groups])
        return Aggregation(result, operator, target, bodies, groups, aggregate.span)

    def folded(self, target: tree.Term, operator: str) -> tuple[Expression, list[Comparison]]:
        """The record of the start value and the folded value of a user's functor, and the equations that build it."""
        around, self.definitions = self.definitions, []
        try:
            return self.expression(target, self.types.folded(operator)), self.definitions
        finally:
            self.definitions = around

    # --- expressions -----------------------------------------------------------------------------------------------

    def kind(self, expression: Expression) -> Kind:
        """The kind of an expression that has been built."""
        known = self.constructed.get(id(expression))
        if known is not None:
            return known[1]
        if type(expression) is Variable:
            return self.solver.variables.get(expression.name, expression.base)
        return expression.base

    def variable(self, variable: tree.Variable) -> Variable:
        kind = self.solver.variables.get(variable.name, Base.NUMBER)
        return Variable(variable.name, base_of(kind), variable.span)

    def expression(self, term: tree.Term, hint: Kind | None) -> Expression:
        """The typed term. `hint` is the type that its place asks for; the caller checks whether the term has it."""
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
                return self.construct(term, hint) if is_constructor(term.functor) else self.call(term, hint)
            case tree.Cast():
                return self.cast(term)
            case _:
                raise InternalError("types", f"a {type(term).__name__} is left in an expression")

    # --- values made of values -------------------------------------------------------------------------------------

    def construct(self, call: tree.Call, hint: Kind | None) -> Expression:
        """A variable for the value that a constructor builds or takes apart, defined by an equation. A constructor
        without parts becomes a constant."""
        structure = self.solver.calls.get(id(call), hint)
        if not isinstance(structure, StructuredType):
            key = "E0340" if structure is None else "E0340.place"
            self.reports.fail(key, call.span, text=self.reports.text(call), expected=structure)
        built: Expression
        if call.functor == "nil":
            if not structure.is_record:
                self.reports.foreign(call, structure)
            built = Constant(NIL, Base.RECORD, call.span)
        else:
            fields = structure.branches.get(call.functor)
            if fields is None:
                self.reports.foreign(call, structure)
            if len(fields) != len(call.arguments):
                self.reports.fail(
                    "E0242.record", call.span, type=structure.name, expected=len(fields), given=len(call.arguments),
                    fields=", ".join(field.name for field in fields),
                )  # fmt: skip
            parts = tuple([self.part(term, field) for term, field in zip(call.arguments, fields, strict=True)])
            if structure.name in self.types.meanings:  # what a user's aggregate folds is no declared type
                pairs = zip(parts, fields, strict=True)
                self.parts += [(part, field.type_name) for part, field in pairs if type(part) is Variable]
            if parts:
                built = self.defined(Apply(call.functor, parts, Base.RECORD, call.span), call.span)
            else:
                value = Record((), ()) if call.functor == "[]" else Branch(call.functor[1:])
                built = Constant(value, Base.RECORD, call.span)
        self.constructed[id(built)] = built, structure
        return built

    def part(self, term: tree.Term, field: Part) -> Expression:
        """A part of a constructor: a variable or a constant."""
        kind = self.types.kind(field.type_name)
        if type(term) is tree.Wildcard:
            return self.wildcard(term, kind)
        expression = self.expression(term, kind)
        if self.kind(expression) is not kind:
            self.reports.part(field, term, self.kind(expression), kind)
        return self.defined(expression, term.span) if type(expression) is Apply else expression

    def defined(self, apply: Apply, span: Span) -> Variable:
        """A new variable that has the value of an expression."""
        self.made += 1
        variable = Variable(made_name(self.made), apply.base, span)
        self.definitions.append(Comparison("=", apply.base, variable, apply, span))
        return variable

    def constant(self, term: tree.Term, hint: Kind | None) -> Constant:
        literal = negated_literal(term) or term
        if type(literal) is tree.String:
            return Constant(literal.value, Base.SYMBOL, term.span)
        if type(literal) is tree.Float:
            base = Base.FLOAT
        elif type(literal) is tree.Integer and literal.is_unsigned:
            base = Base.UNSIGNED
        else:
            base = hint if isinstance(hint, Base) and hint in LIMITS else Base.NUMBER
        value = constant_value(term, base)
        if value is None:
            self.reports.literal(term, base)
        return Constant(value, base, term.span)

    def call(self, call: tree.Call, hint: Kind | None) -> Expression:
        if call.functor == "ord":
            inner = self.expression(call.arguments[0], self.solver.kind_of(call.arguments[0]) or Base.NUMBER)
            return self.ordinal(inner, call.span)
        functor = self.types.functor(call.functor)
        expected: list[Kind]
        result: Kind
        if len(functor.overloads) == 1:
            overload = functor.overloads[0]
            expected = [overload.parameter(position) for position in range(len(call.arguments))]
            result = overload.result
        elif functor.is_uniform:
            possible: list[Kind] = [overload.result for overload in functor.overloads]
            result = self.solver.calls.get(id(call)) or (hint if hint is not None and hint in possible else Base.NUMBER)
            expected = [result] * len(call.arguments)
        else:  # a conversion: takes any type, whichever its argument has
            result = functor.overloads[0].result
            expected = [self.solver.kind_of(call.arguments[0]) or Base.NUMBER]
        arguments = []
        for position, (term, base) in enumerate(zip(call.arguments, expected, strict=True)):
            argument = self.expression(term, base)
            is_built_in = call.functor[0] != "@"
            if self.kind(argument) is not base or (isinstance(base, StructuredType) and is_built_in):
                self.reports.call(call, functor, position, self.kind(argument), base)
            arguments.append(argument)
        if call.functor == "capture":
            self.check_pattern(arguments[0])
        for argument in arguments if call.functor in DATED | CONVERTING else ():
            if type(argument) is Constant and isinstance(given := argument.value, str):
                is_date = call.functor in DATED
                if not (moment_of(given) if is_date else is_number(given, call.functor)):
                    key, text = "E0621.constant_date" if is_date else "E0621.constant_number", show_value(given[:60])
                    self.reports.findings.warning(key, argument.span, text=text, functor=call.functor)
        apply = Apply(applied_name(call.functor, result), tuple(arguments), base_of(result), call.span)
        if isinstance(result, StructuredType):
            self.constructed[id(apply)] = apply, result
        return apply

    def cast(self, cast: tree.Cast) -> Expression:
        """The value itself if both types are of the same kind or are similar records. A symbol or record cast to a
        number becomes its `ord`; the bits of a number may be read as those of a float."""
        wanted = self.types.kind(cast.type_name)
        inner = self.expression(cast.term, self.solver.kind_of(cast.term) or wanted)
        found = self.kind(inner)
        taken: Expression = inner
        if found is wanted or self.are_alike(found, wanted):
            self.casts[cast.span] = cast.type_name
            taken = replace(inner, span=cast.span) if type(inner) is Variable else inner
        elif isinstance(wanted, StructuredType):
            if found not in _INTEGERS or not wanted.is_ordered:
                self.reports.cast(cast, found, wanted)
            number = inner if found is Base.NUMBER else Apply("utoi", (inner,), Base.NUMBER, cast.span)
            taken = Apply(BRANCH_WITH_NUMBER, (number, _names(wanted, cast.span)), Base.RECORD, cast.span)
        elif isinstance(found, Base) and (found, wanted) in _CASTS:
            return Apply(_CASTS[found, wanted], (inner,), wanted, cast.span)
        elif wanted in _INTEGERS:
            number = self.ordinal(inner, cast.span)
            return number if wanted is Base.NUMBER else Apply("itou", (number,), Base.UNSIGNED, cast.span)
        else:
            self.reports.cast(cast, found, wanted)
        if isinstance(wanted, StructuredType):
            self.constructed[id(taken)] = taken, wanted
        return taken

    def ordinal(self, inner: Expression, span: Span) -> Expression:
        """The number that identifies a value of any type. For a branch without fields, it is the position of its name
        among the branches."""
        kind = self.kind(inner)
        if kind is Base.NUMBER:
            return inner
        if isinstance(kind, StructuredType) and kind.is_ordered:
            return Apply(BRANCH_NUMBER, (inner, _names(kind, span)), Base.NUMBER, span)
        return Apply(_CASTS.get((base_of(kind), Base.NUMBER), "ord"), (inner,), Base.NUMBER, span)

    def are_alike(self, one: Kind, other: Kind) -> bool:
        """Whether both types are record types whose parts have the same base types."""
        if not isinstance(one, StructuredType) or not isinstance(other, StructuredType):
            return False
        fields = [structure.branches.get("[]", ()) for structure in (one, other)]
        bases = [[base_of(self.types.kind(field.type_name)) for field in own] for own in fields]
        return one.is_record and other.is_record and bases[0] == bases[1]

    def check_pattern(self, pattern: Expression) -> None:
        try:
            if type(pattern) is Constant:
                matcher(str(pattern.value))
        except NotRegular as fault:
            if fault.is_one_elsewhere:
                self.reports.fail("E0310", pattern.span, reason=fault)
            # A text that is no regular expression anywhere matches nothing, as one from a fact does.
            self.reports.findings.warning("E0310.nowhere", pattern.span, reason=fault)
