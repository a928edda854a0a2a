"""A few rows of plain values into words, without the machinery for columns, which costs more than the rows of a small
update do."""

from __future__ import annotations

from typing import Any

import numpy as np

from elastalog.relations.limits import WIDE, Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


def words_of_few_tuples(schema: Schema, rows: list[Any], dictionary: Dictionary) -> Words | None:
    """The words of rows. None if they are many, or one is no tuple of values of the plainest kind."""
    arity = len(schema.columns)
    if not arity or len(rows) > SETTINGS.few_rows:
        return None
    if not rows:
        return np.empty((0, arity), np.int32)
    for row in rows:
        if type(row) is not tuple or len(row) != arity:
            return None
    return words_of_few(schema, rows, dictionary)


def words_of_few(schema: Schema, rows: list[tuple[Any, ...]], dictionary: Dictionary) -> Words | None:
    """The words of rows of Python values, as many as columns. None if a value is not of the plainest kind: then it, and
    what may be wrong with it, must be looked at with care."""
    kinds = schema.least
    if kinds is None:
        return None
    # All of them are looked at before the first text is added.
    for row in rows:
        for value, least in zip(row, kinds, strict=True):
            if least is None:
                if type(value) is not str:
                    return None
            elif type(value) is not int or not least <= value < WIDE:  # others are not their own words
                return None
    places = schema.texts
    if not places:
        return np.array(rows, np.int32)
    try:
        ids = dictionary.symbols.ids_of([row[place] for place in places for row in rows])
    except UnicodeEncodeError:
        return None
    words = [list(row) for row in rows]
    number = 0
    for place in places:
        for row_of_words in words:
            row_of_words[place] = ids[number]
            number += 1
    return np.array(words, np.int32)
