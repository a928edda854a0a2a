"""Ids of values that tasks make: those that exchanging tasks agree on, and those of the driver.

A task gives a value that it makes the next number of its own dictionary, as another may to another value: that is its
*own* word. Before facts with new values are given to another task, all tasks tell each other what they have made, and
every task numbers these values in the same order: share by share, each value once. These words are *agreed*. What is
given and written has agreed words, what a task holds and joins has its own; which task wants a fact is found by agreed
ones. The driver numbers the values in the same order, so that agreed words are its words, too.

Where a stratum decomposes no task sees what another derives, so it is enough that the driver takes the values into its
dictionary afterwards and writes the files anew, with its own numbers; but the numbers of one task alone are those that
come next to the driver, too, and files stay as they are. The argument by which a stratum decomposes never has a new
value: it comes from facts that were there before.

Records are not for agreement: they are chains of such numbers (`relations.records`), and the driver finds theirs part
by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import Matrix, Vector
from elastalog.backends.spark.results import Fault, FileWritten, Result
from elastalog.backends.spark.task import StratumSpec
from elastalog.backends.spark.values import MadeValues, Values
from elastalog.backends.spark.word_files import write_anew
from elastalog.relations import records
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary

Others: TypeAlias = dict[bool, tuple[int, Vector]]
"""Other words for those of new values, of symbols (True) and of numbers: from which word on, and what they are."""


def renumbered(rows: Matrix, bases: Sequence[Base], others: Others) -> Matrix:
    """Rows that begin with a fact, the words of new values replaced by others. Records are left as they are."""
    changed = rows.copy()
    for column, base in enumerate(bases):
        first, words = others[base is Base.SYMBOL]
        if base is not Base.RECORD and len(words):
            is_new = rows[:, column] >= first
            changed[is_new, column] = words[rows[is_new, column] - first]
    return changed


class IdConsensus:
    """One task's view of the consensus. Until something is agreed on, all words are the driver's."""

    def __init__(self, sent: Values, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        nothing = np.empty(0, np.int32)
        self._own: Others = {True: (sent.number_of_texts, nothing), False: (WIDE + sent.numbers, nothing)}
        self._agreed = dict(self._own)
        self._made_texts: list[str] = []
        self._made_patterns: list[int] = []

    @property
    def is_empty(self) -> bool:
        return not (self._made_texts or self._made_patterns)

    @property
    def values(self) -> MadeValues:
        """All that was agreed on, in order."""
        return MadeValues(tuple(self._made_texts), np.array(self._made_patterns, np.int64).tobytes())

    def news(self) -> Any:
        """What this task has made since the last agreement, for all others."""
        texts = self._dictionary.symbols.strings_from(self._own[True][0] + len(self._made_texts))
        patterns = self._dictionary.wide.patterns_from(self._own[False][0] - WIDE + len(self._made_patterns))
        return [texts, patterns.tolist()]

    def agree(self, news: Iterable[Any]) -> None:
        """Numbers what all tasks have made, given in the order of their shares."""
        texts: dict[str, None] = {}
        patterns: dict[int, None] = {}
        for more_texts, more_patterns in news:
            texts |= dict.fromkeys(more_texts)
            patterns |= dict.fromkeys(more_patterns)
        if texts:
            self._made_texts += texts
            self._extend(True, self._dictionary.symbols.encode_texts(list(texts)))
        if patterns:
            self._made_patterns += patterns
            own = self._dictionary.wide.intern(np.array(list(patterns), np.int64))
            self._extend(False, own + np.int32(WIDE))

    def _extend(self, is_of_texts: bool, more: Vector) -> None:
        """Adds values that were agreed on, in this order; `more` are their words in this task."""
        first, known = self._own[is_of_texts]
        own = np.concatenate((known, more))
        agreed = np.empty(len(own), np.int32)
        agreed[own - first] = np.arange(first, first + len(own), dtype=np.int32)
        self._own[is_of_texts], self._agreed[is_of_texts] = (first, own), (first, agreed)

    def outward(self, rows: Matrix, bases: Sequence[Base]) -> Matrix:
        """Rows that begin with a fact, in agreed words."""
        return rows if self.is_empty else renumbered(rows, bases, self._agreed)

    def inward(self, rows: Matrix, bases: Sequence[Base]) -> Matrix:
        """Rows that begin with a fact, in the words of this task."""
        return rows if self.is_empty else renumbered(rows, bases, self._own)


class Renumbering:
    """Translates the words of one task into those of the driver, whose dictionary takes the values that the task has
    made."""

    def __init__(self, sent: Values, made: MadeValues, dictionary: Dictionary) -> None:
        self._sent = sent
        self._driver = dictionary
        self._made_texts = made.texts
        self._made_patterns = np.frombuffer(made.patterns, np.int64)
        self._known: dict[int, int] = {}
        symbols, wide = dictionary.symbols, dictionary.wide
        texts = _taken(symbols, sent.number_of_texts, list(made.texts), symbols.encode_texts)
        numbers = _taken(wide, sent.numbers, self._made_patterns, wide.intern) + np.int32(WIDE)
        self._new: Others = {True: (sent.number_of_texts, texts), False: (WIDE + sent.numbers, numbers)}

    @property
    def changes_nothing(self) -> bool:
        """Whether the driver's words are those of the task."""
        return all(np.array_equal(words, np.arange(first, first + len(words))) for first, words in self._new.values())

    def __call__(self, words: Matrix, bases: Sequence[Base]) -> Matrix:
        changed = renumbered(words, bases, self._new)
        for i, base in enumerate(bases):
            if base is Base.RECORD:
                changed[:, i] = self._records(words[:, i])
        return changed

    def _records(self, words: Vector) -> Vector:
        """The driver's words of records. Those whose last link was sent are known by the same word."""
        is_made = words >= self._sent.numbers
        if not is_made.any():
            return words
        changed = words.copy()
        made, places = np.unique(words[is_made], return_inverse=True)
        changed[is_made] = np.array([self._record(word) for word in made.tolist()], np.int32)[places]
        return changed

    def _record(self, word: int) -> int:
        task: Any = SimpleNamespace(wide=self, symbols=self)  # all that taking one apart asks of a dictionary
        for each, shape, parts in records.inner_first(task, word, self._is_known):
            added = records.word_of(self._driver, shape, [self._part(*part) for part in parts], may_add=True)
            assert added is not None
            self._known[each] = added
        return self._known[word]

    def _is_known(self, word: int) -> bool:
        return word < self._sent.numbers or word in self._known

    def _part(self, base: Base, word: int) -> int:
        if base is Base.RECORD:
            return self._known.get(word, word)
        first, words = self._new[base is Base.SYMBOL]
        return int(words[word - first]) if word >= first else word

    def pattern(self, number: int) -> int:
        """A pattern by the number that the task knows it by."""
        first = self._sent.numbers
        return int(self._made_patterns[number - first]) if number >= first else self._driver.wide.pattern(number)

    def text(self, number: int) -> str:
        """A text by the number that the task knows it by."""
        first = self._sent.number_of_texts
        return self._made_texts[number - first] if number >= first else self._driver.symbols.text(number)


