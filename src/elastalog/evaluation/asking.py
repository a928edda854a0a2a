"""Answers to queries: a query is a program of its own, evaluated over the facts that it reads. No epoch is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from elastalog.analysis.program import Atom, Constant
from elastalog.analysis.query import Query, relations_read
from elastalog.backends.annotation import Annotation
from elastalog.backends.engines import backend_maker
from elastalog.backends.protocol import Backend, Matrix
from elastalog.backends.watch import Watch
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
    atoms = list(relations_read(query))
    number = Counter(atom.relation for atom in atoms)
    program = lower(query.program, equivalences=backend.program.equivalences)
    read: dict[str, Matrix] = {}
    for atom in atoms:
        # One place that reads a relation needs no more of it than what fits there; several may need all.
        words = _fitting(atom, backend, dictionary) if number[atom.relation] == 1 else _all(atom.relation, backend)
        if words is not None and atom.relation not in read:
            read[atom.relation] = words.copy() if is_later else words

    def answer() -> Relation:
        make = backend_maker("local")
        scratch = make(program, dictionary, annotation=Annotation(is_kept=False), watch=watch)
        for name, words in read.items():
            scratch.load(name, words)
        evaluate_all(scratch)
        schema = Schema(query.name, tuple(Column(column.name, column.base) for column in query.columns))
        words = scratch.facts(query.name).words.copy()
        return Relation.of(schema, dictionary, words[:, : schema.arity], make_frame)

    return answer


def _all(relation: str, backend: Backend) -> Matrix:
    """The facts of a relation; of an equivalence that is kept as classes, those that generate it."""
    is_by_classes = backend.program.relations[relation].classes is not None
    found = backend.states.of(relation) if is_by_classes else backend.facts(relation)
    words: Matrix = np.ascontiguousarray(found.words)
    return words


def _fitting(atom: Atom, backend: Backend, dictionary: Dictionary) -> Matrix | None:
    """The facts with the constants of an atom in their places; None if there is no such value."""
    columns: list[int] = []
    key: list[int] = []
    for position, term in enumerate(atom.arguments):
        if isinstance(term, Constant):
            word = dictionary.find_value(term.base, term.value)
            if word is None:
                return None
            columns.append(position)
            key.append(word)
    if not columns:
        return _all(atom.relation, backend)
    found = backend.select(atom.relation, tuple(columns), np.array(key, np.int32)).words
    words: Matrix = np.ascontiguousarray(found)
    return words
