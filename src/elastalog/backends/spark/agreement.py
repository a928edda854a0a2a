"""Numbers of new values that tasks which exchange agree on.

A task gives a value that it makes the next number of its own dictionary, as another may to another value: that is its
*own* word. Before facts with new values are given to anybody, all tasks tell each other what they have made, and every
task numbers these values in the same order: share by share, each value once. These words are *agreed*. What is given
and written has agreed words, what a task holds and joins has its own; which task wants a fact is found by agreed ones.
The driver numbers the values in the same order, so that agreed words are its words, too.

Records are not for agreement: their numbers are made of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import Matrix, Vector
from elastalog.backends.spark.values import MadeValues, Values
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary


class _Numbering:
    """Two numberings of the same new values: words from `first` on, by their distance from it."""

    def __init__(self, first: int) -> None:
        self.first = first
        self._own = np.empty(0, np.int32)
        self._agreed = np.empty(0, np.int32)

    @property
    def size(self) -> int:
        return len(self._own)

    def extend(self, own: Vector) -> None:
        """More values are agreed on, in this order, which the task knows by these words."""
        self._own = np.concatenate((self._own, own))
        self._agreed = np.empty(self.size, np.int32)
        self._agreed[self._own - self.first] = np.arange(self.first, self.first + self.size, dtype=np.int32)

    def agreed(self, words: Vector) -> Vector:
        return self._turned(words, self._agreed)

    def own(self, words: Vector) -> Vector:
        return self._turned(words, self._own)

    def _turned(self, words: Vector, others: Vector) -> Vector:
        if not self.size:
            return words
        is_new = words >= self.first
        turned = words.copy()
        turned[is_new] = others[words[is_new] - self.first]
        return turned


class Agreement:
    """What one task knows of it. Until something is agreed on, all words are the driver's."""

    def __init__(self, sent: Values, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._texts, self._numbers = _Numbering(sent.number_of_texts), _Numbering(WIDE + sent.numbers)
        self._made_texts: list[str] = []
        self._made_patterns: list[int] = []

    @property
    def is_empty(self) -> bool:
        return not (self._texts.size or self._numbers.size)

    @property
    def values(self) -> MadeValues:
        """All that was agreed on, in order."""
        return MadeValues(tuple(self._made_texts), np.array(self._made_patterns, np.int64).tobytes())

    def news(self) -> Any:
        """What this task has made since the last agreement, for all others."""
        texts = self._dictionary.symbols.strings_from(self._texts.first + self._texts.size)
        patterns = self._dictionary.wide.patterns_from(self._numbers.first - WIDE + self._numbers.size)
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
            self._texts.extend(self._dictionary.symbols.encode_texts(list(texts)))
        if patterns:
            self._made_patterns += patterns
            own = self._dictionary.wide.intern(np.array(list(patterns), np.int64))
            self._numbers.extend(own + np.int32(WIDE))

    def outward(self, rows: Matrix, bases: Sequence[Base]) -> Matrix:
        """Rows that begin with a fact, in agreed words."""
        return self._turned(rows, bases, _Numbering.agreed)

    def inward(self, rows: Matrix, bases: Sequence[Base]) -> Matrix:
        """Rows that begin with a fact, in the words of this task."""
        return self._turned(rows, bases, _Numbering.own)

    def _turned(self, rows: Matrix, bases: Sequence[Base], turn: Any) -> Matrix:
        if self.is_empty or not len(rows):
            return rows
        turned = rows.copy()
        for column, base in enumerate(bases):
            if base is not Base.RECORD:
                numbering = self._texts if base is Base.SYMBOL else self._numbers
                turned[:, column] = turn(numbering, rows[:, column])
        return turned
