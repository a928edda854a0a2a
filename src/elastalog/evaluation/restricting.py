"""Which facts a query needs: those that fit its constants, and what follows from them for the variables.

A variable has one value in all places of a rule. So once the facts of one atom are few, others need only those that
agree with them; negated atoms and those inside aggregates too, as far as their variables are the rule's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from elastalog.analysis.program import Aggregation, Atom, Base, Comparison, Constant, Literal, Negation, Rule, Variable
from elastalog.analysis.query import Query
from elastalog.backends.protocol import Backend, Matrix, Vector
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

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
    """The same for one rule."""

    def __init__(self, rule: Rule, backend: Backend, dictionary: Dictionary) -> None:
        self._rule, self._backend, self._dictionary = rule, backend, dictionary
        self._domains: Domains = {}

    def facts(self) -> Iterator[tuple[str, Matrix]]:
        for literal in self._rule.body:
            if isinstance(literal, Comparison):
                self._equate(literal)
        pending = [literal for literal in self._rule.body if isinstance(literal, Atom)]
        while pending:
            atom = min(pending, key=self._cost)
            pending.remove(atom)
            words = self._fitting(atom)
            if not self._is_generated(atom):
                self._learn(atom, words)
            yield atom.relation, words
        for literal in self._rule.body:
            if not isinstance(literal, Atom):
                for atom in _inner_atoms(literal):
                    yield atom.relation, self._fitting(atom)

    def _equate(self, literal: Comparison) -> None:
        """`x = 5`. Floats are left alone: 0.0 and -0.0 are equal, and two words."""
        variable, value = literal.left, literal.right
        if isinstance(variable, Constant):
            variable, value = value, variable
        is_equation = literal.operator == "=" and literal.base in (Base.NUMBER, Base.UNSIGNED, Base.SYMBOL)
        if is_equation and isinstance(variable, Variable) and isinstance(value, Constant):
            word = self._dictionary.find_value(value.base, value.value)
            self._domains[variable.name] = np.array([] if word is None else [word], np.int32)

    def _cost(self, atom: Atom) -> tuple[bool, int]:
        """What is restricted comes first, then what is small."""
        is_restricted = any(
            isinstance(term, Constant) or (isinstance(term, Variable) and term.name in self._domains)
            for term in atom.arguments
        )
        return not is_restricted, self._backend.size(atom.relation)

    def _fitting(self, atom: Atom) -> Matrix:
        """The facts that agree with the constants of an atom and with what is known of its variables; those that
        generate an equivalence, if they are to stand for it."""
        if self._is_generated(atom):
            return self._backend.states.of(atom.relation).words
        columns: list[int] = []
        key: list[int] = []
        known: list[tuple[int, Vector]] = []
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Constant):
                word = self._dictionary.find_value(term.base, term.value)
                if word is None:
                    return self._backend.facts(atom.relation).words[:0]
                columns.append(position)
                key.append(word)
            elif isinstance(term, Variable) and term.name in self._domains:
                known.append((position, self._domains[term.name]))
        if columns:
            words = self._backend.select(atom.relation, tuple(columns), np.array(key, np.int32)).words
        elif known:
            words = self._with_values(atom.relation, *known.pop(_shortest(known)))
        else:
            words = self._backend.facts(atom.relation).words
        for position, values in known:
            words = words[np.isin(words[:, position], values)]
        return words

    def _is_generated(self, atom: Atom) -> bool:
        """Whether all of an equivalence is asked for that is kept as classes: its pairs may be very many."""
        is_by_classes = self._backend.program.relations[atom.relation].classes is not None
        return is_by_classes and not any(isinstance(term, Constant) for term in atom.arguments)

    def _with_values(self, relation: str, position: int, values: Vector) -> Matrix:
        """The facts with one of some words in a column."""
        if len(values) > SETTINGS.few_values or not len(values):
            words = self._backend.facts(relation).words
            return words[np.isin(words[:, position], values)]
        blocks = [self._backend.select(relation, (position,), values[i : i + 1]).words for i in range(len(values))]
        return np.concatenate(blocks)

    def _learn(self, atom: Atom, words: Matrix) -> None:
        if len(words) > SETTINGS.most_values:
            return
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Variable):
                self._domains[term.name] = np.unique(words[:, position])


def _shortest(known: list[tuple[int, Vector]]) -> int:
    return min(range(len(known)), key=lambda i: len(known[i][1]))


def _inner_atoms(literal: Literal) -> Iterator[Atom]:
    """The atoms that are negated, or inside aggregates."""
    match literal:
        case Negation():
            yield literal.atom
        case Aggregation():
            for body in literal.bodies:
                for inner in body:
                    if isinstance(inner, Atom):
                        yield inner
                    else:
                        yield from _inner_atoms(inner)
        case _:
            pass
