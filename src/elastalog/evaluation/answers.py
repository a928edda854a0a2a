"""The facts that fit a pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from elastalog.analysis.pattern import Free, Pattern
from elastalog.backends.protocol import Backend
from elastalog.pipeline.spark.engine import make_frame
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary


def answers(pattern: Pattern, schema: Schema, dictionary: Dictionary, backend: Backend) -> Relation:
    """A relation with one column per variable of the pattern, in the order of their first places."""
    columns: list[int] = []
    key: list[int] = []
    places: dict[str, int] = {}
    same: list[tuple[int, int]] = []
    is_possible = True
    for position, (term, column) in enumerate(zip(pattern.terms, schema.columns, strict=True)):
        if not isinstance(term, Free):
            word = dictionary.find_value(column.base, term)
            is_possible = is_possible and word is not None
            columns.append(position)
            key.append(word or 0)
        elif term.name in places:
            same.append((places[term.name], position))
        elif term.name is not None:
            places[term.name] = position
    shown = Schema(schema.name, tuple(replace(schema.columns[p], name=name) for name, p in places.items()))
    if not is_possible:
        return Relation.of(shown, dictionary, np.empty((0, shown.arity), np.int32), make_frame)
    words = backend.select(pattern.relation, tuple(columns), np.array(key, np.int32)).words
    for left, right in same:
        words = words[words[:, left] == words[:, right]]
    kept = words[:, list(places.values())]
    if len(places) < schema.arity - len(columns) and len(kept):
        kept = np.unique(kept, axis=0)
    return Relation.of(shown, dictionary, kept, make_frame)
