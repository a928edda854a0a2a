"""Equations solved for their one unknown variable: `h = d + l` gives `d = h - l`.

What is solved are sums and differences, negation, multiplication by a constant, the bijections among bitwise functors
and conversions, all of integers, and texts joined with all parts known but one. An intermediate result of the solution
is an intermediate result of the equation, so a solution overflows only where the equation does, and an overflow means
that the equation has no solution. Floats are not solved: rounding has no inverse.
"""

from __future__ import annotations

from collections.abc import Container

from elastalog.analysis.functors import FUNCTORS
from elastalog.analysis.program import Apply, Base, Comparison, Constant, Expression, Variable, variables_of
from elastalog.late import dataclass

_BITS = 1 << 64


@dataclass(frozen=True, slots=True)
class Solution:
    """The value of a variable if the equation holds: that of an expression, which may have no value. `is_exact`: with
    this value the equation does hold; otherwise it still has to be tested."""

    variable: Variable
    expression: Expression
    is_exact: bool


def solve_equation(equation: Comparison, known: Container[str], wraps: bool) -> Solution | None:
    """The solution of an equation with a single unknown variable that occurs in it once; None if no solution can be
    written down. With `wraps`, integers are taken modulo 2^64."""
    if equation.operator != "=":
        return None
    for side, other in ((equation.left, equation.right), (equation.right, equation.left)):
        unknown = _unknown_in(side, known)
        has_many = isinstance(other, Apply) and other.functor == "range"
        if len(unknown) == 1 and not _unknown_in(other, known) and not has_many:
            return _solve(side, other, unknown[0], wraps)
    return None


def _unknown_in(expression: Expression, known: Container[str]) -> list[Variable]:
    return [variable for variable in variables_of(expression) if variable.name not in known]


def _solve(side: Expression, value: Expression, unknown: Variable, wraps: bool) -> Solution | None:
    """Removes the functors around the unknown one by one, from the outside."""
    is_exact = True
    while isinstance(side, Apply):
        if not side.arguments or any(argument.base is Base.FLOAT for argument in side.arguments):
            return None
        (at,) = (i for i, argument in enumerate(side.arguments) if unknown in variables_of(argument))
        undone = _undo(side, at, value, wraps)
        if undone is None:
            return None
        value = undone
        is_exact = is_exact and (side.functor != "*" or wraps) and side.base is not Base.SYMBOL
        side = side.arguments[at]
    return Solution(unknown, value, is_exact)


def _undo(apply: Apply, at: int, value: Expression, wraps: bool) -> Expression | None:
    """The argument at a position, given the other arguments and the value."""

    def made(functor: str, *arguments: Expression) -> Apply:
        return Apply(functor, arguments, apply.arguments[at].base, apply.span)

    name = apply.functor
    if apply.base is Base.SYMBOL:
        return _rest(apply, at, value) if name in ("cat", "+") else None
    inverse = FUNCTORS[name].inverse if name in FUNCTORS else None
    if inverse is not None:
        return made(inverse, value)
    if len(apply.arguments) != 2:
        return None
    other = apply.arguments[1 - at]
    match name:
        case "+":
            return made("-", value, other)
        case "-":
            return made("+", value, other) if at == 0 else made("-", other, value)
        case "bxor":
            return made("bxor", value, other)
        case "*" if isinstance(other, Constant) and isinstance(other.value, int) and other.value:
            if not wraps:
                return made("/", value, other)
            if other.value % 2:  # only odd numbers have an inverse among integers that wrap
                return made("*", value, Constant(_inverse(other.value, other.base), other.base, other.span))
    return None


def _inverse(number: int, base: Base) -> int:
    inverse = pow(number, -1, _BITS)
    return inverse - _BITS if base is Base.NUMBER and inverse >= _BITS // 2 else inverse


def _rest(cat: Apply, at: int, text: Expression) -> Expression:
    """The part of a text that remains without the parts before and after it, if these are where they must be."""

    def number(functor: str, *arguments: Expression) -> Apply:
        return Apply(functor, arguments, Base.NUMBER, cat.span)

    def size(parts: tuple[Expression, ...]) -> Expression:
        total: Expression = Constant(0, Base.NUMBER, cat.span)
        for part in parts:
            total = number("+", total, number("strlen", part))
        return total

    before, others = cat.arguments[:at], (*cat.arguments[:at], *cat.arguments[at + 1 :])
    length = number("-", number("strlen", text), size(others))
    return Apply("substr", (text, size(before), length), Base.SYMBOL, cat.span)
