"""Ground expressions evaluated on plain values, following `analysis.functors` to the letter: which comparisons hold,
how values are taken apart, and the results of aggregates.

Proofs are built and checked with this. It shares nothing with the backends, so that a checked proof does not rest on
their arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, assert_never, cast

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.functor_values import BITS, TESTS, NotRegular, greatest, least, matcher
from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.infer_types import build
from elastalog.analysis.program import Apply, Base, Comparison, Constant, Expression, Value, Variable
from elastalog.analysis.values import Branch, Nil, Record, sort_key
from elastalog.diagnostics.source import Span
from elastalog.late import dataclass
from elastalog.provenance.fact import Bindings
from elastalog.syntax.keywords import NOT

Ordinal = Callable[[Any], int | None]
"""The number of a symbol or record in a run, which only that run knows."""

BOUNDS = {Base.NUMBER: (-(1 << 63), (1 << 63) - 1), Base.UNSIGNED: (0, (1 << 64) - 1)}
"""The least and the greatest integer of a type."""
_BITWISE = frozenset(("band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru"))
_WRAPPING = frozenset(("+", "-", "*", "/", "^", "neg", "itou", "utoi"))


class NoValue(Exception):
    """An expression has no value here: the instantiation fails."""


class Unbound(Exception):
    """A variable has no value yet."""


def no_ordinal(_: object) -> int | None:
    """Where the numbers of values are not known."""
    return None


def value_of(expression: Expression, bindings: Bindings, ordinal: Ordinal = no_ordinal) -> Value:
    """The value of an expression. Raises NoValue, also where the result does not fit its type, or Unbound."""
    match expression:
        case Variable():
            if expression.name not in bindings:
                raise Unbound(expression.name)
            return bindings[expression.name]
        case Constant():
            return normal(expression.value, expression.base)
        case Apply():
            if expression.functor == "range":
                raise NoValue("a range has many values: see `range_of`")
            if expression.functor == "autoinc":
                raise NoValue("only the run knows the number of a derivation")
            arguments = [value_of(argument, bindings, ordinal) for argument in expression.arguments]
            if expression.functor == "ord":
                number = ordinal(arguments[0])
                if number is None:
                    raise NoValue(f"the number of {arguments[0]!r} is not known")
                return number
            if expression.functor[0] == "@":
                return applied(expression, tuple(arguments), getattr(ordinal, "functions", {}))
            if is_constructor(expression.functor):
                return build(expression, arguments)
            if getattr(ordinal, "wraps", False) and expression.functor in _WRAPPING and expression.base in BOUNDS:
                return _wrapped(expression.functor, arguments, expression.base)
            return normal(apply(expression.functor, arguments, expression.base), expression.base)
        case _:
            assert_never(expression)


@dataclass(frozen=True, slots=True)
class Run:
    """What only a run knows: the numbers of values, the user's functors by name, and whether integers wrap. `look` is
    called at every step that may take long, and may raise."""

    ordinal: Ordinal
    functions: Mapping[str, Callable[..., Any]]
    wraps: bool = False
    look: Callable[[], None] = lambda: None

    def __call__(self, value: object) -> int | None:
        return self.ordinal(value)


def applied(expression: Apply, arguments: tuple[Value, ...], functions: Mapping[str, Callable[..., Any]]) -> Value:
    """What a functor of the user gives."""
    function = functions.get(expression.functor[1:])
    if function is None:
        raise NoValue(f"the functor `{expression.functor}` is not known")
    from elastalog.relations.functions import BadFunction, result_of

    try:
        value = result_of(expression.base, function, arguments)
    except BadFunction as error:
        raise NoValue(f"{expression.functor} {error}") from None
    if value is None:
        raise NoValue(f"{expression.functor} has no value here")
    return normal(value, expression.base)


def apply(functor: str, arguments: list[Any], base: Base) -> Any:
    """What a functor gives; may be outside its type. Raises NoValue where it fails."""
    compute = FUNCTORS[functor].compute
    assert compute is not None
    value = compute(*arguments)
    if value is None:
        raise NoValue(f"`{functor}` has no value for {', '.join(map(repr, arguments))}")
    return modulo_bits(value, base) if functor in _BITWISE else value


def _wrapped(functor: str, arguments: list[Any], base: Base) -> int:
    """An integer modulo 2^64."""
    if functor == "^":
        if arguments[1] < 0:
            raise NoValue("negative exponent")
        return modulo_bits(int(pow(arguments[0], arguments[1], BITS)), base)
    return modulo_bits(int(apply(functor, arguments, base)), base)


def modulo_bits(value: int, base: Base) -> int:
    """An integer as the type has it, however large it is."""
    bits = value % BITS
    return bits - BITS if base is Base.NUMBER and bits >= BITS // 2 else bits


def normal(value: Any, base: Base) -> Value:
    """The one form of a value of a type: -0.0 is 0.0. Raises NoValue outside the type."""
    if base is Base.FLOAT:
        return float(value) + 0.0
    if base in BOUNDS:
        least, most = BOUNDS[base]
        if not least <= value <= most:
            raise NoValue(f"{value} does not fit the type {base.value}")
        return int(value)
    if isinstance(value, Nil | Record | Branch):
        return value
    return cast(Value, value) if isinstance(value, tuple) else str(value)


# --- comparisons and equations ---------------------------------------------------------------------------------------


MOST_IN_RANGE = 1_000_000
"""Values of one `range` that are looked at; the engine refuses longer ones."""


def parts_of(value: Value, constructor: Apply) -> tuple[Any, ...] | None:
    """The parts of a value that a constructor has built, None if another has."""
    parts: object = value
    if constructor.functor != "[]":
        parts = value.parts if isinstance(value, Branch) and value.name == constructor.functor[1:] else None
    return parts if isinstance(parts, tuple) and len(parts) == len(constructor.arguments) else None


def take_apart(comparison: Comparison, bindings: Bindings) -> dict[str, Value] | None:
    """The values that an equation `variable = [parts]` gives to variables among the parts; None if it is no such
    equation, or the variable has no value yet. Raises NoValue if the value has another form, or the parts clash with
    known values."""
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


_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def compare(operator: str, left: Any, right: Any) -> bool:
    """Whether a comparison of two values holds. As a value, NaN equals itself."""
    match operator:
        case "=":
            return bool(left == right) or (left != left and right != right)
        case "!=":
            return not compare("=", left, right)
        case "<" | "<=" | ">" | ">=" if isinstance(left, Branch):
            return compare(operator, sort_key(left), sort_key(right))
        case "<" | "<=" | ">" | ">=":
            return bool(_ORDERS[operator](left, right))
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


def is_numbering(comparison: Comparison) -> bool:
    """Whether a comparison says that a variable is the number of the derivation. Only the run knows numbers: any number
    that a derivation has is right."""
    return isinstance(comparison.right, Apply) and comparison.right.functor == "autoinc"


# --- aggregates ------------------------------------------------------------------------------------------------------


def fold(operator: str, values: list[Any], base: Base, ordinal: Ordinal = no_ordinal) -> Value | None:
    """The result of an aggregate over values, None if it has none. `count` takes one value a member."""
    try:
        match operator:
            case "count":
                return len(values)
            case "sum" if base in BOUNDS and getattr(ordinal, "wraps", False):
                return modulo_bits(sum(values), base)
            case "sum":
                return normal(_exact_sum(values), base)
            case "mean":
                return _exact_sum(values) / len(values) if values else None
            case "min" | "max":
                return None if not values else least(*values) if operator == "min" else greatest(*values)
            case _ if operator[0] == "@":
                return _folded(operator, values, base, getattr(ordinal, "functions", {}))
            case _:
                raise ValueError(operator)
    except (NoValue, OverflowError, ValueError):
        return math.nan if base is Base.FLOAT else None


def _exact_sum(values: list[Any]) -> Any:
    """The sum, rounded once: that of integers not at all, however large they are."""
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    try:
        return math.fsum(values)
    except OverflowError:  # in the end, or only on the way there
        limitless = [value for value in values if not math.isfinite(value)]
        return sum(limitless) if limitless else float(sum(map(Fraction, values)) / 2**64) * 2.0**64


def _folded(operator: str, pairs: list[Any], base: Base, functions: Mapping[str, Callable[..., Any]]) -> Value | None:
    """What a functor of the user makes of values, each with what it starts with, in ascending order."""
    if not pairs:
        return None
    folded = pairs[0][0]
    for value in sorted((pair[1] for pair in pairs), key=sort_key):
        folded = applied(Apply(operator, (), base, Span(0, 0)), (folded, value), functions)
    return cast(Value, folded)


def same(left: Value, right: Value) -> bool:
    """Whether two results of an aggregate are the same; floats may differ by the order in which they were added."""
    if isinstance(left, float) and isinstance(right, float):
        return compare("=", left, right) or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right
