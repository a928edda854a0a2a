"""Functions on symbols, computed by Python.

A function of one symbol, its other arguments being constants, remembers its results for good, in a table indexed by
the symbol's word: after a symbol's first appearance it costs one look-up. Other functions are computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from elastalog.analysis.program import Apply, Base, Constant, Expression, UserFunctor, Value
from elastalog.backends.kernel.expressions.columns import (
    DTYPES,
    FULL,
    Column,
    Evaluate,
    Mask,
    Matrix,
    Site,
    Values,
    evaluated,
    shown_value,
)
from elastalog.diagnostics.diagnostic import ElastalogError, Label
from elastalog.diagnostics.source import Source, Span
from elastalog.relations.functions import BadFunction, Vectorised, missing, result_of, results_of
from elastalog.relations.words import Dictionary

_MANY = 64

TextFunction = Callable[..., Any]
"""Takes and gives plain values; None where there is no value."""

UNKNOWN, KNOWN, FAILED = 0, 1, 2


def compile_text_function(
    function: TextFunction,
    arguments: Sequence[tuple[Expression, Evaluate]],
    dtype: Any,
    dictionary: Dictionary,
) -> Evaluate:
    """A function of columns some of which are symbols. It is called with plain values; its results are stored as
    `dtype`, texts by their words as int32. It is called only for rows where all arguments have a value, so it may
    raise."""
    open_arguments = [i for i, (expression, _) in enumerate(arguments) if not isinstance(expression, Constant)]
    if len(open_arguments) == 1:
        position = open_arguments[0]
        expression, evaluate = arguments[position]
        if expression.base is Base.SYMBOL:
            values = [e.value if isinstance(e, Constant) else "" for e, _ in arguments]

            def of_one(text: str) -> Any:
                return function(*values[:position], text, *values[position + 1 :])

            return _remembering(Memory(of_one, dtype, dictionary), evaluate)
    return _row_by_row(function, arguments, dtype, dictionary)


class Memory:
    """The results of a function of one symbol, by word."""

    __slots__ = ("dictionary", "function", "lock", "table")

    def __init__(self, function: Callable[[str], Any], dtype: Any, dictionary: Dictionary) -> None:
        self.function = function
        self.dictionary = dictionary
        self.lock = Lock()
        self.table: tuple[Values, Values] = (np.zeros(0, np.uint8), np.zeros(0, dtype))

    def look_up(self, words: Values) -> tuple[Values, Mask | None]:
        states, results = self.table
        if not len(words):
            return results[:0], None
        if np.maximum.reduce(words) >= len(states) or np.minimum.reduce(states[words]) == UNKNOWN:
            with self.lock:
                states, results = self.learn(words)
        found = states[words]
        return results[words], None if np.maximum.reduce(found) == KNOWN else found == KNOWN

    def learn(self, words: Values) -> tuple[Values, Values]:
        symbols = self.dictionary.symbols
        states, results = self.table
        if int(words.max()) >= len(states):
            size = max(len(symbols), 2 * len(states))
            # Fresh zeros cost no memory until they are written.
            more_states, more_results = np.zeros(size, np.uint8), np.zeros(size, results.dtype)
            more_states[: len(states)], more_results[: len(states)] = states, results
            self.table = states, results = more_states, more_results
        unknown = np.unique(words[states[words] == UNKNOWN])
        values = list(map(self.function, symbols.texts(unknown)))
        is_known = np.array([value is not None for value in values], np.bool_)
        known = [value for value in values if value is not None]
        is_text = bool(known) and isinstance(known[0], str)
        results[unknown[is_known]] = symbols.encode_texts(known) if is_text else np.array(known, results.dtype)
        # Written last, since others read without the lock.
        states[unknown] = np.where(is_known, KNOWN, FAILED)
        return states, results


def _remembering(memory: Memory, argument: Evaluate) -> Evaluate:
    def evaluate(block: Matrix, used: int) -> Column:
        words, valid, _ = argument(block, used)
        if valid is None:
            return (*memory.look_up(words), FULL)
        words, valid = np.broadcast_arrays(words, valid)
        return _spread(*memory.look_up(words[valid]), valid)

    return evaluate


Results: TypeAlias = Callable[[Sequence[Values]], tuple[Values, Mask | None]]
"""Gives the values that follow from columns of arguments, and where there is one."""


def _row_by_row(
    function: TextFunction, arguments: Sequence[tuple[Expression, Evaluate]], dtype: Any, dictionary: Dictionary
) -> Evaluate:
    bases = [expression.base for expression, _ in arguments]
    encode = dictionary.symbols.encode_texts if dtype is np.int32 else partial(np.array, dtype=dtype)

    def results(arrays: Sequence[Values]) -> tuple[Values, Mask | None]:
        columns = [_listed(base, values, dictionary) for base, values in zip(bases, arrays, strict=True)]
        return _stored(list(map(function, *columns)), dtype, encode)

    return _of_valid_rows([evaluate for _, evaluate in arguments], partial(_each_once, results))


def _of_valid_rows(arguments: Sequence[Evaluate], results: Results) -> Evaluate:
    """The column of results of those rows where all arguments have a value."""

    def evaluate(block: Matrix, used: int) -> Column:
        columns, valid = evaluated(arguments, block, used)
        if valid is None:
            return (*results(np.broadcast_arrays(*columns)), FULL)
        valid, *arrays = np.broadcast_arrays(valid, *columns)
        return _spread(*results([values[valid] for values in arrays]), valid)

    return evaluate


def _stored(found: list[Any], dtype: Any, encode: Callable[[list[Any]], Values]) -> tuple[Values, Mask | None]:
    """What was found for each row as it is stored, and where something was."""
    if None not in found:
        return encode(found), None
    is_found = np.array([value is not None for value in found], np.bool_)
    values = np.zeros(len(found), dtype)
    values[is_found] = encode([value for value in found if value is not None])
    return values, is_found


def _each_once(results: Results, arrays: Sequence[Values]) -> tuple[Values, Mask | None]:
    """The results of many pairs of words, many of which come again: those of each pair are made once, in the order in
    which pairs come, so that new texts get the same words as if they were not."""
    if len(arrays) != 2 or len(arrays[0]) < _MANY or any(values.dtype != np.int32 for values in arrays):
        return results(arrays)
    pairs = arrays[0].astype(np.int64) << 32 | arrays[1].astype(np.uint32)
    distinct, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    if 2 * len(distinct) > len(pairs):
        return results(arrays)
    in_order = np.argsort(first)
    rank = np.empty_like(in_order)
    rank[in_order] = np.arange(len(in_order))
    found, is_found = results([values[first[in_order]] for values in arrays])
    return found[rank[place]], None if is_found is None else is_found[rank[place]]


def _listed(base: Base, words: Values, dictionary: Dictionary) -> list[Value]:
    """Values one by one; of many texts, most of which come again and again, each is made once."""
    if base is Base.RECORD:
        return dictionary.decode_records(words)
    if base is not Base.SYMBOL:
        return [*words.tolist()]
    if len(words) < _MANY:
        return [*dictionary.symbols.texts(words)]
    distinct, places = np.unique(words, return_inverse=True)
    texts = dictionary.symbols.texts(distinct)
    return list(map(texts.__getitem__, places.tolist()))


def _spread(found: Values, is_found: Mask | None, valid: Mask) -> Column:
    """The column of values that were computed for the valid rows only."""
    values = np.zeros(len(valid), found.dtype)
    values[valid] = found
    remaining = valid.copy()
    if is_found is not None:
        remaining[valid] = is_found
    return values, remaining, FULL


def compile_user_functor(
    apply: Apply, arguments: Sequence[tuple[Expression, Evaluate]], dictionary: Dictionary, site: Site
) -> Evaluate:
    """The column of a functor of a user. A function that raises is E0640 with its arguments."""
    name = apply.functor[1:]
    functor = UserFunctor(name, tuple(a.base for a, _ in arguments), apply.base, False, apply.span)
    function = dictionary.functions.get(name)
    if function is None:
        raise missing(name, Label(apply.span, "applied here"), site.source)
    encode: Callable[[list[Any]], Values] = partial(np.array, dtype=DTYPES[apply.base])
    if apply.base in (Base.SYMBOL, Base.RECORD):
        encode = dictionary.symbols.encode_texts if apply.base is Base.SYMBOL else dictionary.encode_records

    def results(arrays: Sequence[Values]) -> tuple[Values, Mask | None]:
        listed = [_listed(base, c, dictionary) for base, c in zip(functor.parameters, arrays, strict=True)]
        try:
            found = _results(functor, function, listed, len(arrays[0]) if arrays else 1)
        except BadFunction as bad:
            raise failed(bad, apply.functor, apply.span, site.source) from bad.__cause__
        return _stored(found, DTYPES[apply.base], encode)

    return _of_valid_rows([evaluate for _, evaluate in arguments], results)


def _results(
    functor: UserFunctor, function: Callable[..., Any], columns: list[list[Value]], count: int
) -> list[Value | None]:
    if isinstance(function, Vectorised):
        import pyarrow as pa

        from elastalog.relations.arrays import ARROW_TYPES

        arrays = [pa.array(c, ARROW_TYPES[base]) for c, base in zip(columns, functor.parameters, strict=True)]
        return results_of(functor, function, columns, arrays, count) if count else []
    known: dict[tuple[Value, ...], Value | None] = {}  # it is pure, and rows of a block often have the same arguments
    found: list[Value | None] = []
    for arguments in zip(*columns, strict=True) if columns else [()] * count:
        if arguments not in known:
            known[arguments] = result_of(functor.result, function, arguments)
        found.append(known[arguments])
    return found


def failed(bad: BadFunction, functor: str, span: Span, source: Source) -> ElastalogError:
    """The error that a function gave no value where its functor is applied."""
    arguments = ", ".join(map(shown_value, bad.arguments))
    return ElastalogError.of("E0640", span, source=source, functor=functor, arguments=arguments, bad=bad)
