"""Conjunctions solved by plain search over facts that a look-up gives: for small things, where nothing may rest on
the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, assert_never

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Expression,
    Literal,
    Negation,
    Value,
    Variable,
    Wildcard,
    names_of,
)
from elastalog.analysis.variables import is_implied_name
from elastalog.provenance.comparisons import compare, holds, range_of, take_apart
from elastalog.provenance.fact import Bindings
from elastalog.provenance.folds import fold
from elastalog.provenance.ground import NoValue, Ordinal, Unbound, no_ordinal, value_of
from elastalog.provenance.instantiate import are_met, ground_values, match_atom

Pattern: TypeAlias = Sequence[Value | None]
LookUp: TypeAlias = Callable[[str, Pattern], Iterable[tuple[Value, ...]]]
"""The facts of a relation that have the given values; None fits any."""
Assignment: TypeAlias = frozenset[tuple[str, object]]


def needed_by(literal: Literal) -> set[str]:
    """The variables that must have values before a literal can be evaluated; of an aggregate, its groups."""
    match literal:
        case Atom():
            return set(names_of(*literal.arguments))
        case Negation():
            return needed_by(literal.atom)
        case Comparison():
            return set(names_of(literal.left, literal.right))
        case Aggregation():
            return {group.name for group in literal.groups}
        case _:
            assert_never(literal)


def pattern_of(atom: Atom, bindings: Bindings, ordinal: Ordinal = no_ordinal) -> Pattern:
    """The values of an atom's arguments as far as they are known. Raises NoValue."""
    found: list[Value | None] = []
    for argument in atom.arguments:
        try:
            found.append(None if isinstance(argument, Wildcard) else value_of(argument, bindings, ordinal))
        except Unbound:
            found.append(None)
    return found


def matches(
    atom: Atom, bindings: Bindings, look_up: LookUp, ordinal: Ordinal = no_ordinal
) -> Iterator[dict[str, Value]]:
    """The bindings extended by each fact that fits an atom. Computed arguments whose variables have no value yet are
    not looked at."""
    try:
        pattern = pattern_of(atom, bindings, ordinal)
    except NoValue:
        return
    for values in look_up(atom.relation, pattern):
        extended = dict(bindings)
        deferred: list[tuple[Expression, Value]] = []
        if match_atom(atom, values, extended, deferred):
            known = [entry for entry in deferred if all(name in extended for name in names_of(entry[0]))]
            if are_met(known, extended, ordinal):
                yield extended


def assignments(
    body: Sequence[Literal], bindings: Bindings, look_up: LookUp, ordinal: Ordinal = no_ordinal
) -> Iterator[Bindings]:
    """Every way to give all variables of a body values so that it holds."""
    if not body:
        yield bindings
        return
    chosen = min(body, key=lambda literal: _cost(literal, bindings))
    rest = [literal for literal in body if literal is not chosen]
    for extended in _extended(chosen, bindings, look_up, ordinal):
        yield from assignments(rest, extended, look_up, ordinal)


def _cost(literal: Literal, bindings: Bindings) -> int:
    missing = sum(name not in bindings for name in needed_by(literal))
    match literal:
        case Atom():
            computed = (a for a in literal.arguments if isinstance(a, Apply))
            is_late = any(name not in bindings for name in names_of(*computed))
            return 1 + missing + (1000 if is_late else 0)
        case Comparison(operator="="):
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(side, Variable) and all(name in bindings for name in names_of(other)):
                    return 0
                if isinstance(side, Variable) and side.name in bindings and _is_constructed(other):
                    return 0
            return 10_000 if missing else 0
        case Comparison() | Negation() | Aggregation():
            return 10_000 if missing else 0
        case _:
            assert_never(literal)


def _is_constructed(term: Expression) -> bool:
    return isinstance(term, Apply) and is_constructor(term.functor)


def _extended(literal: Literal, bindings: Bindings, look_up: LookUp, ordinal: Ordinal) -> Iterator[Bindings]:
    match literal:
        case Atom():
            yield from matches(literal, bindings, look_up, ordinal)
        case Negation():
            if not is_matched(literal.atom, bindings, look_up, ordinal):
                yield bindings
        case Comparison():
            try:
                parts = take_apart(literal, bindings)
            except NoValue:
                return
            if parts is not None:
                yield {**bindings, **parts}
                return
            for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if literal.operator == "=" and isinstance(side, Variable) and side.name not in bindings:
                    try:
                        is_range = isinstance(other, Apply) and other.functor == "range"
                        values = range_of(other, bindings, ordinal) if is_range and isinstance(other, Apply) else None
                        for value in [value_of(other, bindings, ordinal)] if values is None else values:
                            yield {**bindings, side.name: value}
                    except NoValue:
                        pass
                    return
            if holds(literal, bindings, ordinal):
                yield bindings
        case Aggregation():
            result = aggregate_value(literal, bindings, look_up, ordinal)
            if result is None:
                return
            name = literal.result.name
            if name not in bindings:
                yield {**bindings, name: result}
            elif compare("=", bindings[name], result):
                yield bindings
        case _:
            assert_never(literal)


def is_matched(atom: Atom, bindings: Bindings, look_up: LookUp, ordinal: Ordinal = no_ordinal) -> bool:
    """Whether some fact fits an atom; one whose arguments have no value is never fitted. Raises Unbound."""
    try:
        values = ground_values(atom, bindings, ordinal)
    except NoValue:
        return False
    return next(iter(look_up(atom.relation, values)), None) is not None


def aggregate_value(
    literal: Aggregation, bindings: Bindings, look_up: LookUp, ordinal: Ordinal = no_ordinal
) -> Value | None:
    """The result of an aggregate whose groups have values; None if it has none."""
    members = members_of(literal, bindings, look_up, ordinal)
    return fold(literal.operator, list(members.values()), literal.result.base, ordinal)


def members_of(
    literal: Aggregation, bindings: Bindings, look_up: LookUp, ordinal: Ordinal = no_ordinal
) -> dict[Assignment, Value]:
    """The distinct assignments that an aggregate ranges over, with the values it folds."""
    groups = {group.name: bindings[group.name] for group in literal.groups}
    members: dict[Assignment, Value] = {}
    for body in literal.bodies:
        for found in assignments(body, groups, look_up, ordinal):
            try:
                members[assignment_of(found, literal)] = (
                    1 if literal.target is None else value_of(literal.target, found, ordinal)
                )
            except NoValue:
                continue
    return members


def assignment_of(bindings: Bindings, literal: Aggregation) -> Assignment:
    """Bindings as a member of an aggregate: what is written in its body, and what it folds. NaN, which differs from
    itself, by its name."""
    told = () if literal.target is None else tuple(names_of(literal.target))
    return frozenset(
        (name, value if value == value else "NaN")
        for name, value in bindings.items()
        if name in told or not is_implied_name(name)
    )
