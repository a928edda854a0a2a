"""The actions between joins as one closure over blocks of rows, prepared once for every rule version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.kernel.expressions.columns import Matrix, keep_rows
from elastalog.backends.kernel.expressions.comparisons import Holds, compile_comparison
from elastalog.backends.kernel.expressions.ranges import compile_range
from elastalog.backends.kernel.expressions.records import take_apart
from elastalog.backends.kernel.expressions.terms import compile_column, words_of
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Action, Compute, Copy, Fill, Generate, Keep, KeepConstant, KeepEqual, TakeApart
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary

Run: TypeAlias = Callable[[Matrix, int], tuple[Matrix, int]]
"""Runs on the first rows of a C-contiguous block; returns the block and how many of its rows are left."""


def compile_actions(
    actions: tuple[Action, ...], slots: Mapping[str, int], dictionary: Dictionary, source: Source
) -> Run:
    """A closure that runs the actions in order, in place, on the first `used` rows of a block. Only `Generate` may give
    another block, with room for more rows."""
    runs = [_compile_action(action, slots, dictionary, source) for action in actions]
    if not runs:
        return lambda block, used: (block, used)
    if len(runs) == 1:
        (only,) = runs
        return lambda block, used: only(block, used) if used else (block, 0)

    def run_all(block: Matrix, used: int) -> tuple[Matrix, int]:
        for run in runs:
            if not used:
                break
            block, used = run(block, used)
        return block, used

    return run_all


def _compile_action(action: Action, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Run:
    match action:
        case Fill(slot, constant):
            return _fill(slot, np.int32(dictionary.encode_value(constant.base, constant.value)))
        case Copy(origin, slot):
            return _copy(origin, slot)
        case Compute():
            run = _compute(action, slots, dictionary, source)
            return _dropping_errors(run) if action.drops_errors else run
        case Generate():
            run = _generate(action, slots, dictionary, source)
            return _dropping_errors(run) if action.drops_errors else run
        case Keep():
            run = _keep(compile_comparison(action, slots, dictionary, source))
            return _dropping_errors(run) if action.drops_errors else run
        case KeepEqual(left, right):
            return _keep(lambda block, used: block[:used, left] == block[:used, right])
        case KeepConstant(slot, constant):
            word = np.int32(dictionary.encode_value(constant.base, constant.value))
            return _keep(lambda block, used: block[:used, slot] == word)
        case TakeApart():
            return take_apart(action, dictionary)
        case _:
            assert_never(action)


def _fill(slot: int, word: np.int32) -> Run:
    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        block[:used, slot] = word
        return block, used

    return run


def _copy(origin: int, slot: int) -> Run:
    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        block[:used, slot] = block[:used, origin]
        return block, used

    return run


def _keep(holds: Holds) -> Run:
    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        return block, keep_rows(block, used, holds(block, used))

    return run


def _dropping_errors(run: Run) -> Run:
    """An action that drops the rows for which it is an error. It must leave the block as it was when it raises."""

    def attempt(block: Matrix, used: int) -> tuple[Matrix, int]:
        try:
            return run(block, used)
        except LimitReached:
            raise
        except ElastalogError:
            # Which rows it is, is found by halving: it is rare.
            if used == 1:
                return block, 0
            halves = (attempt(half.copy(), len(half)) for half in (block[: used // 2], block[used // 2 : used]))
            kept: Matrix = np.concatenate([half[:left] for half, left in halves])
            if len(kept) > len(block):
                return kept, len(kept)
            block[: len(kept)] = kept
            return block, len(kept)

    return attempt


def _compute(action: Compute, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Run:
    base = action.expression.base
    column = compile_column(action.expression, slots, dictionary, source)
    words = words_of(base, dictionary)
    slot = action.slot
    is_sought = action.is_sought and base in (Base.NUMBER, Base.UNSIGNED)

    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        values, valid, bound = column(block, used)
        if valid is not None:
            if len(values) == len(valid) == used:
                values = values[valid]
            used = keep_rows(block, used, valid)
            if not used:
                return block, 0
        if is_sought and bound >= WIDE:
            # A wide number that the dictionary does not know is in no fact, and need not be learnt.
            block[:used, slot], is_known = dictionary.find_integers(base, values)
            return block, used if is_known is None else keep_rows(block, used, is_known)
        block[:used, slot] = words(values, bound)
        return block, used

    return run


def _generate(action: Generate, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Run:
    values_of = compile_range(action.expression, slots, dictionary, source)
    words = words_of(action.expression.base, dictionary)
    slot = action.slot

    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        counts, values = values_of(block, used)
        total = len(values)
        if not total:
            return block, 0
        repeated: Matrix = np.repeat(block[:used], counts, axis=0)
        if total <= len(block):
            block[:total] = repeated
        else:
            block = repeated
        block[:total, slot] = words(values, 1 << 64)
        return block, total

    return run
