"""Types of clauses that need no inference: an atom tells the type of each variable, and what stands beside it has the
same. Nearly all clauses are of this kind, and this takes a third of the time. What is not, or is at fault, is left to
inference, which finds out where."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.analysis.constants import constant_value
from elastalog.analysis.draft import FlatClause, TypedRule
from elastalog.analysis.functors import FUNCTORS, applied_name
from elastalog.analysis.infer import Kinds
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
    Variable,
    Wildcard,
)
from elastalog.analysis.structures import Kind, base_of
from elastalog.analysis.variable_names import wildcard_name
from elastalog.syntax import tree
from elastalog.syntax.keywords import COMPARISONS


def simple_fact(head: tree.Atom, kinds: Kinds) -> Fact | None:
    """The fact that a clause without a body is; None when it is none or at fault."""
    values = []
    for term, kind in zip(head.arguments, kinds[head.relation], strict=True):
        value = constant_value(term, base_of(kind))
        if value is None:
            return None
        values.append(value)
    return Fact(head.relation, tuple(values), head.span)


def simple_rule(clause: FlatClause, kinds: Kinds) -> TypedRule | None:
    """The rule that a clause without aggregates and ranges is; None when that takes inference."""
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
    """The type of the first variable in a term of which it is known; none of those that are made of values."""
    if type(term) is tree.Call:
        for argument in term.arguments:
            base = _base_in(argument, known)
            if base is not None:
                return base
        return None
    kind = known.get(term.name) if type(term) is tree.Variable else None
    return kind if type(kind) is Base else None


def _expression(term: tree.Term, base: Base, known: Mapping[str, Kind]) -> Expression | None:
    """A term all parts of which are of one type."""
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
