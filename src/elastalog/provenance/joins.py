"""Conjunctions solved by plain search, over facts that a look-up gives: for small things, where nothing may rest on the
engine.

Literals are matched, and written out with values in place of variables. Competing facts are found in the same way: the
candidates for the keys of a choice domain, and the facts that dominate others by subsumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, assert_never, cast

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.listing import show_expression, show_literal, show_value
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    CheckedProgram,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Relation,
    Rule,
    Value,
    Variable,
    Wildcard,
    names_of,
    variables_in,
)
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import sort_key
from elastalog.analysis.variables import is_implied_name, is_made_name, is_wildcard_name, written_name
from elastalog.provenance.fact import Bindings, Fact
from elastalog.provenance.ground import (
    NoValue,
    Ordinal,
    Unbound,
    compare,
    fold,
    holds,
    is_numbering,
    no_ordinal,
    range_of,
    take_apart,
    value_of,
)
from elastalog.syntax.printer import print_comparison
from elastalog.syntax.tree import with_parts

Pattern: TypeAlias = Sequence[Value | None]
LookUp: TypeAlias = Callable[[str, Pattern], Iterable[tuple[Value, ...]]]
"""The facts of a relation that have the given values; None fits any."""
Assignment: TypeAlias = frozenset[tuple[str, object]]


def needed_by(literal: Literal) -> set[str]:
    """The variables that must have values before a literal can be evaluated; of an aggregate, its groups."""
    needed = literal.groups if isinstance(literal, Aggregation) else variables_in((literal,), is_deep=False)
    return {variable.name for variable in needed}


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
    """The bindings extended by each fact that fits an atom. Computed arguments are ignored as long as their variables
    have no values."""
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
    body: Sequence[Literal],
    bindings: Bindings,
    look_up: LookUp,
    ordinal: Ordinal = no_ordinal,
    *,
    leaves_open: bool = False,
) -> Iterator[Bindings]:
    """Every way to give all variables of a body values so that it holds. `leaves_open`: literals are left out whose
    variables get no values."""
    chosen = min(body, key=lambda literal: _cost(literal, bindings), default=None)
    if chosen is None or (leaves_open and _cost(chosen, bindings) >= _OPEN):
        yield bindings
        return
    rest = [literal for literal in body if literal is not chosen]
    for found in extended(chosen, bindings, look_up, ordinal):
        yield from assignments(rest, found, look_up, ordinal, leaves_open=leaves_open)


def solve(comparisons: Iterable[Comparison], bindings: Bindings, ordinal: Ordinal = no_ordinal) -> Iterator[Bindings]:
    """The ways to extend bindings by equations so that all comparisons hold whose variables get values. Only `range`
    gives more than one."""
    known = [comparison for comparison in comparisons if not is_numbering(comparison)]
    return assignments(known, bindings, lambda *_: (), ordinal, leaves_open=True)


_OPEN = 10_000
"""What a literal costs some of whose variables have no value yet, and that gives them none."""


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
                is_constructed = isinstance(other, Apply) and is_constructor(other.functor)
                if isinstance(side, Variable) and side.name in bindings and is_constructed:
                    return 0
            return _OPEN if missing else 0
        case Comparison() | Negation() | Aggregation():
            return _OPEN if missing else 0
        case _:
            assert_never(literal)


def extended(literal: Literal, bindings: Bindings, look_up: LookUp, ordinal: Ordinal) -> Iterator[Bindings]:
    """The ways to extend bindings so that a literal holds, once what it needs has values."""
    match literal:
        case Atom():
            yield from matches(literal, bindings, look_up, ordinal)
        case Negation():
            if not is_matched(literal.atom, bindings, look_up, ordinal):
                yield bindings
        case Comparison():
            yield from _compared(literal, bindings, ordinal)
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


def _compared(comparison: Comparison, bindings: Bindings, ordinal: Ordinal) -> Iterator[Bindings]:
    """The bindings where a comparison holds, extended by the variable that it gives a value, or by the parts of one."""
    try:
        parts = take_apart(comparison, bindings)
        if parts is not None:
            yield {**bindings, **parts}
            return
        for side, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
            if comparison.operator == "=" and isinstance(side, Variable) and side.name not in bindings:
                is_range = isinstance(other, Apply) and other.functor == "range"
                values = range_of(other, bindings, ordinal) if is_range and isinstance(other, Apply) else None
                for value in [value_of(other, bindings, ordinal)] if values is None else values:
                    yield {**bindings, side.name: value}
                return
    except NoValue:
        return
    if holds(comparison, bindings, ordinal):
        yield bindings


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


# --- literals with values in place of variables ----------------------------------------------------------------------


def assignment_of(bindings: Bindings, literal: Aggregation) -> Assignment:
    """Bindings as a member of an aggregate: the variables written in its body, and the values it folds. NaN, which
    differs from itself, stands as its name."""
    told = () if literal.target is None else tuple(names_of(literal.target))
    return frozenset(
        (name, value if value == value else "NaN")
        for name, value in bindings.items()
        if name in told or not is_implied_name(name)
    )


def _plain(name: str) -> str:
    """The name as the program writes it. Wildcards, and names made for expressions, stay as they are: listings show
    `_`, or the expression."""
    return name if is_wildcard_name(name) or is_made_name(name) else written_name(name)


def instantiate(literal: Literal, bindings: Bindings) -> Literal:
    """The literal with values in place of the variables that have one; an aggregate keeps its result and its groups."""
    return cast(Literal, _put(bindings, literal))


def _put(bindings: Bindings, node: Any) -> Any:
    put = partial(_put, bindings)  # a function within would refer to itself, and keep its bindings
    if isinstance(node, Aggregation):
        return replace(node, target=put(node.target), bodies=put(node.bodies))
    if not isinstance(node, Variable):
        return with_parts(node, put)
    if (value := bindings.get(node.name)) is not None:
        return Constant(value, node.base, node.span)
    name = _plain(node.name)
    return node if name == node.name else Variable(name, node.base, node.span)


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


# --- facts that compete ----------------------------------------------------------------------------------------------


MOST_RIVALS = 1_000
"""Candidates that are counted."""


def candidates(fact: Fact, program: CheckedProgram, look_up: LookUp, ordinal: Ordinal) -> int | None:
    """The number of facts that rules give with the same key of a choice domain as a fact, itself included. None if they
    are very many."""
    relation = program.relations[fact.relation]
    found = {sort_key(fact.values)}  # by which NaN equals NaN
    for rule in program.rules:
        if rule.head.relation == fact.relation:
            for key in relation.choices:
                for values in _given_by(rule, fact, key, look_up, ordinal):
                    found.add(sort_key(values))
                    if len(found) > MOST_RIVALS:
                        return None
    return len(found)


def _given_by(
    rule: Rule, fact: Fact, key: Sequence[int], look_up: LookUp, ordinal: Ordinal
) -> Iterator[tuple[Value, ...]]:
    """The facts that a rule gives with the values of a fact in the columns of a key."""
    arguments = [argument for argument in rule.head.arguments if isinstance(argument, Expression)]
    bindings: dict[str, Value] = {}
    for column in key:
        argument, value = arguments[column], fact.values[column]
        if isinstance(argument, Variable) and not compare("=", bindings.setdefault(argument.name, value), value):
            return
    for found in assignments(rule.body, bindings, look_up, ordinal):
        try:
            values = tuple(value_of(argument, found, ordinal) for argument in arguments)
        except NoValue:
            continue
        if all(compare("=", values[column], fact.values[column]) for column in key):
            yield values


def holders(fact: Fact, relation: Relation, look_up: LookUp) -> Iterator[tuple[Fact, str]]:
    """The facts that have a key of a choice domain in common with a fact which is absent, each with that key."""
    for key in relation.choices:
        pattern = [value if column in key else None for column, value in enumerate(fact.values)]
        names = ", ".join(f"{relation.attributes[column].name} = {fact.values[column]!r}" for column in key)
        for values in look_up(fact.relation, pattern):
            yield Fact(fact.relation, values), names


def dominating(
    fact: Fact, program: CheckedProgram, look_up: LookUp, ordinal: Ordinal, by: Fact | None = None
) -> Iterator[tuple[Fact, Rule]]:
    """The facts that dominate a fact, which need not be present, each with the subsumption; if `by` is given, only that
    fact."""
    width = len(fact.values)

    def with_both(relation: str, pattern: Pattern) -> Iterator[tuple[Value, ...]]:
        yield from look_up(relation, pattern)
        for other in (fact,) if by is None else (fact, by):
            fits = all(
                wanted is None or compare("=", wanted, value)
                for wanted, value in zip(pattern, other.values, strict=False)
            )
            if relation == other.relation and fits:
                yield other.values

    for rule in program.subsumptions:
        if rule.head.relation.removesuffix(MARK) != fact.relation:
            continue
        atoms = [literal for literal in rule.body if isinstance(literal, Atom) and literal.relation == fact.relation]
        one, other = atoms[:2]
        bindings: dict[str, Value] = {}
        deferred: list[tuple[Expression, Value]] = []
        sides = [(one, fact)] if by is None else [(one, fact), (other, by)]
        if not all(match_atom(atom, side.values, bindings, deferred) for atom, side in sides):
            continue
        for found in assignments(rule.body, bindings, with_both, ordinal):
            known = [entry for entry in deferred if all(name in found for name in names_of(entry[0]))]
            if are_met(known, found, ordinal):
                head = [argument for argument in rule.head.arguments if isinstance(argument, Expression)]
                pair = tuple(value_of(argument, found, ordinal) for argument in head)
                if sort_key(pair[width:]) != sort_key(fact.values):
                    yield Fact(fact.relation, pair[width:]), rule
