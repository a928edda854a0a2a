"""The relations of a session, and answers to queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import ParamSpec, TypeVar

from elastalog.analysis.parameters import parameter_values
from elastalog.analysis.pattern import parse_query
from elastalog.analysis.query import Query, check_query, parameters_in
from elastalog.database import PreparedQuery
from elastalog.diagnostics.arguments import require_text
from elastalog.evaluation.answers import answers
from elastalog.evaluation.asking import ask, asking, derived_by
from elastalog.evaluation.statistics import Statistics, statistics_of
from elastalog.pipeline.spark.engine import filed_in, make_frame
from elastalog.relations.facts import Relation
from elastalog.relations.pairs import Rows
from elastalog.relations.schema import Column, Schema
from elastalog.session.materialisation import Materialisation

_ONE_ATOM = re.compile(r"""\s*[A-Za-z_][\w.?]*\s*(?:\((?:[^()\[$"?]|"(?:[^"\\]|\\.)*")*\)\s*\.?\s*)?""", re.DOTALL)
"""What is a pattern if it is a query at all: no literals besides one atom, no parameters, no nested terms."""

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
        equivalences = backend.capabilities.equivalences
        return Relation(
            now.schema(name),
            now.dictionary,
            self._between_updates(lambda: backend.facts(name)),
            size=self._between_updates(lambda: backend.size(name)),
            pairs=None if equivalences is None else self._between_updates(lambda: equivalences.pairs(name)),
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

    def relation_of(self, schema: Schema, words: Rows) -> Relation:
        """A relation of given facts."""
        return Relation.of(schema, self._materialisation.dictionary, words, make_frame)

    def explicit(self, name: str) -> Relation:
        """The explicit facts of a relation."""
        now = self._materialisation
        with now.lock:
            return self.relation_of(now.schema(name), now.explicit_words(name))

    def query(self, text: str, parameters: Mapping[str, object]) -> Relation:
        """The answers to a query: a relation with one column per variable, or per argument of its head."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        values = parameter_values(parameters)
        now = self._materialisation
        with now.asking(text):
            program = now.program
            if not values and _ONE_ATOM.fullmatch(text):
                pattern = parse_query(text, program.checked)
                return answers(pattern, now.schemas[pattern.relation], now.dictionary, now.backend)
            return self.ask(check_query(text, program.tree, program.checked, values))

    def prepare(self, text: str) -> PreparedQuery:
        """A query to be asked often."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        names = parameters_in(text, self._materialisation.program.checked)
        return PreparedQuery(text, names, lambda values: self.query(text, values))

    def asking(self, text: str, parameters: Mapping[str, object], time_limit: float | None) -> Callable[[], Relation]:
        """What answers a query over the facts of now, when it is called, without the lock."""
        require_text("a query is a text", text, "write it as in the language: `path(1, X)`")
        values = parameter_values(parameters)
        now = self._materialisation
        watch = now.own_watch(time_limit, text)
        assert watch.quota is not None
        with now.lock, watch.quota:
            query = check_query(text, now.program.tree, now.program.checked, values)
            answer = asking(query, now.backend, now.dictionary, watch, is_later=True)

        def later() -> Relation:
            assert watch.quota is not None
            with watch.quota:
                return answer()

        return later

    def ask(self, query: Query) -> Relation:
        """The answers to a query that has been checked."""
        now = self._materialisation
        with now.asking():
            return ask(query, now.backend, now.dictionary, now.watch)

    def derived_by(self, relation: str, rules: Collection[int]) -> Relation:
        """What rules of a relation, by number, derive from the facts of now in one step."""
        now = self._materialisation
        with now.asking():
            return derived_by(rules, now.schema(relation), now.backend, now.dictionary, now.watch)

    def answers_in(self, query: Query) -> Relation:
        """The answers to a query that is part of the program."""
        now = self._materialisation
        with now.lock:
            schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
            words = now.backend.facts(query.name).words[:, : schema.arity].copy()
            return Relation.of(schema, now.dictionary, words, make_frame)

    def statistics(self) -> Statistics:
        """What rules and relations cost."""
        with self._materialisation.lock:
            return statistics_of(self._materialisation.backend)
