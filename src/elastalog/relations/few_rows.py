"""A few rows of plain values into words, without the machinery for columns, which costs more than the rows of a small
update do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from elastalog.analysis.program import Base
from elastalog.relations.limits import LEAST_NARROW, WIDE, Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

FEW = 32
"""Rows up to which looking at values one by one is quicker."""

_RANGES = {Base.NUMBER: (LEAST_NARROW, WIDE - 1), Base.UNSIGNED: (0, WIDE - 1)}
"""Numbers that are their own words."""


def words_of_few(schema: Schema, columns: Sequence[Sequence[Any]], dictionary: Dictionary) -> Words | None:
    """The words of columns of Python values of one length. None if a value is not of the plainest kind: then it, and
    what may be wrong with it, must be looked at with care."""
    texts: list[str] = []
    places: list[int] = []
    words: Words = np.empty((len(columns[0]), len(columns)), np.int32)
    for place, (column, values) in enumerate(zip(schema.columns, columns, strict=True)):
        if column.base is Base.SYMBOL:
            for value in values:
                if type(value) is not str:
                    return None
            texts.extend(values)
            places.append(place)
        elif column.base is Base.RECORD:
            return None
        else:
            least, most = _RANGES.get(column.base, (0, -1))
            for value in values:
                if type(value) is not int or not least <= value <= most:
                    return None
            words[:, place] = values
    if texts:
        try:
            ids = dictionary.symbols.encode_texts(texts)
        except UnicodeEncodeError:
            return None
        words[:, places] = ids.reshape(len(places), len(words)).T
    return words
