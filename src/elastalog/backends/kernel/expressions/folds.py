"""Aggregates: the members of whole groups folded to one fact a group. No result depends on the order of the members."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from elastalog.analysis.program import Base, UserFunctor
from elastalog.analysis.values import sort_key
from elastalog.backends.kernel.expressions.columns import FULL, RANGES, Matrix, Values, fits
from elastalog.backends.kernel.expressions.string_functions import failed
from elastalog.backends.kernel.expressions.terms import words_of
from elastalog.diagnostics.diagnostic import ElastalogError, InternalError, Label
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import AggregateRule
from elastalog.relations.functions import BadFunction, missing, result_of
from elastalog.relations.limits import MOST_NUMBER, MOST_UNSIGNED, Words
from elastalog.relations.words import Dictionary

Positions: TypeAlias = NDArray[np.int64]

_HALF = 32
_EXACT_IN_FLOAT = 1 << 53


def fold(rule: AggregateRule, members: Matrix, dictionary: Dictionary, source: Source) -> Matrix:
    """One row `groups..., result` for every group among the members, which are all members of their groups. A sum
    outside its type raises E0601."""
    groups = rule.groups
    if rule.operator == "count" and groups == 1 and (counted := _counted(members[:, 0])) is not None:
        least, sizes = counted
        found = np.flatnonzero(sizes)
        return np.stack(((found + least).astype(np.int32), dictionary.from_integers(sizes[found])), axis=1)
    order, starts = group_order(members, groups)
    result = np.empty((len(starts), groups + 1), np.int32)
    if not len(starts):
        return result
    if groups:
        result[:, :groups] = members[order[starts], :groups]
    sizes = np.empty_like(starts)
    sizes[:-1] = starts[1:] - starts[:-1]
    sizes[-1] = len(members) - starts[-1]
    if rule.operator == "count":
        result[:, groups] = dictionary.from_integers(sizes)
        return result
    assert rule.target is not None
    words = members[:, rule.target] if groups == 0 else members[order, rule.target]
    folds = {"sum": _sum, "mean": _mean, "min": _extreme, "max": _extreme}
    make = _by_user if rule.operator[0] == "@" else folds.get(rule.operator)
    if make is None:
        raise InternalError("kernel", f"aggregate `{rule.operator}` is not implemented")
    result[:, groups] = make(_Members(rule, words, starts, sizes, dictionary, source))
    return result


class _Members(NamedTuple):
    """The words that are folded, group after group, where each group starts, and how many they are."""

    rule: AggregateRule
    words: Words
    starts: Positions
    sizes: Positions
    dictionary: Dictionary
    source: Source

    @property
    def values(self) -> Values:
        """The numbers that they stand for."""
        dictionary = self.dictionary
        read = {Base.NUMBER: dictionary.integers, Base.UNSIGNED: dictionary.unsigned, Base.FLOAT: dictionary.floats}
        return read[self.rule.target_base](self.words)


def _counted(words: Words) -> tuple[int, Positions] | None:
    """The least word, and how often it and each after it occurs; None where they lie so far apart that they had better
    be sorted."""
    if not len(words):
        return None
    least, most = int(words.min()), int(words.max())
    return (least, np.bincount(words - np.int64(least))) if most - least <= len(words) else None


def group_order(members: Matrix, groups: int) -> tuple[Positions, Positions]:
    """The rows sorted by their first `groups` columns, and the places in that order where groups start."""
    length = len(members)
    if not length or not groups:
        return np.arange(length), np.zeros(min(length, 1), np.int64)
    if groups <= 2:
        # One 64-bit key sorts much faster than two columns.
        keys = members[:, 0].astype(np.int64)
        if groups == 2:
            keys = (keys << _HALF) + members[:, 1]
        order = np.argsort(keys)
        ordered = keys[order]
        is_start = ordered[1:] != ordered[:-1]
    else:
        order = np.lexsort([members[:, column] for column in reversed(range(groups))])
        rows = members[order, :groups]
        is_start = (rows[1:] != rows[:-1]).any(axis=1)
    return order, np.concatenate([np.zeros(1, np.int64), np.flatnonzero(is_start) + 1])


def _sum(members: _Members) -> Words:
    rule, base, dictionary = members.rule, members.rule.target_base, members.dictionary
    values = members.values
    if base is Base.FLOAT:
        return dictionary.from_floats(np.array(_float_sums(values, members), np.float64))
    if _magnitude(values) * int(members.sizes.max()) <= MOST_NUMBER:
        sums = np.add.reduceat(values, members.starts)
    else:
        exact = _exact_sums(values, members.starts)
        if dictionary.wraps:
            low = np.array([total & MOST_UNSIGNED for total in exact], np.uint64)
            exact = low.view(values.dtype).tolist()
        for total in exact:
            if not fits(total, base):
                least, most = RANGES[base]
                told = {"total": total, "base": base.value, "least": least, "most": most}
                raise ElastalogError.of("E0601.sum", rule.span, source=members.source, **told)
        sums = np.array(exact, values.dtype)
    return words_of(base, dictionary)(sums, FULL)


def _mean(members: _Members) -> Words:
    values, starts, sizes = members.values, members.starts, members.sizes
    if members.rule.target_base is Base.FLOAT:
        means = np.array(_float_sums(values, members), np.float64) / sizes
    elif _magnitude(values) * int(sizes.max()) <= _EXACT_IN_FLOAT:
        means = np.add.reduceat(values, starts) / sizes
    else:  # Python divides unlimited integers with one rounding
        totals = zip(_exact_sums(values, starts), sizes.tolist(), strict=True)
        means = np.array([total / size for total, size in totals], np.float64)
    return members.dictionary.from_floats(means)


def _extreme(members: _Members) -> Words:
    """The word of the least or greatest value of each group; NaN counts only where there is nothing else."""
    rule = members.rule
    reduce: Any = np.fmin if rule.operator == "min" else np.fmax
    return words_of(rule.target_base, members.dictionary)(reduce.reduceat(members.values, members.starts), FULL)


def _by_user(members: _Members) -> Words:
    """What a functor of the user makes of each group, of which records hold what it starts with and the values."""
    rule, words, starts, sizes, dictionary, source = members
    name, base = rule.operator[1:], rule.result_base
    function = dictionary.functions.get(name)
    if function is None:
        raise missing(name, Label(rule.span, "applied here"), source)
    functor = UserFunctor(name, (base, base), base, False, rule.span)
    pairs: list[Any] = dictionary.decode_records(words)
    found = np.empty(len(starts), np.int32)
    for group, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        group_of = pairs[start : start + size]
        value = group_of[0][0]
        for given in sorted((pair[1] for pair in group_of), key=sort_key):
            try:
                folded = result_of(functor.result, function, (value, given))
                if folded is None:
                    raise BadFunction("gave no value", (value, given))
            except BadFunction as bad:
                raise failed(bad, rule.operator, rule.span, source) from bad.__cause__
            value = folded
        found[group] = dictionary.encode_value(base, value)
    return found


def _magnitude(values: Values) -> int:
    return max(-int(values.min()), int(values.max()))


def _exact_sums(values: Values, starts: Positions) -> list[int]:
    """The sums as unlimited integers: those of the high and of the low halves fit 64 bits."""
    half = values.dtype.type(_HALF)
    high = np.add.reduceat(values >> half, starts)
    low = np.add.reduceat(values & values.dtype.type((1 << _HALF) - 1), starts)
    return [(h << _HALF) + rest for h, rest in zip(high.tolist(), low.tolist(), strict=True)]


def _float_sums(values: Values, members: _Members) -> list[float]:
    listed = values.tolist()
    return [
        listed[start] if size == 1 else _float_sum(listed[start : start + size])
        for start, size in zip(members.starts.tolist(), members.sizes.tolist(), strict=True)
    ]


def _float_sum(values: list[float]) -> float:
    """The sum rounded once, hence the same in every order."""
    try:
        return math.fsum(values)
    except ValueError:  # infinities of both signs
        return math.nan
    except OverflowError:
        if any(map(math.isinf, values)):
            return sum(value for value in values if not math.isfinite(value))
        # It may have been on the way only. 2^-64 leaves room for as many members, and costs large values no digit.
        return math.fsum(math.ldexp(value, -64) for value in values) * 2.0**64
