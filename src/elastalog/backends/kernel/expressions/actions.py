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
from elastalog.backends.kernel.expressions.columns import Mask, Matrix, Scope, both, keep_rows, shown_value
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
    scope = Scope(slots, dictionary, source)
    runs = [_compile_action(action, scope) for action in actions]
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


def _compile_action(action: Action, scope: Scope) -> Run:
    match action:
        case Fill(slot, constant):
            word = _word(constant, scope)
            return _writing(slot, lambda block, used: word)
        case Copy(origin, slot):
            return _writing(slot, lambda block, used: block[:used, origin])
        case KeepEqual(left, right):
            return _keeping(lambda block, used: block[:used, left] == block[:used, right])
        case KeepConstant(slot, constant):
            word = _word(constant, scope)
            return _keeping(lambda block, used: block[:used, slot] == word)
        case TakeApart():
            return take_apart(action, scope.dictionary)
        case Compute():
            run = _compute(action, scope)
        case Generate():
            run = _generate(action, scope)
        case Keep():
            run = _keeping(compile_comparison(action, scope))
        case _:
            assert_never(action)
    return _dropping_errors(run) if action.drops_errors else run


def _word(constant: Constant, scope: Scope) -> np.int32:
    return np.int32(scope.dictionary.encode_value(constant.base, constant.value))


def _writing(slot: int, words: Callable[[Matrix, int], Any]) -> Run:
    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        block[:used, slot] = words(block, used)
        return block, used

    return run


def _keeping(holds: Holds) -> Run:
    return lambda block, used: (block, keep_rows(block, used, holds(block, used)))


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


def _compute(action: Compute, scope: Scope) -> Run:
    base, slot, dictionary = action.expression.base, action.slot, scope.dictionary
    column, words = compile_column(action.expression, scope), words_of(base, dictionary)
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
            block[:used, slot], is_known = dictionary.find_integers(values)
            return block, used if is_known is None else keep_rows(block, used, is_known)
        block[:used, slot] = words(values, bound)
        return block, used

    return run


def _generate(action: Generate, scope: Scope) -> Run:
    values_of, slot = compile_range(action.expression, scope), action.slot
    words = words_of(action.expression.base, scope.dictionary)

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


def compile_comparison(keep: Keep, scope: Scope) -> Holds:
    """A closure that gives the rows for which a comparison holds; it holds nowhere an operand has no value, and its
    negation does there."""
    left, right = keep.left, keep.right
    if keep.operator.startswith(NOT):
        negated = compile_comparison(replace(keep, operator=keep.operator.removeprefix(NOT)), scope)
        return lambda block, used: ~negated(block, used)
    if isinstance(right, Apply) and right.functor == "range":
        return compile_membership(right, left, scope)
    if isinstance(left, Apply) and left.functor == "range":
        return compile_membership(left, right, scope)
    if keep.operator in EQUALITIES and not isinstance(left, Apply) and not isinstance(right, Apply):
        return _compare_words(EQUALITIES[keep.operator], left, right, scope)
    if keep.base is Base.SYMBOL and keep.operator not in EQUALITIES:
        return _compare_texts(keep, scope)
    if keep.base is Base.RECORD and keep.operator not in EQUALITIES:
        return _compare_branches(keep, scope)
    return _compare_columns(keep, scope)


def _compare_words(
    compare: Callable[[Any, Any], Any], left: Variable | Constant, right: Variable | Constant, scope: Scope
) -> Holds:
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Constant):
        assert isinstance(right, Constant)
        always = np.array([compare(_word(left, scope), _word(right, scope))], np.bool_)
        return lambda block, used: always
    slot = scope.slots[left.name]
    if isinstance(right, Constant):
        word = _word(right, scope)
        return lambda block, used: compare(block[:used, slot], word)
    other = scope.slots[right.name]
    return lambda block, used: compare(block[:used, slot], block[:used, other])


def _compare_columns(keep: Keep, scope: Scope) -> Holds:
    left, right = compile_column(keep.left, scope), compile_column(keep.right, scope)
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


def _compare_branches(keep: Keep, scope: Scope) -> Holds:
    """Branches without fields, by their names. There are few of them."""
    left, right = compile_column(keep.left, scope), compile_column(keep.right, scope)
    compare = ORDERS[keep.operator]

    def holds(block: Matrix, used: int) -> Mask:
        words = np.stack([np.broadcast_to(side(block, used)[0], used) for side in (left, right)])
        distinct, places = np.unique(words, return_inverse=True)
        names = [sort_key(branch) for branch in scope.dictionary.decode_records(distinct)]
        ranks = np.argsort(np.argsort(np.array([name for name, _ in names])))[places.reshape(words.shape)]
        mask: Mask = compare(ranks[0], ranks[1])
        return mask

    return holds


# --- symbols -------------------------------------------------------------------------------------------------------


def _compare_texts(keep: Keep, scope: Scope) -> Holds:
    name, sides = keep.operator, (keep.left, keep.right)
    function = _matcher(keep.left, scope.source) if name == "match" else ORDERS.get(name) or TESTS[name]
    arguments = [(side, compile_column(side, scope)) for side in sides]
    column = compile_text_function(function, arguments, np.bool_, scope.dictionary)
    ordered = [scope.slots[side.name] for side in sides if name in ORDERS and isinstance(side, Variable)]
    dates = Memory(note_other_date, np.bool_, scope.dictionary)

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