def _taken(values: Any, first: int, made: Any, encode: Callable[[Any], Vector]) -> Vector:
    """The ids that made values have in the driver. They keep their order if they are the first new ones since the
    driver sent its dictionary."""
    if first != len(values):
        return encode(made)
    values.extend(made)
    taken: Vector = np.arange(first, first + len(made), dtype=np.int32)
    return taken


def with_numbers_of_driver(spec: StratumSpec, results: list[Result], dictionary: Dictionary) -> list[Result]:
    """Results whose files have the words of the driver's dictionary, which takes what tasks have made. They are a
    failure if tasks have agreed on other numbers: facts lie where the agreed numbers say."""
    for result in results:
        if result.made is None:
            continue
        renumber = Renumbering(spec.values, result.made, dictionary)
        if renumber.changes_nothing:
            continue
        if spec.agrees:
            return [Result(result.share, fault=Fault.ERROR)]
        result.files = [_renumbered(told, spec, renumber) if told.file.rows else told for told in result.files]
    return results


def _renumbered(told: FileWritten, spec: StratumSpec, renumber: Renumbering) -> FileWritten:
    bases = spec.program.relations[told.relation].bases
    path = write_anew(told.file.path, spec.folder, told.relation, partial(renumber, bases=bases))
    return replace(told, file=replace(told.file, path=path))
