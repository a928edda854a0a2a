"""The facts that fit a pattern: a query of one atom, planned once and asked with other values each time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from elastalog.analysis.pattern import Free, Pattern, parse_query
from elastalog.analysis.program import CheckedProgram
from elastalog.backends.protocol import Backend
from elastalog.backends.rows import distinct_in_order
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.pipeline.spark.engine import make_frame
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

_ONE_ATOM = re.compile(r"""\s*[A-Za-z_][\w.?]*\s*(?:\((?:[^()\[$"]|"(?:[^"\\]|\\.)*")*\)\s*\.?\s*)?""", re.DOTALL)
"""What is a pattern if it is a query at all: no literals besides one atom, no nested terms."""


def planned_pattern(text: str, program: CheckedProgram, schemas: Mapping[str, Schema]) -> PatternQuery | None:
    """A query of one atom, planned; None for any other. Raises ElastalogError if it is none that can be."""
    if not _ONE_ATOM.fullmatch(text):
        return None
    try:
        found = parse_query(text, program)
    except ElastalogError:
        if "?" not in text:
            raise
        return None  # a parameter may be part of a term
    return PatternQuery(found, schemas[found.relation])


class PatternQuery:
    """A query of one atom. `parameters`: their names, in order. It `is_decision` if nothing in it is free: then the
    answer is yes or no. Values are given in the order of the parameters."""

    def __init__(self, pattern: Pattern, schema: Schema) -> None:
        self.relation = pattern.relation
        bound = [place for place, term in enumerate(pattern.terms) if not _is_free(term)]
        terms: list[Any] = [pattern.terms[place] for place in bound]
        named = [term.name[1:] for term in terms if isinstance(term, Free) and term.name]
        self._bound = tuple(bound)
        self._columns = [schema.columns[place] for place in bound]
        self.parameters = tuple(dict.fromkeys(named))
        numbers = {name: number for number, name in enumerate(self.parameters)}
        self._terms = [
            (numbers[(term.name or "")[1:]], None) if isinstance(term, Free) else (None, term) for term in terms
        ]
        self._is_plain = len(self.parameters) == len(bound)
        self.is_decision = len(bound) == len(pattern.terms)
        places: dict[str, int] = {}
        self._same: list[tuple[int, int]] = []
        for place, term in enumerate(pattern.terms):
            if isinstance(term, Free) and term.name is not None and _is_free(term):
                if term.name in places:
                    self._same.append((places[term.name], place))
                else:
                    places[term.name] = place
        self._shown = list(places.values())
        self._is_part = len(places) < schema.arity - len(bound)
        columns = [replace(schema.columns[place], name=name) for name, place in places.items()]
        self.schema = Schema(schema.name, tuple(columns))

    def arguments(self, values: Sequence[Any]) -> Sequence[Any]:
        """What stands in the bound places, in order."""
        if self._is_plain:
            return values
        return [term if number is None else values[number] for number, term in self._terms]

    def key(self, dictionary: Dictionary, values: Sequence[Any]) -> list[int] | None:
        """The words in the bound places; None if no fact has them. Raises ValueError or NotOfType if a value is not
        of its column."""
        return dictionary.find_row(self._columns, values if self._is_plain else self.arguments(values))

    def answers(self, dictionary: Dictionary, backend: Backend, key: list[int] | None) -> Relation:
        """A relation with one column per variable of the pattern, in the order of their first places."""
        if key is None:
            return Relation.of(self.schema, dictionary, np.empty((0, self.schema.arity), np.int32), make_frame)
        words = backend.select(self.relation, self._bound, np.array(key, np.int32)).words
        for left, right in self._same:
            words = words[words[:, left] == words[:, right]]
        kept = words[:, self._shown]
        if self._is_part and len(kept):
            kept = kept[distinct_in_order(kept)[0]]
        return Relation.of(self.schema, dictionary, kept, make_frame)


def _is_free(term: object) -> bool:
    """Whether any value may stand there: `?name` is a parameter, whose value is given."""
    return isinstance(term, Free) and not (term.name or "").startswith("?")
