"""Aggregates over sorted keys: members are sorted by their groups and, within a group, by the value that is folded, so
that the members of a group stand together and its least and greatest value at the ends.

Narrow numbers only: they are their own words, and no sum of them leaves 64 bits. Floats are left to the kernel, whose
sums are rounded once, whatever the order; so are numbers that need a table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from elastalog.analysis.program import Base
from elastalog.backends.gpu.arrays import Array, Arrays, Carrier
from elastalog.backends.gpu.packing import Keys, Packing, Range, packing_of
from elastalog.backends.gpu.sorted_facts import SortedIndex, in_order, segments
from elastalog.backends.kernel.execution.aggregates import Folded
from elastalog.late import dataclass
from elastalog.planning.logical import AggregateRule
from elastalog.relations.limits import MOST_EXACT_INTEGER_IN_FLOAT, WIDE
from elastalog.relations.words import Dictionary

Matrix = npt.NDArray[np.int32]
Vector = npt.NDArray[np.int32]


def why_not(rule: AggregateRule) -> str | None:
    """Why an aggregate is folded by the kernel in any case; None if it need not be."""
    if rule.operator not in ("count", "sum", "mean", "min", "max"):
        return f"`{rule.operator}` is nothing that is folded"
    if rule.target is None:
        return None if rule.groups else "there is nothing but a number of facts to tell"
    return "floats are folded in an order of their own" if rule.target_base is Base.FLOAT else None


def folded(
    rule: AggregateRule,
    members: Matrix,
    left: SortedIndex | None,
    levels: Vector | None,
    arrays: Arrays,
    carrier: Carrier,
    words: Dictionary,
) -> Folded | None:
    """What `fold` of the kernel makes of members, of which there are some, and of which strata before may have left
    all there; the level of a group is one more than the highest of its members, if they have any. None if a value is
    not narrow."""
    wanted = [*range(rule.groups), *(() if rule.target is None else (rule.target,))]
    if left is not None and len(left) == len(members) and levels is None and wanted:
        arrays.claim(4 * len(wanted) * len(left))
        columns, coming_levels = left.packing.columns(left.new, wanted, arrays), None
    else:
        coming = [carrier.send(members[:, column]) for column in wanted]
        coming_levels = None if levels is None else carrier.send(levels.astype(np.int32))
        columns = [arrived() for arrived in coming]
    if rule.target is not None and int(columns[-1].max()) >= WIDE:
        return None
    groups = _sorted_groups(columns, rule.groups, arrays)
    found = np.empty((len(groups.starts), rule.groups + 1), np.int32)
    for column in range(rule.groups):
        found[:, column] = arrays.to_host(groups.first(column))
    found[:, rule.groups] = _result(rule, groups, words)
    if coming_levels is None:
        return Folded(found, None)
    by_level = _sorted_groups([*columns[: rule.groups], coming_levels()], rule.groups, arrays)
    return Folded(found, arrays.to_host(by_level.last(rule.groups)) + np.int32(1))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows in the order of their columns, of which the first are those of groups: group `i` has those from `starts[i]`
    to before `ends[i]`."""

    arrays: Arrays
    packing: Packing
    keys: Keys
    starts: Array
    ends: Array

    def first(self, column: int) -> Array:
        """The words of a column in the first row of each group."""
        return self.packing.column(tuple(part[self.starts] for part in self.keys), column, self.arrays)

    def last(self, column: int) -> Array:
        """The words of a column in the last row of each group."""
        return self.packing.column(tuple(part[self.ends - 1] for part in self.keys), column, self.arrays)

    def sums(self, column: int) -> Array:
        """What the words of a column add up to in each group."""
        self.arrays.claim(12 * len(self.keys[0]))
        words = self.packing.column(self.keys, column, self.arrays)
        until = self.arrays.module.cumsum(words, dtype=np.int64)[self.ends - 1]
        return until - self.arrays.module.concatenate((self.arrays.module.zeros(1, np.int64), until[:-1]))


def _sorted_groups(columns: list[Array], groups: int, arrays: Arrays) -> _Groups:
    """Rows given by columns: those of groups, and perhaps one more."""
    packing = packing_of(tuple(range(len(columns))), [_range(column) for column in columns])
    arrays.claim(8 * packing.parts * len(columns[0]))
    keys = in_order(arrays, packing.pack(columns, arrays), packing.bits)
    apart = keys
    if len(columns) > groups:
        # The last column has the lowest bits of the last part.
        _, _, span = packing.places[-1]
        apart = (*keys[:-1], keys[-1] >> span.bits)
    arrays.claim(2 * keys[0].nbytes)
    return _Groups(arrays, packing, keys, *segments(arrays, apart))


def _range(column: Array) -> Range:
    least, most = int(column.min()), int(column.max())
    return Range(least, max((most - least).bit_length(), 1))


def _result(rule: AggregateRule, groups: _Groups, words: Dictionary) -> Vector:
    """The word of the result of each group."""
    to_host, target = groups.arrays.to_host, rule.groups
    match rule.operator:
        case "min":
            return to_host(groups.first(target))
        case "max":
            return to_host(groups.last(target))
        case "count":
            return words.from_integers(to_host(groups.ends - groups.starts))
    sums = to_host(groups.sums(target))
    if rule.operator == "sum":
        return words.from_integers(sums if rule.target_base is Base.NUMBER else sums.view(np.uint64))
    sizes = to_host(groups.ends - groups.starts)
    if int(np.abs(sums).max()) <= MOST_EXACT_INTEGER_IN_FLOAT:
        return words.from_floats(sums / sizes)
    # Python divides integers of any size with one rounding.
    return words.from_floats(np.array([a / b for a, b in zip(sums.tolist(), sizes.tolist(), strict=True)], np.float64))
