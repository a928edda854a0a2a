"""Answers to queries: a query is a program of its own, evaluated over the facts that it needs. No epoch is made."""

from __future__ import annotations

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
    make = backend_maker("local")
    program = lower(query.program, equivalences=backend.program.equivalences)
    scratch = make(program, dictionary, annotation=Annotation(is_kept=False), watch=watch)
    for relation, words in facts_needed(query, backend, dictionary).items():
        scratch.load(relation, words)
    evaluate_all(scratch)
    schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
    words = scratch.facts(query.name).words.copy()
    return Relation.of(schema, dictionary, words[:, : schema.arity], make_frame)
