"""Answers to queries. A query is a program of its own, evaluated over the facts that it needs; no epoch is made. One of
a single atom is planned once and asked with other values each time.

A query needs the facts that fit its constants, and what follows from them for the variables: a variable has one value
in all places of a rule, so once the facts of one atom are few, others need only those that agree with them; negated
atoms and those inside aggregates too, as far as their variables are the rule's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from elastalog.analysis import program as checked
from elastalog.analysis.pattern import Free, Pattern, parse_query
from elastalog.analysis.query import Query
from elastalog.backends.annotation import Annotation
from elastalog.backends.engines import backend_maker
from elastalog.backends.protocol import Backend, Matrix, Vector
from elastalog.backends.rows import distinct_in_order
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies.protocol import evaluate_all
from elastalog.pipeline.spark.for_sessions import make_frame
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.planning.lower import lower
from elastalog.relations.facts import FactWords, Relation
from elastalog.relations.schema import Column, Schema
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


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


# --- queries of one atom ---------------------------------------------------------------------------------------------


_ONE_ATOM = re.compile(r"""\s*[A-Za-z_][\w.?]*\s*(?:\((?:[^()\[$"]|"(?:[^"\\]|\\.)*")*\)\s*\.?\s*)?""", re.DOTALL)
"""What is a pattern if it is a query at all: no literals besides one atom, no nested terms."""


def planned_pattern(text: str, program: checked.CheckedProgram, schemas: Mapping[str, Schema]) -> PatternQuery | None:
    """A query of one atom, planned; None for any other. Raises ElastalogError if it is not a valid query."""
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
        self.constants = [term for term in terms if not isinstance(term, Free)]
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


# --- the facts that a query needs ------------------------------------------------------------------------------------


Domains = dict[str, Vector]
"""The words that a variable can have, where they are known to be few."""


def facts_needed(query: Query, backend: Backend, dictionary: Dictionary) -> dict[str, Matrix]:
    """By relation the facts that the answers of a query can depend on; a fact may be there several times."""
    parts: dict[str, list[Matrix]] = {}
    for rule in query.program.rules:
        for relation, words in _Restriction(rule, backend, dictionary).facts():
            parts.setdefault(relation, []).append(words)
    needed = {}
    for relation, blocks in parts.items():
        largest = max(blocks, key=len)
        is_whole = len(largest) >= backend.size(relation)
        needed[relation] = np.ascontiguousarray(largest if is_whole or len(blocks) == 1 else np.concatenate(blocks))
    return needed


class _Restriction:
    """Which facts one rule of a query needs."""

    def __init__(self, rule: checked.Rule, backend: Backend, dictionary: Dictionary) -> None:
        self._rule, self._backend, self._dictionary = rule, backend, dictionary
        self._domains: Domains = {}

    def facts(self) -> Iterator[tuple[str, Matrix]]:
        for literal in self._rule.body:
            if isinstance(literal, checked.Comparison):
                self._equate(literal)
        pending = [literal for literal in self._rule.body if isinstance(literal, checked.Atom)]
        while pending:
            atom = min(pending, key=self._cost)
            pending.remove(atom)
            words = self._fitting(atom)
            if not self._is_generated(atom):
                self._learn(atom, words)
            yield atom.relation, words
        for literal in self._rule.body:
            if not isinstance(literal, checked.Atom):
                for atom in checked.inner_atoms(literal):
                    yield atom.relation, self._fitting(atom)

    def _equate(self, literal: checked.Comparison) -> None:
        """`x = 5`. Floats are left alone: 0.0 and -0.0 are equal, and two words."""
        variable, value = literal.left, literal.right
        if isinstance(variable, checked.Constant):
            variable, value = value, variable
        is_equation = literal.operator == "=" and literal.base in (
            checked.Base.NUMBER,
            checked.Base.UNSIGNED,
            checked.Base.SYMBOL,
        )
        if is_equation and isinstance(variable, checked.Variable) and isinstance(value, checked.Constant):
            word = self._dictionary.find_value(value.base, value.value)
            self._domains[variable.name] = np.array([] if word is None else [word], np.int32)

    def _cost(self, atom: checked.Atom) -> tuple[bool, int]:
        """What is restricted comes first, then what is small."""
        is_restricted = any(
            isinstance(term, checked.Constant) or (isinstance(term, checked.Variable) and term.name in self._domains)
            for term in atom.arguments
        )
        return not is_restricted, self._backend.size(atom.relation)

    def _fitting(self, atom: checked.Atom) -> Matrix:
        """The facts that agree with the constants of an atom and with what is known of its variables; those that
        generate an equivalence, if they are to stand for it."""
        if self._is_generated(atom):
            return self._backend.states.of(atom.relation).words
        columns: list[int] = []
        key: list[int] = []
        known: list[tuple[int, Vector]] = []
        for position, term in enumerate(atom.arguments):
            if isinstance(term, checked.Constant):
                word = self._dictionary.find_value(term.base, term.value)
                if word is None:
                    return self._backend.facts(atom.relation).words[:0]
                columns.append(position)
                key.append(word)
            elif isinstance(term, checked.Variable) and term.name in self._domains:
                known.append((position, self._domains[term.name]))
        if columns:
            words = self._backend.select(atom.relation, tuple(columns), np.array(key, np.int32)).words
        elif known:
            words = self._with_values(atom.relation, *known.pop(min(range(len(known)), key=lambda i: len(known[i][1]))))
        else:
            words = self._backend.facts(atom.relation).words
        for position, values in known:
            words = words[np.isin(words[:, position], values)]
        return words

    def _is_generated(self, atom: checked.Atom) -> bool:
        """Whether all of an equivalence is asked for that is kept as classes: its pairs may be very many."""
        is_by_classes = self._backend.program.relations[atom.relation].classes is not None
        return is_by_classes and not any(isinstance(term, checked.Constant) for term in atom.arguments)

    def _with_values(self, relation: str, position: int, values: Vector) -> Matrix:
        """The facts with one of some words in a column."""
        if len(values) > SETTINGS.few_values or not len(values):
            words = self._backend.facts(relation).words
            return words[np.isin(words[:, position], values)]
        blocks = [self._backend.select(relation, (position,), values[i : i + 1]).words for i in range(len(values))]
        return np.concatenate(blocks)

    def _learn(self, atom: checked.Atom, words: Matrix) -> None:
        if len(words) > SETTINGS.most_values:
            return
        for position, term in enumerate(atom.arguments):
            if isinstance(term, checked.Variable):
                self._domains[term.name] = np.unique(words[:, position])
