"""How one variant of a clause runs: a start, then probes, each followed by actions on the rows it gave.

Rows of bindings are matrices of words; a *slot* is a column of such a matrix. Every step states the layout of the
matrix it makes (`slots`, `width`), so a backend needs no knowledge of variables beyond the expressions of actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from elastalog.analysis.program import Apply, Base, Constant, Expression
from elastalog.late import dataclass
from elastalog.planning.logical import Clause

ROW = -1
"""Stands, in place of a column, for the row number of the fact."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Puts a constant into a slot."""

    slot: int
    constant: Constant


@dataclass(frozen=True, slots=True)
class Copy:
    source: int
    slot: int


@dataclass(frozen=True, slots=True)
class Compute:
    """Evaluates an expression into a slot; rows for which it has no value are dropped. `drops_errors`: so are those for
    which it overflows. `is_sought`: the value is one of a fact that is looked for, so that rows may be dropped if no
    fact can have it."""

    slot: int
    expression: Expression
    drops_errors: bool = False
    is_sought: bool = False


@dataclass(frozen=True, slots=True)
class Generate:
    """Puts each result of a `range` into a slot, in a row of its own. `drops_errors`: rows for which it fails have
    none."""

    slot: int
    expression: Apply
    drops_errors: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the rows for which a comparison holds. `drops_errors`: it does not for those for which it overflows."""

    operator: str
    base: Base
    left: Expression
    right: Expression
    drops_errors: bool = False


@dataclass(frozen=True, slots=True)
class KeepEqual:
    """Keeps the rows whose two slots hold the same word."""

    left: int
    right: int


@dataclass(frozen=True, slots=True)
class KeepConstant:
    """Keeps the rows whose slot holds a constant."""

    slot: int
    constant: Constant


@dataclass(frozen=True, slots=True)
class TakeApart:
    """Takes the records of a slot apart by a constructor, whose parts are variables and constants; rows with other
    records are dropped. `taken`: parts and the slots they go into; `checked`: parts and the slots that must hold them
    already; `fixed`: parts and the constants that they must be."""

    slot: int
    constructor: Apply
    taken: tuple[tuple[int, int], ...]
    checked: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[int, Constant], ...]


Action: TypeAlias = Fill | Copy | Compute | Generate | Keep | KeepEqual | KeepConstant | TakeApart


@dataclass(frozen=True, slots=True)
class Gather:
    """The start: rows of a relation (the delta, all rows, or the heads of backward evaluation), or one row without
    columns when `relation` is None. `goal` is the goal whose relation is read, None for heads and for the single
    row."""

    relation: str | None
    goal: int | None
    take: tuple[tuple[int, int], ...]
    slots: Mapping[str, int]
    width: int
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """Finds, for every row, the facts of a relation that agree with it on the key; `is_negated` keeps the rows without
    any.

    `is_before`: the goal stands before the goal the variant starts at, so facts of the delta are left to another
    variant."""

    relation: str
    goal: int
    is_negated: bool
    is_before: bool
    key_columns: tuple[int, ...]
    key_slots: tuple[int, ...]
    is_member: bool
    keep: tuple[tuple[int, int], ...]
    take: tuple[tuple[int, int], ...]
    slots: Mapping[str, int]
    width: int
    actions: tuple[Action, ...]

    @property
    def is_filter(self) -> bool:
        """It lets rows through or not, and adds nothing to them."""
        return self.is_member or self.is_negated


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a clause. The first slots of its last step are `results` in order."""

    clause: Clause
    gather: Gather
    probes: tuple[Probe, ...]
    results: tuple[str | Constant, ...]
