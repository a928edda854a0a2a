"""Expressions of rules as closures over blocks of rows, prepared once for every rule version; records built and taken
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.functors import BRANCH_NUMBER, BRANCH_WITH_NUMBER, FUNCTORS
from elastalog.analysis.program import Apply, Base, Constant, Expression, Value, Variable
from elastalog.analysis.values import NIL, Branch
from elastalog.backends.kernel.expressions.columns import (
    DTYPES,
    FULL,
    RANGES,
    Column,
    Evaluate,
    Mask,
    Matrix,
    Scope,
    Site,
    Values,
    both,
    fits,
    keep_rows,
)
from elastalog.backends.kernel.expressions.functors import BINARY, UNARY, Binary, Unary
from elastalog.backends.kernel.expressions.string_functions import (
    TextFunction,
    compile_text_function,
    compile_user_functor,
)
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.planning.steps import TakeApart
from elastalog.relations import records
from elastalog.relations.limits import WIDE, Words
from elastalog.relations.words import Dictionary

_most = np.maximum.reduce


def compile_column(expression: Expression, scope: Scope) -> Evaluate:
    """An expression as a column with its bound (see `columns`), which may hold one value for all rows."""
    match expression:
        case Variable():
            return _compile_variable(expression.base, scope.slots[expression.name], scope.dictionary)
        case Constant():
            return _compile_constant(expression, scope.dictionary)
        case Apply():
            arguments = [(a, compile_column(a, scope)) for a in expression.arguments]
            site = Site(expression, scope.source, scope.dictionary.wraps)
            return _compile_apply(expression, arguments, scope.dictionary, site)
        case _:
            assert_never(expression)


def words_of(base: Base, dictionary: Dictionary) -> Callable[[Values, int], Words | Values]:
    """A function from values and their bound to words, or to what becomes words when stored as int32."""
    match base:
        case Base.SYMBOL | Base.RECORD:
            return lambda values, bound: values
        case Base.NUMBER | Base.UNSIGNED:
            return lambda values, bound: values if bound < WIDE else dictionary.from_integers(values)
        case Base.FLOAT:
            return lambda values, bound: dictionary.from_floats(values)
        case _:
            assert_never(base)


def _compile_variable(base: Base, slot: int, dictionary: Dictionary) -> Evaluate:
    def symbols(block: Matrix, used: int) -> Column:
        return block[:used, slot], None, FULL

    def integers(block: Matrix, used: int) -> Column:
        words = block[:used, slot]
        if used and _most(words) < WIDE:
            return words.astype(DTYPES[base]), None, WIDE
        return dictionary.integers(words).view(DTYPES[base]), None, FULL

    def floats(block: Matrix, used: int) -> Column:
        return dictionary.floats(block[:used, slot]), None, FULL

    return integers if base in RANGES else floats if base is Base.FLOAT else symbols


def _compile_constant(constant: Constant, dictionary: Dictionary) -> Evaluate:
    value: Value = constant.value
    bound = FULL
    if constant.base in (Base.SYMBOL, Base.RECORD):
        value = dictionary.encode_value(constant.base, value)
    elif isinstance(value, int):
        bound = abs(value)
    elif isinstance(value, float):
        value += 0.0
    column: Column = (np.array([value], DTYPES[constant.base]), None, bound)
    return lambda block, used: column


def _compile_apply(
    apply: Apply, arguments: list[tuple[Expression, Evaluate]], dictionary: Dictionary, site: Site
) -> Evaluate:
    if is_constructor(apply.functor):
        return build(apply, [(evaluate, words_of(a.base, dictionary)) for a, evaluate in arguments], dictionary)
    if apply.functor[0] == "@":
        return compile_user_functor(apply, arguments, dictionary, site)
    name, base = apply.functor, apply.arguments[0].base
    if name == "ord":
        nil = dictionary.encode_value(base, NIL) if base is Base.RECORD else None
        return _compile_unary(site, _ord(nil), arguments[0][1])
    if name in (BRANCH_NUMBER, BRANCH_WITH_NUMBER):
        names = str(apply.arguments[1].value).split("|") if isinstance(apply.arguments[1], Constant) else []
        words = np.array([dictionary.encode_value(Base.RECORD, Branch(own)) for own in names], np.int32)
        run = _branch_numbers(words) if name == BRANCH_NUMBER else _branches_with(words)
        return _compile_unary(site, run, arguments[0][1])
    unary = UNARY.get((name, base))
    if unary is not None:
        return _compile_unary(site, unary, arguments[0][1])
    binary = BINARY.get((name, base))
    if binary is not None:
        evaluate = arguments[0][1]
        for _, another in arguments[1:]:
            evaluate = _compile_binary(site, binary, evaluate, another)
        return evaluate
    function = FUNCTORS[name].compute
    if function is None:
        raise InternalError("kernel", f"functor `{name}` of {base.value} is not implemented")
    if apply.base in RANGES and name != "strlen":
        function = _within(function, site)
    elif apply.base is Base.FLOAT:
        function = _with_one_zero(function)
    return compile_text_function(function, arguments, DTYPES[apply.base], dictionary)


def _compile_unary(site: Site, run: Unary, argument: Evaluate) -> Evaluate:
    return lambda block, used: run(site, *argument(block, used))


def _compile_binary(site: Site, run: Binary, left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(block: Matrix, used: int) -> Column:
        a, a_valid, a_bound = left(block, used)
        b, b_valid, b_bound = right(block, used)
        return run(site, a, b, both(a_valid, b_valid), a_bound, b_bound)

    return evaluate


def _ord(nil: int | None) -> Unary:
    """Numbers of symbols, or of records, of which `nil` has 0."""

    def run(site: Site, words: Values, valid: Mask | None, bound: int) -> Column:
        numbers = words.astype(np.int64)
        return numbers if nil is None else np.where(words == nil, 0, numbers + 1), valid, 1 << 31

    return run


def _branch_numbers(words: Words) -> Unary:
    """The places of branches among the words of all branches of their type."""
    in_order = np.argsort(words)
    return lambda site, found, valid, bound: (
        in_order[np.searchsorted(words, found, sorter=in_order)].astype(np.int64), valid, len(words),
    )  # fmt: skip


def _branches_with(words: Words) -> Unary:
    """The branches at places; none where there is none."""

    def run(site: Site, numbers: Values, valid: Mask | None, bound: int) -> Column:
        is_one = (numbers >= 0) & (numbers < len(words))
        return words[np.where(is_one, numbers, 0)], both(valid, is_one), FULL

    return run


def _with_one_zero(function: TextFunction) -> TextFunction:
    def computed(*arguments: Any) -> Any:
        value = function(*arguments)
        return None if value is None else value + 0.0

    return computed


def _within(function: TextFunction, site: Site) -> TextFunction:
    """The function, with a diagnostic for results outside the functor's type."""

    def checked(*arguments: Any) -> Any:
        value = function(*arguments)
        if value is not None and not fits(value, site.apply.base):
            raise site.overflow(*arguments)
        return value

    return checked


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
