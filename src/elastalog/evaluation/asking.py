"""Answers to queries: a query is a program of its own, evaluated over the facts that it needs. No epoch is made."""

from __future__ import annotations

from collections.abc import Callable

from elastalog.analysis.query import Query
from elastalog.backends.annotation import Annotation
from elastalog.backends.engines import backend_maker
from elastalog.backends.protocol import Backend
from elastalog.backends.watch import Watch
from elastalog.evaluation.restricting import facts_needed
from elastalog.evaluation.strategies.first_epoch import evaluate_all
from elastalog.pipeline.spark.engine import make_frame
from elastalog.planning.lower import lower
from elastalog.relations.facts import Relation
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import Dictionary


def ask(query: Query, backend: Backend, dictionary: Dictionary, watch: Watch | None = None) -> Relation:
    """The answers to a query over the facts of a backend, as a relation of its columns."""
    return asking(query, backend, dictionary, watch)()


def asking(
    query: Query, backend: Backend, dictionary: Dictionary, watch: Watch | None = None, *, is_later: bool = False
) -> Callable[[], Relation]:
    """What gives these answers, for the facts of now. `is_later`: it will be called after the backend has gone on."""
    equivalences = backend.program.equivalences
    needed = facts_needed(query, backend, dictionary)
    if is_later:
        needed = {relation: words.copy() for relation, words in needed.items()}

    def answer() -> Relation:
        make = backend_maker("local")
        program = lower(query.program, equivalences=equivalences)
        scratch = make(program, dictionary, annotation=Annotation(is_kept=False), watch=watch)
        scratch.load(dict(needed))
        evaluate_all(scratch)
        schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
        words = scratch.facts(query.name).words.copy()
        return Relation.of(schema, dictionary, words[:, : schema.arity], make_frame)

    return answer
