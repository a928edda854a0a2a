"""Columns of values that expressions give for a block of rows, and the diagnostics of their evaluation.

A column is a triple: the values (one for every row, or a single one for all rows), the rows where there is a value
(None: all), and a bound that no value's magnitude exceeds. Values of rows without a value are arbitrary but within the
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from elastalog.analysis.program import Apply, Base, Value
from elastalog.backends.kernel.store.set_table import compress
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.relations.limits import LEAST_NUMBER, MOST_NUMBER, MOST_UNSIGNED
from elastalog.relations.words import Dictionary

Matrix: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Column: TypeAlias = tuple[Values, Mask | None, int]
Evaluate: TypeAlias = Callable[[Matrix, int], Column]
"""Gives the column of an expression for the first rows of a block."""

FULL = 1 << 64
"""The bound of columns about which nothing is known."""

DTYPES: Mapping[Base, Any] = {
    Base.NUMBER: np.int64,
    Base.UNSIGNED: np.uint64,
    Base.FLOAT: np.float64,
    Base.SYMBOL: np.int32,
    Base.RECORD: np.int32,
}
RANGES = {Base.NUMBER: (LEAST_NUMBER, MOST_NUMBER), Base.UNSIGNED: (0, MOST_UNSIGNED)}
WRAPPING = frozenset(("+", "-", "*", "/", "^", "neg", "itou", "utoi"))
"""Functors whose results wrap, if the program says so; conversions of floats and texts never do."""
INFIX = ("+", "-", "*", "/", "%", "^")


def fits(value: int, base: Base) -> bool:
    """Whether an integer is within its base type."""
    least, most = RANGES[base]
    return least <= value <= most


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """The rows where two columns have a value."""
    if left is None:
        return right
    return left if right is None else left & right


def evaluated(columns: Sequence[Evaluate], block: Matrix, used: int) -> tuple[list[Values], Mask | None]:
    """The values of several columns, and the rows where all of them have one."""
    values, valid = [], None
    for column in columns:
        own, own_valid, _ = column(block, used)
        values.append(own)
        valid = both(valid, own_valid)
    return values, valid


def keep_rows(block: Matrix, used: int, mask: Mask) -> int:
    """Moves the rows of a mask, which may have one element for all, to the front; returns their number."""
    if len(mask) != used:
        return used if mask[0] else 0
    return int(compress(block, used, mask))


class Scope(NamedTuple):
    """What the expressions of a step refer to: variables by their slots, values by their words, and the program that
    errors point to."""

    slots: Mapping[str, int]
    dictionary: Dictionary
    source: Source


@dataclass(frozen=True, slots=True)
class Site:
    """Where a functor stands, for the diagnostics of its evaluation."""

    apply: Apply
    source: Source
    wraps: bool = False

    @property
    def may_wrap(self) -> bool:
        """Whether a result outside its type is taken modulo 2^64."""
        return self.wraps and self.apply.functor in WRAPPING

    def check(self, is_outside: Mask, valid: Mask | None, *operands: Values) -> None:
        """Raises E0601 with the operands of the first row that has a value outside the type of the result."""
        if self.may_wrap:
            return
        if valid is not None:
            is_outside = is_outside & valid
        if is_outside.any():
            row = int(is_outside.argmax())
            raise self.overflow(*(operand.item(row if len(operand) > 1 else 0) for operand in operands))

    def check_exactly(
        self, exact: Callable[..., int], is_suspicious: Mask, valid: Mask | None, *operands: Values
    ) -> None:
        """Like `check`, for the suspicious rows, by unlimited integers."""
        if self.may_wrap or not is_suspicious.any():
            return
        base = self.apply.base
        columns = np.broadcast_arrays(is_suspicious if valid is None else is_suspicious & valid, *operands)
        rows = np.flatnonzero(columns[0])
        for values in zip(*(column[rows].tolist() for column in columns[1:]), strict=True):
            if not fits(exact(*values), base):
                raise self.overflow(*values)

    def overflow(self, *operands: Value) -> ElastalogError:
        """The error that an operation has a result outside its type."""
        base = self.apply.base
        name = self.apply.functor
        shown = [shown_value(operand) for operand in operands]
        if name in INFIX:
            text = f" {name} ".join(shown)
        elif name == "neg":
            text = f"-({shown[0]})"
        else:
            text = f"{name}({', '.join(shown)})"
        least, most = RANGES[base]
        return ElastalogError.of(
            "E0601", self.apply.span, source=self.source, text=text, name=name, base=base.value, least=least, most=most
        )


def shown_value(value: Value) -> str:
    """A value as a program would write it, shortened when long."""
    if isinstance(value, str):
        return '"' + (value if len(value) <= 40 else value[:39] + "…") + '"'
    return repr(value)
