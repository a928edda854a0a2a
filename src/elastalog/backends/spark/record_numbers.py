"""Records that tasks have made, in the numbers of the driver."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import Vector
from elastalog.backends.spark.values import MadeValues, Values
from elastalog.relations import records
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary


class RecordNumbers:
    """From the words of the records of one task to those of the driver, whose dictionary takes them. `texts` and
    `numbers`: the driver's words of the texts and patterns that the task has made."""

    def __init__(self, sent: Values, made: MadeValues, texts: Vector, numbers: Vector, dictionary: Dictionary) -> None:
        self._sent = sent
        self._made_texts = made.texts
        self._made_patterns = np.frombuffer(made.patterns, np.int64)
        self._texts = texts
        self._numbers = numbers
        self._driver = dictionary
        self._known: dict[int, int] = {}
        # All that taking a record apart asks of a dictionary.
        self._task = cast("Dictionary", _TaskDictionary(self))

    def words(self, words: Vector) -> Vector:
        """The driver's words of records. Those whose last link was sent are known by the same word."""
        is_made = words >= self._sent.numbers
        if not is_made.any():
            return words
        changed = words.copy()
        made, places = np.unique(words[is_made], return_inverse=True)
        changed[is_made] = np.array([self._word(word) for word in made.tolist()], np.int32)[places]
        return changed

    def _word(self, word: int) -> int:
        """Records may be nested deeper than Python calls go."""
        pending = [word]
        while pending:
            top = pending[-1]
            if top < self._sent.numbers or top in self._known:
                pending.pop()
                continue
            shape, parts = records.parts_of(self._task, top)
            bases = records.read_shape(shape)[1]
            inner = [
                part
                for base, part in zip(bases, parts, strict=False)
                if base is Base.RECORD and part >= self._sent.numbers and part not in self._known
            ]
            if inner:
                pending.extend(inner)
                continue
            translated = [self._part(base, part) for base, part in zip(bases, parts, strict=False)]
            self._known[top] = records.pack_one(self._driver, shape, translated)
            pending.pop()
        return self._known.get(word, word)

    def _part(self, base: Base, word: int) -> int:
        if base is Base.RECORD:
            return self._known.get(word, word)
        is_text = base is Base.SYMBOL
        first = self._sent.number_of_texts if is_text else WIDE + self._sent.numbers
        made = self._texts if is_text else self._numbers
        return int(made[word - first]) if word >= first else word

    def pattern(self, number: int) -> int:
        """A pattern by the number that the task knows it by."""
        first = self._sent.numbers
        return int(self._made_patterns[number - first]) if number >= first else self._driver.wide.pattern(number)

    def text(self, number: int) -> str:
        """A text by the number that the task knows it by."""
        first = self._sent.number_of_texts
        return self._made_texts[number - first] if number >= first else self._driver.symbols.text(number)


class _TaskDictionary:
    """The dictionary of a task, as far as records need it, without being one."""

    def __init__(self, numbers: RecordNumbers) -> None:
        self.wide: Any = numbers
        self.symbols: Any = numbers
