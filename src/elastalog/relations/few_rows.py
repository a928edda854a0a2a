"""A few rows of plain values into words, without the machinery for columns, which costs more than the rows of a small
update do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from elastalog.analysis.program import Base
from elastalog.relations.limits import LEAST_NARROW, WIDE, Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

_SYMBOL, _NUMBER, _UNSIGNED = Base.SYMBOL, Base.NUMBER, Base.UNSIGNED


def words_of_few_tuples(schema: Schema, rows: list[Any], dictionary: Dictionary) -> Words | None:
    """The words of rows. None if they are many, or one is no tuple of values of the plainest kind."""
    arity, least = len(schema.columns), schema.least
    if not arity or len(rows) > SETTINGS.few_rows:
        return None
    if not rows:
        return np.empty((0, arity), np.int32)
    for row in rows:
        if type(row) is not tuple or len(row) != arity:
            return None
        if least is not None:
            for value, lowest in zip(row, least, strict=True):
                if type(value) is not int or not lowest <= value < WIDE:  # others are not their own words
                    return None
    return words_of_few(schema, [*zip(*rows, strict=True)], dictionary) if least is None else np.array(rows, np.int32)


def words_of_few(schema: Schema, columns: Sequence[Sequence[Any]], dictionary: Dictionary) -> Words | None:
    """The words of columns of Python values of one length. None if a value is not of the plainest kind: then it, and
    what may be wrong with it, must be looked at with care."""
    texts: list[str] = []
    for column, values in zip(schema.columns, columns, strict=True):
        base = column.base
        if base is _NUMBER or base is _UNSIGNED:
            least = LEAST_NARROW if base is _NUMBER else 0
            for value in values:
                if type(value) is not int or not least <= value < WIDE:  # others are not their own words
                    return None
        elif base is _SYMBOL:
            for value in values:
                if type(value) is not str:
                    return None
            texts += values
        else:
            return None
    if texts:
        try:
            ids = iter(dictionary.symbols.encode_texts(texts).tolist())
        except UnicodeEncodeError:
            return None
        count = len(columns[0])
        columns = [
            list(islice(ids, count)) if column.base is _SYMBOL else values
            for column, values in zip(schema.columns, columns, strict=True)
        ]
    return np.array([*zip(*columns, strict=True)], np.int32)
