"""The kind of every variable of one clause, found by passing known types along equations.

Most clauses need no inference: an atom determines the type of each variable, and the term next to it has the same type.
`simple_fact` and `simple_rule` handle these in a third of the time. Everything else, including clauses with errors, is
left to inference, which finds out where an error is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from elastalog.analysis.draft import (
    FlatClause,
    FlatLiteral,
    Kind,
    SeparatedAggregate,
    TypedRule,
    TypeMeaning,
    base_of,
    constant_value,
    is_constructor,
)
from elastalog.analysis.functors import FUNCTORS, Functor, Overload, applied_name, functor_of
from elastalog.analysis.program import (
    Apply,
    Atom,
    Base,
    Comparison,
    Constant,
    Expression,
    Fact,
    Literal,
    Negation,
    Part,
    StructuredType,
    UserFunctor,
    Variable,
    Wildcard,
)
from elastalog.analysis.variables import variables_of, wildcard_name
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.keywords import COMPARISONS, NOT, TEXT_TESTS

Kinds: TypeAlias = dict[str, tuple[Kind, ...]]


@dataclass(frozen=True, slots=True)
class StructuredTypes:
    """The declared types, the type of every branch, and the functors of the user."""

    meanings: Mapping[str, TypeMeaning]
    constructors: Mapping[str, StructuredType]
    users: Mapping[str, UserFunctor]

    def functor(self, name: str) -> Functor:
        """A functor that is known to exist."""
        found = functor_of(name, self.users)
        assert found is not None
        user = self.users.get(name[1:]) if name[0] == "@" else None
        if user is None or not user.has_records:
            return found
        kinds = Overload(tuple(map(self.kind, user.parameter_types)), self.kind(user.result_type))
        return replace(found, overloads=(kinds,))

    def folded(self, operator: str) -> StructuredType:
        """The type of what a user's aggregate folds: the start value and a value."""
        named = zip(("start", "value"), self.users[operator[1:]].parameter_types, strict=False)
        parts = [Part(name, kind, self.meanings[kind].base, None) for name, kind in named]
        return StructuredType(operator, {"[]": tuple(parts)})

    def kind(self, type_name: str) -> Kind:
        """The kind of a declared type."""
        return self.meanings[type_name].kind


@dataclass(slots=True)
class Environment:
    """What is known: the kind of each variable with the place that settled it, and the kind chosen for each call."""

    variables: dict[str, Kind]
    places: dict[str, Span]
    calls: dict[int, Kind]  # by identity of the node; the clause keeps the nodes alive


_Equation: TypeAlias = tuple[tree.Term, tree.Term | Kind | None]


def infer(clause: FlatClause, kinds: Kinds, types: StructuredTypes) -> Solver:
    """Infers the types of a clause. Contradictions are found later, by the check: a variable gets its type from its
    first place, in the order body, head, equations. A variable without any such place gets the type that it is cast to,
    or is a number."""
    solver = Solver(kinds, types)
    solver.read(clause.body)
    solver.read_atom(clause.head)
    solver.solve()
    return solver


