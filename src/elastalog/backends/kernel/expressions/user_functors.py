"""Functors of users, applied to blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elastalog.analysis.program import Apply, Base, Expression, UserFunctor, Value
from elastalog.backends.kernel.expressions.columns import (
    DTYPES,
    FULL,
    Column,
    Evaluate,
    Mask,
    Matrix,
    Site,
    Values,
    both,
    shown_value,
)
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Source, Span
from elastalog.relations.functions import BadFunction, Vectorised, missing, result_of, results_of
from elastalog.relations.words import Dictionary


def compile_user_functor(
    apply: Apply, arguments: Sequence[tuple[Expression, Evaluate]], dictionary: Dictionary, site: Site
) -> Evaluate:
    """The column of a functor of a user. A function that raises is E0640 with its arguments."""
    name = apply.functor[1:]
    functor = UserFunctor(name, tuple(a.base for a, _ in arguments), apply.base, False, apply.span)
    function = dictionary.functions.get(name)
    if function is None:
        raise missing(name, Label(apply.span, "applied here"), site.source)
    evaluates = [evaluate for _, evaluate in arguments]

    def evaluate(block: Matrix, used: int) -> Column:
        valid: Mask | None = None
        columns: list[Values] = []
        for argument in evaluates:
            values, own, _ = argument(block, used)
            valid = both(valid, own)
            columns.append(np.broadcast_to(values, used))
        rows = np.arange(used) if valid is None else np.flatnonzero(np.broadcast_to(valid, used))
        listed = [_listed(base, c[rows], dictionary) for base, c in zip(functor.parameters, columns, strict=True)]
        try:
            found = _results(functor, function, listed, len(rows))
        except BadFunction as bad:
            raise failed(bad, apply.functor, apply.span, site.source) from bad.__cause__
        return _column(apply.base, found, rows, used, dictionary)

    return evaluate


def _listed(base: Base, values: Values, dictionary: Dictionary) -> list[Value]:
    if base is Base.RECORD:
        return dictionary.decode_records(values)
    return [*dictionary.symbols.texts(values)] if base is Base.SYMBOL else [*values.tolist()]


def _results(
    functor: UserFunctor, function: Callable[..., Any], columns: list[list[Value]], count: int
) -> list[Value | None]:
    if isinstance(function, Vectorised):
        import pyarrow as pa

        from elastalog.relations.words import ARROW_TYPES

        arrays = [pa.array(c, ARROW_TYPES[base]) for c, base in zip(columns, functor.parameters, strict=True)]
        return results_of(functor, function, columns, arrays, count) if count else []
    known: dict[tuple[Value, ...], Value | None] = {}  # it is pure, and rows of a block often have the same arguments
    found: list[Value | None] = []
    for arguments in zip(*columns, strict=True) if columns else [()] * count:
        if arguments not in known:
            known[arguments] = result_of(functor, function, arguments)
        found.append(known[arguments])
    return found


def _column(base: Base, found: list[Value | None], rows: Any, used: int, dictionary: Dictionary) -> Column:
    """The results of some rows as a column of all of them."""
    is_there = np.array([value is not None for value in found], np.bool_)
    there = [value for value in found if value is not None]
    values = np.zeros(used, DTYPES[base])
    places = rows[is_there]
    if base is Base.RECORD:
        values[places] = dictionary.encode_records(there)
    elif base is Base.SYMBOL:
        values[places] = dictionary.symbols.encode_texts(there)  # type: ignore[arg-type]  # texts
    else:
        values[places] = np.array(there, DTYPES[base])
    valid = np.zeros(used, np.bool_)
    valid[places] = True
    return values, None if len(places) == used else valid, FULL


def failed(bad: BadFunction, functor: str, span: Span, source: Source) -> ElastalogError:
    """The error that a function gave no value where its functor is applied."""
    arguments = ", ".join(map(shown_value, bad.arguments))
    return ElastalogError(
        [
            Diagnostic(
                "E0640",
                f"`{functor}({arguments})` {bad}",
                (Label(span, "the functor is applied here"),),
                help="mend the function, or exclude such arguments by a comparison in the rule",
                source=source,
            )
        ]
    )
