"""The actions between joins on columns of words. Constants, copies, equalities, arithmetic and comparisons of narrow
numbers run where the columns are; all else is brought to this process, where the kernel's own actions run on it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable, names_of
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.kernel.expressions import actions as kernel
from elastalog.backends.kernel.expressions.actions import EQUALITIES, ORDERS
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Action, Compute, Copy, Fill, Keep, KeepConstant, KeepEqual
from elastalog.relations.limits import LEAST_NARROW, WIDE
from elastalog.relations.words import Dictionary

Columns: TypeAlias = list[Array]
"""By slot; None where there is nothing yet."""
Run: TypeAlias = Callable[[Columns, int], tuple[Columns, int]]
_Step: TypeAlias = Callable[[Columns, int], tuple[Columns, int] | None]
"""None: not with these words."""
_Side: TypeAlias = Callable[[Columns], Any]
"""A column of words or numbers, or one for all rows."""

_COMPARISONS = {**ORDERS, **EQUALITIES}
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_MOST_BITS = 62
_TOO_MANY = 1 << 10


def runner(
    actions: tuple[Action, ...],
    slots: Mapping[str, int],
    width: int,
    arrays: Arrays,
    dictionary: Dictionary,
    source: Source,
) -> Run:
    """Runs the actions of a step on the columns it made; returns the columns of the rows that are left."""
    steps = [_step(action, slots, arrays, dictionary) for action in actions]

    @cache
    def made() -> kernel.Run:
        return kernel.compile_actions(actions, slots, dictionary, source)

    def here(columns: Columns, size: int) -> tuple[Columns, int]:
        """All actions in this process."""
        block = np.zeros((size, max(width, 1)), np.int32)
        for slot, column in enumerate(columns):
            if column is not None:
                block[:, slot] = arrays.to_host(column)
        block, size = made()(block, size)
        return [arrays.to_device(np.ascontiguousarray(block[:size, slot])) for slot in range(width)], size

    def there(columns: Columns, size: int) -> tuple[Columns, int]:
        given, given_size = list(columns), size
        for step in steps:
            if not size:
                break
            done = None if step is None else step(columns, size)
            if done is None:
                return here(given, given_size)
            columns, size = done
        return columns, size

    return here if None in steps else there


def _step(action: Action, slots: Mapping[str, int], arrays: Arrays, dictionary: Dictionary) -> _Step | None:
    module = arrays.module

    def word(constant: Constant) -> np.int32:
        return np.int32(dictionary.encode_value(constant.base, constant.value))

    match action:
        case Fill(slot, constant):
            filled = word(constant)
            return lambda columns, size: (_with(columns, slot, module.full(size, filled, np.int32)), size)
        case Copy(origin, slot):
            return lambda columns, size: (_with(columns, slot, columns[origin]), size)
        case KeepEqual(left, right):
            return lambda columns, size: _kept(columns, columns[left] == columns[right])
        case KeepConstant(slot, constant):
            wanted = word(constant)
            return lambda columns, size: _kept(columns, columns[slot] == wanted)
        case Keep(name, base, Variable() | Constant() as one, Variable() | Constant() as other) if (
            name in EQUALITIES and base is not Base.FLOAT
        ):  # words are equal when their values are
            sides = [
                _word_of(side, slots) if isinstance(side, Variable) else _always(word(side)) for side in (one, other)
            ]
            return _keeping(arrays, _COMPARISONS[name], *sides)
        case Keep(name, Base.NUMBER, one, other) if (
            name in _COMPARISONS and max(_bits(one), _bits(other)) <= _MOST_BITS
        ):
            keep = _keeping(arrays, _COMPARISONS[name], _number(one, slots), _number(other, slots))
            return lambda columns, size: keep(columns, size) if _are_narrow(columns, slots, one, other) else None
        case Compute(slot, expression) if expression.base is Base.NUMBER and _bits(expression) <= _MOST_BITS:
            number = _number(expression, slots)

            def compute(columns: Columns, size: int) -> tuple[Columns, int] | None:
                if not _are_narrow(columns, slots, expression):
                    return None
                values = module.broadcast_to(number(columns), size)
                if bool(((values >= WIDE) | (values < LEAST_NARROW)).any()):
                    return None
                return _with(columns, slot, values.astype(np.int32)), size

            return compute
        case _:
            return None


def _keeping(arrays: Arrays, compare: Callable[[Any, Any], Any], one: _Side, other: _Side) -> Run:
    return lambda columns, size: _kept(columns, arrays.module.broadcast_to(compare(one(columns), other(columns)), size))


def _always(value: Any) -> _Side:
    return lambda columns: value


def _word_of(variable: Variable, slots: Mapping[str, int]) -> _Side:
    slot = slots[variable.name]
    return lambda columns: columns[slot]


def _number(expression: Expression, slots: Mapping[str, int]) -> _Side:
    """The numbers of an expression that cannot overflow as long as its variables are narrow (see `_bits`)."""
    match expression:
        case Constant():
            return _always(np.int64(expression.value))  # type: ignore[arg-type]  # `_bits` has seen to it
        case Variable():
            slot = slots[expression.name]
            return lambda columns: columns[slot].astype(np.int64)
        case Apply(functor=functor, arguments=arguments):
            compute, (one, other) = _ARITHMETIC[functor], (_number(argument, slots) for argument in arguments)
            return lambda columns: compute(one(columns), other(columns))


def _are_narrow(columns: Columns, slots: Mapping[str, int], *expressions: Expression) -> bool:
    return not any(bool((columns[slots[name]] >= WIDE).any()) for name in set(names_of(*expressions)))


def _bits(expression: Expression) -> int:
    """How many bits its value may need, more than any word has where it cannot be computed here."""
    match expression:
        case Variable(base=Base.NUMBER):
            return 31
        case Constant(base=Base.NUMBER, value=int() as value):
            return value.bit_length()
        case Apply(functor="+" | "-", arguments=arguments):
            return max(map(_bits, arguments)) + 1
        case Apply(functor="*", arguments=arguments):
            return sum(map(_bits, arguments))
        case _:
            return _TOO_MANY


def _with(columns: Columns, slot: int, column: Array) -> Columns:
    changed = list(columns)
    changed[slot] = column
    return changed


def _kept(columns: Columns, mask: Array) -> tuple[Columns, int]:
    at = mask.nonzero()[0]  # once, and not for every column
    return [None if column is None else column[at] for column in columns], len(at)