class Solver:
    def __init__(self, kinds: Kinds, types: StructuredTypes) -> None:
        self.kinds = kinds
        self.types = types
        self.environment = Environment({}, {}, {})
        self.equations: list[_Equation] = []
        self.settled: list[str] = []  # variables settled since last looked at
        self.casts: dict[str, Kind] = {}  # the types made of parts that variables are taken for
        self.has_open = False  # whether a variable without a type was met

    def read(self, body: Sequence[FlatLiteral]) -> None:
        for literal in body:
            match literal:
                case tree.Atom():
                    self.read_atom(literal)
                case tree.Negation():
                    self.read_atom(literal.atom)
                case tree.Comparison():
                    if literal.operator.removeprefix(NOT) in TEXT_TESTS:
                        self.equations.append((literal.left, Base.SYMBOL))
                        self.equations.append((literal.right, Base.SYMBOL))
                    else:
                        self.equations.append((literal.left, literal.right))
                case SeparatedAggregate():
                    self.read_aggregate(literal)

    def read_atom(self, atom: tree.Atom) -> None:
        for term, kind in zip(atom.arguments, self.kinds[atom.relation], strict=True):
            if type(term) is tree.Variable:
                self.settle(term, kind)
            elif type(term) is tree.Call or type(term) is tree.Cast:
                self.equations.append((term, kind))

    def read_aggregate(self, aggregate: SeparatedAggregate) -> None:
        for body in aggregate.bodies:
            self.read(body)
        result = aggregate.result
        match aggregate.operator:
            case "count":
                self.equations.append((result, Base.NUMBER))
            case "mean":
                self.equations.append((result, Base.FLOAT))
                if aggregate.target is not None:
                    self.equations.append((aggregate.target, None))
            case operator if operator[0] == "@":
                self.equations.append((result, self.types.functor(operator).overloads[0].result))
                assert aggregate.target is not None
                self.equations.append((aggregate.target, self.types.folded(operator)))
            case _:
                self.equations.append((result, aggregate.target))

    def settle(self, variable: tree.Variable, kind: Kind) -> None:
        if variable.name not in self.environment.variables:
            self.environment.variables[variable.name] = kind
            self.environment.places[variable.name] = variable.span
            self.settled.append(variable.name)

    def solve(self) -> None:
        """Works through the equations until nothing new follows. Each is looked at again when one of its variables gets
        a type."""
        if not self.equations:
            return
        self.apply_all()
        if not self.has_open:
            return
        known = self.environment.variables
        watchers: dict[str, list[_Equation]] = {}
        open_variables: list[tree.Variable] = []
        for equation in self.equations:
            terms = [side for side in equation if side is not None and not isinstance(side, Base | StructuredType)]
            for variable in variables_of(terms, is_deep=False):
                if variable.name not in known:
                    watchers.setdefault(variable.name, []).append(equation)
                    open_variables.append(variable)
        self.work_off(deque(self.equations), watchers)
        for variable in open_variables:
            if variable.name not in known:
                self.settle(variable, self.casts.get(variable.name, Base.NUMBER))
                self.work_off(deque(watchers[variable.name]), watchers)
        self.apply_all()  # so that every call has seen the types of all variables

    def work_off(self, pending: deque[_Equation], watchers: dict[str, list[_Equation]]) -> None:
        while pending:
            self.settled.clear()
            self.apply(pending.popleft())
            for name in self.settled:
                pending.extend(watchers.get(name, ()))

    def apply_all(self) -> None:
        for equation in self.equations:
            self.apply(equation)

    def apply(self, equation: _Equation) -> None:
        left, right = equation
        if right is None:
            self.push(left, None)
        elif isinstance(right, Base | StructuredType):
            self.push(left, right)
        else:
            base = self.push(left, None)
            other = self.push(right, base)
            if base is None and other is not None:
                self.push(left, other)

    def push(self, term: tree.Term, expected: Kind | None) -> Kind | None:
        """Gives a term the expected type if its type is still open, and returns its type as far as known."""
        match term:
            case tree.Variable():
                base = self.environment.variables.get(term.name)
                if base is None:
                    self.has_open = True
                    if expected is not None:
                        self.settle(term, expected)
                        return expected
                return base
            case tree.Integer():
                return Base.UNSIGNED if term.is_unsigned else None
            case tree.Float():
                return Base.FLOAT
            case tree.String():
                return Base.SYMBOL
            case tree.Call():
                return self.push_call(term, expected)
            case tree.Cast():
                kind = self.types.kind(term.type_name)
                is_record = type(term.term) is tree.Call and term.term.functor in ("[]", "nil")
                if type(term.term) is tree.Variable and isinstance(kind, StructuredType):
                    self.casts.setdefault(term.term.name, kind)
                self.push(term.term, kind if is_record else None)
                return kind
            case _:
                return None

    def kind_of(self, term: tree.Term) -> Kind | None:
        """The type of a term regardless of its context; None for literals that adapt to it."""
        return self.push(term, None)

    def push_constructor(self, call: tree.Call, expected: Kind | None) -> Kind | None:
        """A branch determines its own type; a record or `nil` has the type that is expected."""
        structure = expected if isinstance(expected, StructuredType) else None
        if call.functor[0] == "$":
            structure = self.types.constructors.get(call.functor)
        elif structure is None:
            known = self.environment.calls.get(id(call))
            structure = known if isinstance(known, StructuredType) else None
        if structure is not None:
            self.environment.calls[id(call)] = structure
        fields = () if structure is None else structure.branches.get(call.functor, ())
        for position, argument in enumerate(call.arguments):
            self.push(argument, self.types.kind(fields[position].type_name) if position < len(fields) else None)
        return structure

    def push_call(self, call: tree.Call, expected: Kind | None) -> Kind | None:
        if is_constructor(call.functor):
            return self.push_constructor(call, expected)
        functor = self.types.functor(call.functor)
        if len(functor.overloads) == 1:
            overload = functor.overloads[0]
            for position, argument in enumerate(call.arguments):
                self.push(argument, overload.parameter(position))
            return overload.result
        found = [self.push(argument, None) for argument in call.arguments]
        if not functor.is_uniform:
            return functor.overloads[0].result
        possible = [overload.result for overload in functor.overloads]
        base = next((b for b in [*found, expected, self.environment.calls.get(id(call))] if b in possible), None)
        if base is not None:
            self.environment.calls[id(call)] = base
            for argument, known in zip(call.arguments, found, strict=True):
                if known is None:
                    self.push(argument, base)
        return base


