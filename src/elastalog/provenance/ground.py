"""What ground expressions come to, on plain values, following `analysis.functors` to the letter.

Proofs are put together and checked with this, `comparisons` and `folds`. They share nothing with the backends, so that
a checked proof does not rest on their arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never, cast

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.functor_values import BITS
from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.infer_types import build
from elastalog.analysis.program import Apply, Base, Constant, Expression, Value, Variable
from elastalog.analysis.values import Branch, Nil, Record
from elastalog.late import dataclass
from elastalog.provenance.fact import Bindings

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
    """What only a run knows: the numbers of values, the functors that its user implements, by name, and whether its
    integers wrap. `look` is called at every step of what may take long, and may raise."""

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
    try:
        value = _result(function, arguments)
    except Exception as error:
        raise NoValue(f"{expression.functor} raised {type(error).__name__}") from None
    if value is None:
        raise NoValue(f"{expression.functor} has no value here")
    if isinstance(value, str) != (expression.base is Base.SYMBOL) or isinstance(value, bool):
        raise NoValue(f"{expression.functor} gave {value!r}")
    return normal(value, expression.base)


def _result(function: Callable[..., Any], arguments: tuple[Value, ...]) -> Any:
    """What a function gives for some arguments; one over arrays gets arrays of one element."""
    if not getattr(function, "is_vectorised", False):
        return function(*arguments)
    import pyarrow as pa

    (value,) = function(*(pa.array([argument]) for argument in arguments))
    return value.as_py() if hasattr(value, "as_py") else value


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
