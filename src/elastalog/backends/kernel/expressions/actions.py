"""The actions between joins as one closure over blocks of rows, prepared once for every rule version; among them
comparisons, which give the rows of a block for which they hold.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

import numpy as np

from elastalog.analysis.functor_values import TESTS, Matches, NotRegular, matcher, note_other_date
from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.analysis.values import sort_key
from elastalog.backends.kernel.expressions.columns import Mask, Matrix, both, keep_rows, shown_value
from elastalog.backends.kernel.expressions.ranges import compile_membership, compile_range
from elastalog.backends.kernel.expressions.string_functions import Memory, TextFunction, compile_text_function
from elastalog.backends.kernel.expressions.terms import compile_column, take_apart, words_of
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Action, Compute, Copy, Fill, Generate, Keep, KeepConstant, KeepEqual, TakeApart
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary
from elastalog.syntax.keywords import NOT

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


log = logging.getLogger("elastalog.evaluation")

MOST_TOLD = 5
"""Wrong patterns of one rule that are told of."""

Holds: TypeAlias = Callable[[Matrix, int], Mask]
"""Gives a mask with one element for every row, or one for all of them."""

ORDERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
EQUALITIES: Mapping[str, Callable[[Any, Any], Any]] = {"=": operator.eq, "!=": operator.ne}


def compile_comparison(keep: Keep, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Holds:
    """A closure that gives the rows for which a comparison holds; it holds nowhere an operand has no value, and its
    negation does there."""
    left, right = keep.left, keep.right
    if keep.operator.startswith(NOT):
        negated = compile_comparison(replace(keep, operator=keep.operator.removeprefix(NOT)), slots, dictionary, source)
        return lambda block, used: ~negated(block, used)
    if isinstance(right, Apply) and right.functor == "range":
        return compile_membership(right, left, slots, dictionary, source)
    if isinstance(left, Apply) and left.functor == "range":
        return compile_membership(left, right, slots, dictionary, source)
    if keep.operator in EQUALITIES and not isinstance(left, Apply) and not isinstance(right, Apply):
        return _compare_words(EQUALITIES[keep.operator], left, right, slots, dictionary)
    if keep.base is Base.SYMBOL and keep.operator not in EQUALITIES:
        return _compare_texts(keep, slots, dictionary, source)
    if keep.base is Base.RECORD and keep.operator not in EQUALITIES:
        return _compare_branches(keep, slots, dictionary, source)
    return _compare_columns(keep, slots, dictionary, source)


def _compare_words(
    compare: Callable[[Any, Any], Any],
    left: Variable | Constant,
    right: Variable | Constant,
    slots: Mapping[str, int],
    dictionary: Dictionary,
) -> Holds:
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Constant):
        assert isinstance(right, Constant)
        a, b = (dictionary.encode_value(side.base, side.value) for side in (left, right))
        always = np.array([compare(a, b)], np.bool_)
        return lambda block, used: always
    slot = slots[left.name]
    if isinstance(right, Constant):
        word = np.int32(dictionary.encode_value(right.base, right.value))
        return lambda block, used: compare(block[:used, slot], word)
    other = slots[right.name]
    return lambda block, used: compare(block[:used, slot], block[:used, other])


def _compare_columns(keep: Keep, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Holds:
    left = compile_column(keep.left, slots, dictionary, source)
    right = compile_column(keep.right, slots, dictionary, source)
    is_float = keep.base is Base.FLOAT
    name = keep.operator
    compare = ORDERS.get(name) or EQUALITIES[name]

    def holds(block: Matrix, used: int) -> Mask:
        a, a_valid, _ = left(block, used)
        b, b_valid, _ = right(block, used)
        mask: Mask = compare(a, b)
        if is_float and name in EQUALITIES:
            # As a value, NaN equals itself.
            are_nan = (a != a) & (b != b)
            mask = mask | are_nan if name == "=" else mask & ~are_nan
        valid = both(a_valid, b_valid)
        return mask if valid is None else mask & valid

    return holds


def _compare_branches(keep: Keep, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Holds:
    """Branches without fields, by their names. There are few of them."""
    left = compile_column(keep.left, slots, dictionary, source)
    right = compile_column(keep.right, slots, dictionary, source)
    compare = ORDERS[keep.operator]

    def holds(block: Matrix, used: int) -> Mask:
        words = np.stack([np.broadcast_to(side(block, used)[0], used) for side in (left, right)])
        distinct, places = np.unique(words, return_inverse=True)
        names = [sort_key(branch) for branch in dictionary.decode_records(distinct)]
        ranks = np.argsort(np.argsort(np.array([name for name, _ in names])))[places.reshape(words.shape)]
        mask: Mask = compare(ranks[0], ranks[1])
        return mask

    return holds


# --- symbols -------------------------------------------------------------------------------------------------------


def _compare_texts(keep: Keep, slots: Mapping[str, int], dictionary: Dictionary, source: Source) -> Holds:
    arguments = [(side, compile_column(side, slots, dictionary, source)) for side in (keep.left, keep.right)]
    function: TextFunction
    match keep.operator:
        case "match":
            function = _matcher(keep.left, source)
        case name:
            function = ORDERS.get(name) or TESTS[name]
    column = compile_text_function(function, arguments, np.bool_, dictionary)
    sides = (keep.left, keep.right) if keep.operator in ORDERS else ()
    ordered = [slots[side.name] for side in sides if isinstance(side, Variable)]
    dates = Memory(note_other_date, np.bool_, dictionary)

    def holds(block: Matrix, used: int) -> Mask:
        for slot in ordered:
            dates.look_up(block[:used, slot])
        mask, valid, _ = column(block, used)
        return mask if valid is None else mask & valid

    return holds


def _matcher(pattern: Expression, source: Source) -> TextFunction:
    """Nothing matches what is no regular expression. Of a constant that has been said when the program was checked; of
    one that comes from a fact it is said once."""
    known: dict[str, Matches | None] = {}
    wrong = 0

    def compiled(wanted: str) -> Matches | None:
        nonlocal wrong
        try:
            return matcher(wanted)
        except NotRegular as fault:
            wrong += 1
            if wrong <= MOST_TOLD and type(pattern) is not Constant:
                told = {"pattern": shown_value(wanted), "fault": fault}
                log.warning("%s", ElastalogError.of("E0613", pattern.span, severity="warning", source=source, **told))
            return None

    def matches(wanted: str, text: str) -> bool:
        if wanted not in known:
            known[wanted] = compiled(wanted)
        found = known[wanted]
        return found is not None and found(text)

    return matches
