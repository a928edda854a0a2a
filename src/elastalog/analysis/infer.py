"""The kind of every variable of one clause, found by passing known types along equations."""

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
    TypeMeaning,
    base_of,
    constant_value,
    is_constructor,
)
from elastalog.analysis.functors import Functor, Overload, functor_of
from elastalog.analysis.program import Base, Fact, Part, StructuredType, UserFunctor
from elastalog.analysis.variables import variables_of
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT, TEXT_TESTS

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
    """What is known: the kind of each variable with the place that settled it, and the kind chosen for each call."""

    def __init__(self, kinds: Kinds, types: StructuredTypes) -> None:
        self.kinds = kinds
        self.types = types
        self.variables: dict[str, Kind] = {}
        self.places: dict[str, Span] = {}
        self.calls: dict[int, Kind] = {}  # by identity of the node; the clause keeps the nodes alive
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
        if variable.name not in self.variables:
            self.variables[variable.name] = kind
            self.places[variable.name] = variable.span
            self.settled.append(variable.name)

    def solve(self) -> None:
        """Works through the equations until nothing new follows. Each is looked at again when one of its variables gets
        a type."""
        if not self.equations:
            return
        self.apply_all()
        if not self.has_open:
            return
        known = self.variables
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
                base = self.variables.get(term.name)
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
            known = self.calls.get(id(call))
            structure = known if isinstance(known, StructuredType) else None
        if structure is not None:
            self.calls[id(call)] = structure
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
        base = next((b for b in [*found, expected, self.calls.get(id(call))] if b in possible), None)
        if base is not None:
            self.calls[id(call)] = base
            for argument, known in zip(call.arguments, found, strict=True):
                if known is None:
                    self.push(argument, base)
        return base


def simple_fact(head: tree.Atom, kinds: Kinds) -> Fact | None:
    """The fact that a clause without a body states; None if it states none or has an error."""
    values = []
    for term, kind in zip(head.arguments, kinds[head.relation], strict=True):
        value = constant_value(term, base_of(kind))
        if value is None:
            return None
        values.append(value)
    return Fact(head.relation, tuple(values), head.span)
