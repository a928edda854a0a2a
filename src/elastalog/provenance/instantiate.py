"""Literals of a rule with values in place of variables, matched and written out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from elastalog.analysis.listing import show_expression, show_literal, show_value
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Value,
    Variable,
    Wildcard,
)
from elastalog.analysis.variables import is_made_name, is_wildcard_name, written_name
from elastalog.provenance.comparisons import compare
from elastalog.provenance.fact import Bindings
from elastalog.provenance.ground import NoValue, Ordinal, Unbound, no_ordinal, value_of
from elastalog.syntax.printer import print_comparison


def substitute(term: Expression | Wildcard, bindings: Bindings) -> Expression | Wildcard:
    """The term with values in place of the variables that have one."""
    match term:
        case Variable():
            value = bindings.get(term.name)
            return Variable(_plain(term.name), term.base, term.span) if value is None else _constant(value, term)
        case Apply():
            arguments = tuple(_expression(argument, bindings) for argument in term.arguments)
            return Apply(term.functor, arguments, term.base, term.span)
        case Constant() | Wildcard():
            return term
        case _:
            assert_never(term)


def _expression(term: Expression, bindings: Bindings) -> Expression:
    result = substitute(term, bindings)
    assert not isinstance(result, Wildcard)
    return result


def _constant(value: Value, variable: Variable) -> Constant:
    return Constant(value, variable.base, variable.span)


def _plain(name: str) -> str:
    """The name as the program writes it; a wildcard keeps its own, which listings show as `_`, and so does what an
    expression builds, which they show by the expression."""
    return name if is_wildcard_name(name) or is_made_name(name) else written_name(name)


def instantiate(literal: Literal, bindings: Bindings) -> Literal:
    """The literal with values in place of the variables that have one."""
    match literal:
        case Atom():
            return Atom(literal.relation, tuple(substitute(a, bindings) for a in literal.arguments), literal.span)
        case Negation():
            atom = instantiate(literal.atom, bindings)
            assert isinstance(atom, Atom)
            return Negation(atom, literal.span)
        case Comparison():
            left, right = _expression(literal.left, bindings), _expression(literal.right, bindings)
            return Comparison(literal.operator, literal.base, left, right, literal.span)
        case Aggregation():
            target = None if literal.target is None else _expression(literal.target, bindings)
            bodies = tuple(tuple(instantiate(inner, bindings) for inner in body) for body in literal.bodies)
            return Aggregation(literal.result, literal.operator, target, bodies, literal.groups, literal.span)
        case _:
            assert_never(literal)


def show(literal: Literal, bindings: Bindings) -> str:
    """The instantiated literal as text: `edge(1, 2)`, `!edge(1, _)`, `3 = 2 + 1`, `count : { edge(1, y) } = 3`."""
    ground = instantiate(literal, bindings)
    match ground:
        case Atom() | Negation():
            atom = ground.atom if isinstance(ground, Negation) else ground
            arguments = ", ".join(map(_shown_argument, atom.arguments))
            return f"{'!' if isinstance(ground, Negation) else ''}{atom.relation}({arguments})"
        case Comparison():
            return print_comparison(ground.operator, _bare(ground.left), _bare(ground.right))
        case Aggregation():
            groups = {group.name: bindings[group.name] for group in ground.groups if group.name in bindings}
            inside = show_literal(instantiate(literal, groups)).partition(" = ")[2]
            result = bindings.get(ground.result.name)
            return f"{inside} = {_plain(ground.result.name) if result is None else show_value(result)}"
        case _:
            assert_never(ground)


def _shown_argument(argument: Expression | Wildcard) -> str:
    """An argument of an atom: its value, as facts are written, or as much of it as is known."""
    if isinstance(argument, Wildcard):
        return show_expression(argument)
    try:
        return show_value(value_of(argument, {}))
    except (NoValue, Unbound):
        return _bare(argument)


def _bare(expression: Expression) -> str:
    text = show_expression(expression)
    is_infix = isinstance(expression, Apply) and text.startswith("(")
    return text[1:-1] if is_infix else text


def match_atom(
    atom: Atom, values: Iterable[Value], bindings: dict[str, Value], deferred: list[tuple[Expression, Value]]
) -> bool:
    """Binds the variables of an atom to the values of a fact. False on a clash; computed arguments are `deferred`."""
    for argument, value in zip(atom.arguments, values, strict=True):
        match argument:
            case Variable():
                if not compare("=", bindings.setdefault(argument.name, value), value):
                    return False
            case Constant():
                if not compare("=", value_of(argument, {}), value):
                    return False
            case Apply():
                deferred.append((argument, value))
            case Wildcard():
                pass
            case _:
                assert_never(argument)
    return True


def are_met(deferred: Iterable[tuple[Expression, Value]], bindings: Bindings, ordinal: Ordinal = no_ordinal) -> bool:
    """Whether computed arguments have the values that facts give them."""
    try:
        return all(compare("=", value_of(expression, bindings, ordinal), value) for expression, value in deferred)
    except (NoValue, Unbound):
        return False


def ground_values(atom: Atom, bindings: Bindings, ordinal: Ordinal = no_ordinal) -> tuple[Value | None, ...]:
    """The values of an atom's arguments, None for wildcards. Raises NoValue or Unbound."""
    return tuple(None if isinstance(a, Wildcard) else value_of(a, bindings, ordinal) for a in atom.arguments)
