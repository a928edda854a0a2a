"""The actions between joins on columns of words. Constants, copies, equalities, arithmetic and comparisons of narrow
numbers run where the columns are; all else is brought to this process, where the kernel's own actions run on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable, names_of
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.kernel.expressions.actions import compile_actions
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Action, Compute, Copy, Fill, Keep, KeepConstant, KeepEqual
from elastalog.relations.limits import LEAST_NARROW, WIDE
from elastalog.relations.words import Dictionary

Columns: TypeAlias = list[Array]
"""By slot; None where there is nothing yet."""
Run: TypeAlias = Callable[[Columns, int], tuple[Columns, int]]
_Step: TypeAlias = Callable[[Columns, int], tuple[Columns, int] | None]
"""None: not with these words."""

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_MOST_BITS = 62


def runner(
    actions: tuple[Action, ...],
    slots: Mapping[str, int],
    width: int,
    arrays: Arrays,
    dictionary: Dictionary,
    source: Source,
) -> Run:
    """Runs the actions of a step on the columns it made; returns the columns of the rows that are left."""
    compiler = _Compiler(slots, arrays, dictionary)
    steps = [compiler.step(action) for action in actions]
    host = _HostActions(actions, slots, width, arrays, dictionary, source)
    if any(step is None for step in steps):
        return host

    def run(columns: Columns, size: int) -> tuple[Columns, int]:
        given, given_size = list(columns), size
        for step in steps:
            if not size:
                break
            done = step(columns, size)  # type: ignore[misc]
            if done is None:
                return host(given, given_size)
            columns, size = done
        return columns, size

    return run


class _HostActions:
    """All actions of a step in this process."""

    def __init__(
        self,
        actions: tuple[Action, ...],
        slots: Mapping[str, int],
        width: int,
        arrays: Arrays,
        dictionary: Dictionary,
        source: Source,
    ) -> None:
        self._make = lambda: compile_actions(actions, slots, dictionary, source)
        self._run: Callable[..., tuple[np.ndarray, int]] | None = None
        self._width = width
        self._arrays = arrays

    def __call__(self, columns: Columns, size: int) -> tuple[Columns, int]:
        if self._run is None:
            self._run = self._make()
        block = np.zeros((size, max(self._width, 1)), np.int32)
        for slot, column in enumerate(columns):
            if column is not None:
                block[:, slot] = self._arrays.to_host(column)
        block, size = self._run(block, size)
        return [self._arrays.to_device(np.ascontiguousarray(block[:size, s])) for s in range(self._width)], size


class _Compiler:
    def __init__(self, slots: Mapping[str, int], arrays: Arrays, dictionary: Dictionary) -> None:
        self._slots = slots
        self._arrays = arrays
        self._dictionary = dictionary

    def step(self, action: Action) -> _Step | None:
        match action:
            case Fill(slot, constant):
                word = self._word(constant)
                return lambda columns, size: (_with(columns, slot, self._full(size, word)), size)
            case Copy(origin, slot):
                return lambda columns, size: (_with(columns, slot, columns[origin]), size)
            case KeepEqual(left, right):
                return lambda columns, size: _kept(columns, columns[left] == columns[right])
            case KeepConstant(slot, constant):
                word = self._word(constant)
                return lambda columns, size: _kept(columns, columns[slot] == word)
            case Keep(operator, base, left_side, right_side):
                return self._keep(operator, base, left_side, right_side)
            case Compute(slot, expression):
                return self._compute(slot, expression)
            case _:
                return None

    def _word(self, constant: Constant) -> np.int32:
        return np.int32(self._dictionary.encode_value(constant.base, constant.value))

    def _full(self, size: int, word: np.int32) -> Array:
        return self._arrays.module.full(size, word, np.int32)

    def _keep(self, operator: str, base: Base, left: Expression, right: Expression) -> _Step | None:
        plain = Variable | Constant
        if operator in ("=", "!=") and base is not Base.FLOAT and isinstance(left, plain) and isinstance(right, plain):
            # Words are equal when their values are.
            sides = self._words(left), self._words(right)

            def same(columns: Columns, size: int) -> tuple[Columns, int]:
                is_equal = sides[0](columns) == sides[1](columns)
                is_equal = self._arrays.spread(is_equal, size)
                return _kept(columns, is_equal if operator == "=" else ~is_equal)

            return same
        if base is not Base.NUMBER or operator not in _COMPARISONS:
            return None
        one, other = self._number(left), self._number(right)
        if one is None or other is None:
            return None
        compare = _comparison(operator)

        def holds(columns: Columns, size: int) -> tuple[Columns, int] | None:
            if not self._are_narrow(columns, left, right):
                return None
            mask = self._arrays.spread(compare(one(columns), other(columns)), size)
            return _kept(columns, mask)

        return holds

    def _compute(self, slot: int, expression: Expression) -> _Step | None:
        if expression.base is not Base.NUMBER:
            return None
        number = self._number(expression)
        if number is None:
            return None

        def compute(columns: Columns, size: int) -> tuple[Columns, int] | None:
            if not self._are_narrow(columns, expression):
                return None
            values = self._arrays.spread(number(columns), size)
            if bool(((values >= WIDE) | (values < LEAST_NARROW)).any()):
                return None
            return _with(columns, slot, values.astype(np.int32)), size

        return compute

    def _words(self, side: Variable | Constant) -> Callable[[Columns], Array]:
        if isinstance(side, Constant):
            word = self._word(side)
            return lambda columns: word
        slot = self._slots[side.name]
        return lambda columns: columns[slot]

    def _number(self, expression: Expression) -> Callable[[Columns], Array] | None:
        """The numbers of an expression that cannot overflow as long as its variables are narrow."""
        return None if _bits(expression) > _MOST_BITS else self._narrow_number(expression)

    def _narrow_number(self, expression: Expression) -> Callable[[Columns], Array]:
        match expression:
            case Constant():
                assert isinstance(expression.value, int)  # `_bits` has seen to it
                value = np.int64(expression.value)
                return lambda columns: value
            case Variable():
                slot = self._slots[expression.name]
                return lambda columns: columns[slot].astype(np.int64)
            case Apply(functor=functor, arguments=arguments):
                parts = [self._narrow_number(argument) for argument in arguments]
                if len(parts) == 1:
                    return lambda columns: -parts[0](columns)
                if functor == "+":
                    return lambda columns: parts[0](columns) + parts[1](columns)
                if functor == "-":
                    return lambda columns: parts[0](columns) - parts[1](columns)
                return lambda columns: parts[0](columns) * parts[1](columns)

    def _are_narrow(self, columns: Columns, *expressions: Expression) -> bool:
        slots = {self._slots[name] for name in names_of(*expressions)}
        return not any(bool((columns[slot] >= WIDE).any()) for slot in slots)


def _bits(expression: Expression) -> int:
    """How many bits its value may need, more than any word has where it cannot be computed here."""
    match expression:
        case Variable():
            return 31 if expression.base is Base.NUMBER else 1 << 10
        case Constant():
            if expression.base is not Base.NUMBER or not isinstance(expression.value, int):
                return 1 << 10
            return expression.value.bit_length()
        case Apply(functor="+" | "-", arguments=arguments):
            return max(map(_bits, arguments)) + 1
        case Apply(functor="*", arguments=arguments):
            return sum(map(_bits, arguments))
        case _:
            return 1 << 10


def _comparison(operator: str) -> Callable[[Array, Array], Array]:
    return {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }[operator]


def _with(columns: Columns, slot: int, column: Array) -> Columns:
    changed = list(columns)
    changed[slot] = column
    return changed


def _kept(columns: Columns, mask: Array) -> tuple[Columns, int]:
    at = mask.nonzero()[0]  # once, and not for every column
    return [None if column is None else column[at] for column in columns], len(at)
