"""What tasks know of the dictionary: as much of it as the clauses of their stratum look into.

Joins compare words and need no dictionary. Comparisons and functors of symbols need the texts, wide numbers and floats
their patterns. Symbols that only stand in atoms are replaced by their words, so that most strata need no text at all.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import Apply, Base, Constant, Expression, Variable
from elastalog.backends.spark.text_files import TextFile, TextFiles, texts_in
from elastalog.backends.spark.user_functions import pickled_functions
from elastalog.planning.logical import Absent, Clause, Goal, LogicalProgram, LogicalStratum, Scan, Test
from elastalog.relations import records
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

_TEXTUAL = (Base.SYMBOL, Base.RECORD)
"""The types of values that are made of texts."""


@dataclass(frozen=True, slots=True)
class MadeValues:
    """Values that a task has made: texts, and the patterns of numbers, in the order in which it has numbered them."""

    texts: tuple[str, ...]
    patterns: bytes


@dataclass(frozen=True, slots=True)
class Values:
    """The part of a dictionary that tasks are given: its texts, or files of them, if they need any. `functions`: those
    of the user that they apply, pickled."""

    texts: tuple[str, ...]
    patterns: bytes
    functions: bytes | None = None
    wraps: bool = False
    files: tuple[TextFile, ...] = ()

    @staticmethod
    def of(
        dictionary: Dictionary, clauses: tuple[Clause, ...], files: TextFiles, *, are_needed: bool = False
    ) -> Values:
        """All wide numbers, and the texts if they are needed, or if a clause looks into them. The constants of the
        clauses are among them."""
        for clause in clauses:
            for constant in _constants(clause):
                dictionary.encode_value(constant.base, constant.value)
            for apply in clause.applications:
                if is_constructor(apply.functor):
                    dictionary.symbols.encode_one(records.shape_of(apply.functor, [a.base for a in apply.arguments]))
        are_needed = are_needed or any(map(_looks_into_texts, clauses))
        are_many = len(dictionary.symbols) > SETTINGS.spark_few_texts
        texts = dictionary.symbols.strings_from(0) if are_needed and not are_many else []
        written = files.all() if are_needed and are_many else ()
        functions = pickled_functions(clauses, dictionary.functions)
        return Values(tuple(texts), dictionary.wide.patterns_from(0).tobytes(), functions, dictionary.wraps, written)

    def dictionary(self) -> Dictionary:
        """A dictionary in which the words of the driver's have the same meaning."""
        made = Dictionary()
        made.symbols.extend(list(self.texts))
        for texts in texts_in(self.files):
            made.symbols.extend(texts)
        made.wide.extend(np.frombuffer(self.patterns, np.int64))
        made.wraps = self.wraps
        if self.functions is not None:
            made.functions = pickle.loads(self.functions)
        return made

    @property
    def number_of_texts(self) -> int:
        """How many texts there are."""
        return self.files[-1].last if self.files else len(self.texts)

    @property
    def numbers(self) -> int:
        """How many wide numbers there are."""
        return len(self.patterns) // 8

    def is_outgrown_by(self, dictionary: Dictionary) -> bool:
        """Whether a task has made values that the driver's dictionary may not have."""
        return len(dictionary.symbols) > self.number_of_texts or len(dictionary.wide) > self.numbers

    def made_in(self, dictionary: Dictionary) -> MadeValues:
        """The values that a task has made."""
        texts = dictionary.symbols.strings_from(self.number_of_texts)
        return MadeValues(tuple(texts), dictionary.wide.patterns_from(self.numbers).tobytes())


def orders_texts(stratum: LogicalStratum, program: LogicalProgram) -> bool:
    """Whether facts of a stratum are put in the order of their values, and texts are among these: choice domains,
    subsumption and the numbers of facts do so."""
    ordered = [name for name in stratum.relations if stratum.dominance or program.relations[name].choices]
    if (rule := stratum.numbering) is not None:
        ordered.append(rule.members)
    return any(base in _TEXTUAL for name in ordered for base in program.relations[name].bases)


def may_agree(stratum: LogicalStratum) -> bool:
    """Whether tasks may agree on the numbers of values that the clauses of a stratum make: not of records, whose
    numbers are made of numbers."""
    return not any(is_constructor(apply.functor) for clause in stratum.clauses for apply in clause.applications)


def shows_numbers_of_texts(clause: Clause) -> bool:
    """Whether a clause computes with the numbers by which texts are known."""
    return any(apply.functor == "ord" for apply in clause.applications)


def as_word(constant: Constant, dictionary: Dictionary) -> Constant:
    """A constant that has the same word in every dictionary: of a symbol or a record, the number of its word."""
    if constant.base not in _TEXTUAL:
        return constant
    word = dictionary.encode_value(constant.base, constant.value)
    return replace(constant, value=word, base=Base.NUMBER) if word < WIDE else constant


def with_words(clause: Clause, dictionary: Dictionary) -> Clause:
    """The clause with the symbols and records in its atoms and head as the numbers of their words."""

    def term(given: str | Constant | None) -> str | Constant | None:
        return as_word(given, dictionary) if isinstance(given, Constant) else given

    def goal(given: Goal) -> Goal:
        match given:
            case Scan():
                return replace(given, terms=tuple(map(term, given.terms)))
            case Absent():
                return replace(given, terms=tuple(t for t in map(term, given.terms) if t is not None))
            case Test():
                return given
            case _:
                assert_never(given)

    head = tuple(t for t in map(term, clause.head_terms) if t is not None)
    return replace(clause, head_terms=head, goals=tuple(map(goal, clause.goals)))


def _constants(clause: Clause) -> Iterator[Constant]:
    for term in clause.head_terms:
        if isinstance(term, Constant):
            yield term
    for goal in clause.goals:
        if isinstance(goal, Test):
            yield from _constants_in(goal.left)
            yield from _constants_in(goal.right)
        else:
            yield from (term for term in goal.terms if isinstance(term, Constant))


def _constants_in(expression: Expression) -> Iterator[Constant]:
    match expression:
        case Variable():
            pass
        case Constant():
            yield expression
        case Apply(arguments=arguments):
            for argument in arguments:
                yield from _constants_in(argument)
        case _:
            assert_never(expression)


def _looks_into_texts(clause: Clause) -> bool:
    tests = [goal for goal in clause.goals if isinstance(goal, Test)]
    return any(_has_symbol(side) for test in tests for side in (test.left, test.right))


def _has_symbol(expression: Expression) -> bool:
    match expression:
        case Variable(base=base) | Constant(base=base):
            return base in _TEXTUAL
        case Apply(base=base, arguments=arguments):
            return base in _TEXTUAL or any(map(_has_symbol, arguments))
        case _:
            assert_never(expression)
