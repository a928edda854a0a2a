"""Answers to queries: a query is a program of its own, evaluated over the facts that it needs. No epoch is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from elastalog.analysis.query import Query
from elastalog.backends.annotation import Annotation
from elastalog.backends.engines import backend_maker
from elastalog.backends.protocol import Backend, Matrix
from elastalog.backends.watch import Watch
from elastalog.evaluation.restricting import facts_needed
from elastalog.evaluation.strategies.first_epoch import evaluate_all
from elastalog.pipeline.spark.engine import make_frame
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.planning.lower import lower
from elastalog.relations.facts import FactWords, Relation
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
        needed = {relation: FactWords(words).copied().words for relation, words in needed.items()}

    def answer() -> Relation:
        program = lower(query.program, equivalences=equivalences)
        schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
        return _evaluated(program, needed, schema, dictionary, watch)

    return answer


def derived_by(
    rules: Collection[int], schema: Schema, backend: Backend, dictionary: Dictionary, watch: Watch | None = None
) -> Relation:
    """What rules of a relation derive in one step, whether it holds or is only a candidate. Derivations have the
    numbers of `autoinc` that they have in the backend."""
    known = backend.program
    clauses = (clause for stratum in known.strata for clause in stratum.clauses)
    own = tuple(clause for clause in clauses if clause.rule is not None and clause.rule.number in rules)
    derived = LogicalStratum(0, (schema.name,), own, aggregate=None, is_recursive=False)
    given = [LogicalStratum(n, (name,), (), aggregate=None, is_recursive=False) for n, name in enumerate(derived.reads)]
    relations = {name: known.relations[name] for name in derived.reads}
    relations[schema.name] = replace(known.relations[schema.name], choices=(), classes=None)
    program = LogicalProgram(known.checked, relations, (*given, replace(derived, number=len(given))))
    needed = {name: backend.states.of(name).words for name in derived.reads}
    return _evaluated(program, needed, schema, dictionary, watch)


def _evaluated(
    program: LogicalProgram, facts: Mapping[str, Matrix], schema: Schema, dictionary: Dictionary, watch: Watch | None
) -> Relation:
    """A relation of a program that is evaluated in this process, over given facts."""
    scratch = backend_maker("local")(program, dictionary, annotation=Annotation(is_kept=False), watch=watch)
    scratch.load(dict(facts))
    evaluate_all(scratch)
    words = scratch.facts(schema.name).copied().words
    return Relation.of(schema, dictionary, words[:, : schema.arity], make_frame)
