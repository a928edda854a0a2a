"""Which comparisons hold, on plain values, and what equations say of variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.functor_values import TESTS, NotRegular, matcher
from elastalog.analysis.program import Apply, Comparison, Constant, Expression, Value, Variable
from elastalog.analysis.values import Branch, sort_key
from elastalog.provenance.fact import Bindings
from elastalog.provenance.ground import NoValue, Ordinal, Run, Unbound, no_ordinal, normal, value_of
from elastalog.syntax.keywords import NOT

MOST_IN_RANGE = 1_000_000
"""Values of one `range` that are looked at; the engine refuses longer ones."""


def parts_of(value: Value, constructor: Apply) -> tuple[Any, ...] | None:
    """The parts of a value that a constructor has built, None if another has."""
    parts: object = value
    if constructor.functor != "[]":
        parts = value.parts if isinstance(value, Branch) and value.name == constructor.functor[1:] else None
    return parts if isinstance(parts, tuple) and len(parts) == len(constructor.arguments) else None


def take_apart(comparison: Comparison, bindings: Bindings) -> dict[str, Value] | None:
    """What an equation `variable = [parts]` gives to the variables among the parts, None if it is none or the variable
    has no value yet. Raises NoValue if the value is of another form or the parts clash with what is known."""
    variable, constructor = comparison.left, comparison.right
    if (
        comparison.operator != "="
        or not isinstance(variable, Variable)
        or not isinstance(constructor, Apply)
        or not is_constructor(constructor.functor)
        or variable.name not in bindings
    ):
        return None
    parts = parts_of(bindings[variable.name], constructor)
    if parts is None:
        raise NoValue(f"{bindings[variable.name]!r} is of another form")
    found: dict[str, Value] = {}
    for term, part in zip(constructor.arguments, parts, strict=True):
        match term:
            case Variable():
                known = bindings[term.name] if term.name in bindings else found.setdefault(term.name, part)
                if not compare("=", known, part):
                    raise NoValue(f"{part!r} is not {known!r}")
            case Constant():
                if not compare("=", normal(term.value, term.base), part):
                    raise NoValue(f"{part!r} is not {term.value!r}")
            case Apply():
                raise NoValue("a part that is computed")
    return found


def range_of(generator: Apply, bindings: Bindings, ordinal: Ordinal = no_ordinal) -> Iterator[Value]:
    """The values of `range(…)`, the first million at most."""
    numbers: list[Any] = [value_of(argument, bindings, ordinal) for argument in generator.arguments]
    look = ordinal.look if isinstance(ordinal, Run) else None
    start, end = numbers[:2]
    step = numbers[2] if len(numbers) > 2 else 1 if start <= end else -1
    if step == 0:
        if start != end:
            yield start
        return
    for _ in range(MOST_IN_RANGE):
        if not (start < end if step > 0 else start > end):
            return
        if look is not None:
            look()
        yield start
        start += step


def compare(operator: str, left: Any, right: Any) -> bool:
    """Whether a comparison of two values holds. As a value, NaN equals itself."""
    match operator:
        case "=":
            return bool(left == right) or (left != left and right != right)
        case "!=":
            return not compare("=", left, right)
        case "<" | "<=" | ">" | ">=" if isinstance(left, Branch):
            return compare(operator, sort_key(left), sort_key(right))
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "match":
            try:
                return matcher(left)(right)
            except NotRegular:
                return False  # a pattern that is none matches nothing
        case _:
            return TESTS[operator](left, right)


def holds(comparison: Comparison, bindings: Bindings, ordinal: Ordinal = no_ordinal) -> bool:
    """Whether a comparison holds; where a side has no value it does not, and its negation does. Raises Unbound."""
    if comparison.operator.startswith(NOT):
        return not holds(replace(comparison, operator=comparison.operator.removeprefix(NOT)), bindings, ordinal)
    try:
        left = value_of(comparison.left, bindings, ordinal)
        if isinstance(comparison.right, Apply) and comparison.right.functor == "range":
            return any(compare("=", left, value) for value in range_of(comparison.right, bindings, ordinal))
        return compare(comparison.operator, left, value_of(comparison.right, bindings, ordinal))
    except NoValue:
        return False


def solve(comparisons: Iterable[Comparison], bindings: Bindings, ordinal: Ordinal = no_ordinal) -> Iterator[Bindings]:
    """The ways to extend bindings by the equations so that all comparisons hold whose variables get a value. Only
    `range` gives more than one. Comparisons that stay without values are left out."""
    pending = [comparison for comparison in comparisons if not is_numbering(comparison)]
    known = dict(bindings)
    while True:
        waiting: list[Comparison] = []
        for comparison in pending:
            try:
                parts = take_apart(comparison, known)
            except NoValue:
                return
            if parts is not None:
                known.update(parts)
                continue
            defined = _definition(comparison, known)
            if defined is not None:
                name, expression = defined
                if isinstance(expression, Apply) and expression.functor == "range":
                    try:
                        values = list(range_of(expression, known, ordinal))
                    except Unbound:
                        waiting.append(comparison)
                        continue
                    except NoValue:
                        return
                    rest = [other for other in pending if other is not comparison]
                    for value in values:
                        yield from solve(rest, {**known, name: value}, ordinal)
                    return
                try:
                    known[name] = value_of(expression, known, ordinal)
                except Unbound:
                    waiting.append(comparison)
                except NoValue:
                    return
                continue
            try:
                if not holds(comparison, known, ordinal):
                    return
            except Unbound:
                waiting.append(comparison)
        if len(waiting) == len(pending):
            yield known
            return
        pending = waiting


def is_numbering(comparison: Comparison) -> bool:
    """Whether a comparison says that a variable is the number of the derivation. Only the run knows numbers: any that a
    derivation has is right."""
    return isinstance(comparison.right, Apply) and comparison.right.functor == "autoinc"


def define(comparisons: Iterable[Comparison], bindings: Bindings, ordinal: Ordinal = no_ordinal) -> dict[str, Value]:
    """Bindings extended by what equations define, whether or not comparisons hold; ranges define nothing."""
    pending = list(comparisons)
    known = dict(bindings)
    grows = True
    while grows:
        grows = False
        for comparison in pending:
            try:
                parts = take_apart(comparison, known)
            except NoValue:
                parts = None
            if parts:
                known.update(parts)
                grows = True
            defined = _definition(comparison, known)
            if defined is None or (isinstance(defined[1], Apply) and defined[1].functor == "range"):
                continue
            try:
                known[defined[0]] = value_of(defined[1], known, ordinal)
                grows = True
            except (Unbound, NoValue):
                continue
    return known


def _definition(comparison: Comparison, known: Bindings) -> tuple[str, Expression] | None:
    """The unbound variable that an equation defines, and by what."""
    if comparison.operator != "=":
        return None
    for side, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if isinstance(side, Variable) and side.name not in known:
            return side.name, other
    return None
