"""Tests whose evaluation may end in an error instead of a value: an overflow, a range that is too long, a functor of
the user that raises."""

from __future__ import annotations

from typing import assert_never

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.planning.logical import Test

_OVERFLOWING = frozenset(
    ("+", "-", "*", "/", "^", "neg", "abs", "to_number", "to_unsigned", "itou", "ftoi", "ftou", "utoi")
)  # fmt: skip


def can_fail(test: Test) -> bool:
    """Whether some values make the test an error."""
    return _can_overflow(test.left) or _can_overflow(test.right)


def _can_overflow(expression: Expression) -> bool:
    match expression:
        case Apply():
            is_integer = expression.base in (Base.NUMBER, Base.UNSIGNED)
            if (
                expression.functor == "range"
                or expression.functor[0] == "@"
                or (is_integer and expression.functor in _OVERFLOWING)
            ):
                return True
            return any(map(_can_overflow, expression.arguments))
        case Variable() | Constant():
            return False
        case _:
            assert_never(expression)
