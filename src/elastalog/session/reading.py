"""The relations of a session, and answers to queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from elastalog.analysis.pattern import parse_pattern
from elastalog.diagnostics.arguments import require_text
from elastalog.evaluation.answers import answers
from elastalog.evaluation.statistics import Statistics, statistics_of
from elastalog.pipeline.spark.engine import filed_in, make_frame
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Schema
from elastalog.session.materialisation import Materialisation

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Reader:
    """Hands out the facts of a materialisation."""

    def __init__(self, materialisation: Materialisation) -> None:
        self._materialisation = materialisation

    def relation(self, name: str) -> Relation:
        """A live relation: it shows the latest epoch whenever it is read."""
        now = self._materialisation
        backend = now.backend
        return Relation(
            now.schema(name),
            now.dictionary,
            self._between_updates(lambda: backend.facts(name)),
            size=self._between_updates(lambda: backend.size(name)),
            contains=self._between_updates(lambda words: bool(backend.contains(name, words)[0])),
            filed=self._between_updates(lambda annotations: filed_in(backend, name, annotations)),
            make_frame=make_frame,
        )

    def _between_updates(self, read: Callable[Asked, Found]) -> Callable[Asked, Found]:
        """A way to read that waits for updates of other threads: what an update is writing must not be read."""

        def reading(*asked: Asked.args, **options: Asked.kwargs) -> Found:
            with self._materialisation.lock:
                return read(*asked, **options)

        return reading

    def relation_of(self, schema: Schema, words: np.ndarray) -> Relation:
        """A relation of given facts."""
        return Relation.of(schema, self._materialisation.dictionary, words, make_frame)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation."""
        now = self._materialisation
        with now.lock:
            return self.relation_of(now.schema(name), now.explicit_words(name))

    def query(self, text: str) -> Relation:
        """The facts that fit a pattern: a relation with one column per variable."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        now = self._materialisation
        with now.lock:
            pattern = parse_pattern(text, now.program.checked)
            return answers(pattern, now.schemas[pattern.relation], now.dictionary, now.backend)

    def statistics(self) -> Statistics:
        """What rules and relations cost."""
        with self._materialisation.lock:
            return statistics_of(self._materialisation.backend)
