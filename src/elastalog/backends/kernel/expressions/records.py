"""Records built from their parts, and taken apart, for blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from elastalog.analysis.program import Apply
from elastalog.backends.kernel.expressions.columns import FULL, Column, Evaluate, Mask, Matrix, Values, both, keep_rows
from elastalog.planning.steps import TakeApart
from elastalog.relations import records
from elastalog.relations.limits import Words
from elastalog.relations.words import Dictionary

ToWords = Callable[[Values, int], Words | Values]


def build(apply: Apply, parts: Sequence[tuple[Evaluate, ToWords]], dictionary: Dictionary) -> Evaluate:
    """The words of the records that a constructor makes of its parts."""
    shape = _shape(apply, dictionary)

    def evaluate(block: Matrix, used: int) -> Column:
        valid: Mask | None = None
        words: list[Words] = []
        for column, to_words in parts:
            values, own, bound = column(block, used)
            valid = both(valid, own)
            words.append(np.broadcast_to(to_words(values, bound).astype(np.int32), used))
        return records.pack(dictionary, shape, words, used), valid, FULL

    return evaluate


def take_apart(action: TakeApart, dictionary: Dictionary) -> Callable[[Matrix, int], tuple[Matrix, int]]:
    """Puts parts into their slots and drops the rows whose records are of another shape or have other parts."""
    shape = _shape(action.constructor, dictionary)
    arity = len(action.constructor.arguments)
    fixed = [
        (position, np.int32(dictionary.encode_value(constant.base, constant.value)))
        for position, constant in action.fixed
    ]

    def run(block: Matrix, used: int) -> tuple[Matrix, int]:
        parts, mask = records.unpack(dictionary, block[:used, action.slot], shape, arity)
        for position, word in fixed:
            mask &= parts[position] == word
        for position, slot in action.taken:
            block[:used, slot] = parts[position]
        for position, slot in action.checked:
            mask &= parts[position] == block[:used, slot]
        return block, keep_rows(block, used, mask)

    return run


def _shape(apply: Apply, dictionary: Dictionary) -> int:
    text = records.shape_of(apply.functor, [argument.base for argument in apply.arguments])
    return dictionary.symbols.encode_one(text)