# --- clauses that need no inference ----------------------------------------------------------------------------------


def simple_fact(head: tree.Atom, kinds: Kinds) -> Fact | None:
    """The fact that a clause without a body states; None if it states none or has an error."""
    values = []
    for term, kind in zip(head.arguments, kinds[head.relation], strict=True):
        value = constant_value(term, base_of(kind))
        if value is None:
            return None
        values.append(value)
    return Fact(head.relation, tuple(values), head.span)


def simple_rule(clause: FlatClause, kinds: Kinds) -> TypedRule | None:
    """The rule for a clause without aggregates and ranges; None if inference is needed."""
    known: dict[str, Kind] = {}
    wildcards = 0
    body: list[Literal] = []
    for literal in (*clause.body, clause.head):
        if type(literal) is tree.Comparison:
            comparison = _comparison(literal, known)
            if comparison is None:
                return None
            body.append(comparison)
            continue
        is_negated = type(literal) is tree.Negation
        atom: tree.Atom = literal.atom if is_negated else literal  # type: ignore[union-attr,assignment]  # nothing else
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
                expression = _expression(term, base, known)
                if expression is None:
                    return None
                arguments.append(expression)
        typed = Atom(atom.relation, tuple(arguments), atom.span)
        body.append(Negation(typed, literal.span) if is_negated else typed)
    head = body.pop()
    return TypedRule(head, tuple(body), clause.plan, clause.span, clause.instance)  # type: ignore[arg-type]  # the head came last


def _comparison(comparison: tree.Comparison, known: dict[str, Kind]) -> Comparison | None:
    """A comparison of terms that are all of the type of a variable in it. An equation tells the type of a variable that
    is one of its sides."""
    operator, one, other = comparison.operator, comparison.left, comparison.right
    base = _base_in(one, known) or _base_in(other, known)
    if base is None or operator not in COMPARISONS:
        return None
    if operator == "=":
        for side in (one, other):
            if type(side) is tree.Variable:
                known.setdefault(side.name, base)
    left = _expression(one, base, known)
    right = None if left is None else _expression(other, base, known)
    if left is None or right is None:
        return None
    return Comparison(operator, base, left, right, comparison.span)


def _base_in(term: tree.Term, known: Mapping[str, Kind]) -> Base | None:
    """The type of the first variable of a term whose type is known, if it is a base type."""
    if type(term) is tree.Call:
        for argument in term.arguments:
            base = _base_in(argument, known)
            if base is not None:
                return base
        return None
    kind = known.get(term.name) if type(term) is tree.Variable else None
    return kind if type(kind) is Base else None


def _expression(term: tree.Term, base: Base, known: Mapping[str, Kind]) -> Expression | None:
    """The typed term if all its parts have one type; otherwise None."""
    if type(term) is tree.Variable:
        return Variable(term.name, base, term.span) if known.get(term.name) is base else None
    value = constant_value(term, base)
    if value is not None:
        return Constant(value, base, term.span)
    functor = FUNCTORS.get(term.functor) if type(term) is tree.Call else None
    if functor is None or not functor.is_uniform or not any(overload.result is base for overload in functor.overloads):
        return None
    assert type(term) is tree.Call
    arguments = [_expression(argument, base, known) for argument in term.arguments]
    found = tuple([argument for argument in arguments if argument is not None])
    if len(found) < len(arguments):
        return None
    return Apply(applied_name(term.functor, base), found, base, term.span)
