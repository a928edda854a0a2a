"""Values that tasks have made get the numbers of the driver.

A task knows the words of all values that there were when it started, and gives the next numbers to those that it makes:
another task may give the same number to another value. Where a stratum decomposes no task sees what another derives,
so it is enough that the driver takes the values into its dictionary afterwards and writes the files anew, with its own
numbers; but the numbers of one task alone, and those that tasks have agreed on, are those that come next to the driver,
too, and files stay as they are. Records are chains of such numbers (`relations.records`), so theirs are found part by
part. The argument by which a stratum decomposes never has a new value: it comes from facts that were there before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import Matrix, Vector
from elastalog.backends.spark.record_numbers import RecordNumbers
from elastalog.backends.spark.results import ChangesWritten, Failed, Fault, Result, StateWritten, ValuesMade
from elastalog.backends.spark.task import StratumSpec
from elastalog.backends.spark.values import MadeValues, Values
from elastalog.backends.spark.word_files import write_anew
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary


@dataclass(frozen=True, slots=True)
class Renumbering:
    """From the words of one task to those of the driver: of symbols from `first_text` on, of numbers from
    `first_number` on."""

    first_text: int
    texts: Vector
    first_number: int
    numbers: Vector
    records: RecordNumbers

    @staticmethod
    def of(sent: Values, made: MadeValues, dictionary: Dictionary) -> Renumbering:
        """The driver's dictionary takes the values that a task has made."""
        texts = _texts_taken(sent, made, dictionary)
        numbers = _numbers_taken(sent, made, dictionary) + np.int32(WIDE)
        records = RecordNumbers(sent, made, texts, numbers, dictionary)
        return Renumbering(sent.number_of_texts, texts, WIDE + sent.numbers, numbers, records)

    @property
    def changes_nothing(self) -> bool:
        """Whether the driver's words are those of the task."""
        pairs = ((self.first_text, self.texts), (self.first_number, self.numbers))
        return all(np.array_equal(words, np.arange(first, first + len(words))) for first, words in pairs)

    def __call__(self, words: Matrix, bases: Sequence[Base]) -> Matrix:
        changed = words.copy()
        for i, base in enumerate(bases):
            if base is Base.RECORD:
                changed[:, i] = self.records.words(words[:, i])
                continue
            is_text = base is Base.SYMBOL
            first, numbers = (self.first_text, self.texts) if is_text else (self.first_number, self.numbers)
            if len(numbers):
                is_made = words[:, i] >= first
                changed[is_made, i] = numbers[words[is_made, i] - first]
        return changed


def _texts_taken(sent: Values, made: MadeValues, dictionary: Dictionary) -> Vector:
    """The words that texts have in the driver: in their order, where these are the first new ones since it sent what it
    had."""
    first = sent.number_of_texts
    if first != len(dictionary.symbols):
        return dictionary.symbols.encode_texts(list(made.texts))
    dictionary.symbols.extend(list(made.texts))
    return np.arange(first, first + len(made.texts), dtype=np.int32)


def _numbers_taken(sent: Values, made: MadeValues, dictionary: Dictionary) -> Vector:
    """The same for patterns of numbers."""
    patterns, first = np.frombuffer(made.patterns, np.int64), sent.numbers
    if first != len(dictionary.wide):
        return dictionary.wide.intern(patterns)
    dictionary.wide.extend(patterns)
    return np.arange(first, first + len(patterns), dtype=np.int32)


def with_numbers_of_driver(spec: StratumSpec, results: Sequence[Result], dictionary: Dictionary) -> list[Result]:
    """Results whose files have the words of the driver's dictionary, which takes what tasks have made. A failure, if
    tasks have agreed on other numbers than these: facts are where agreed numbers say."""
    made: Mapping[int, Renumbering] = {
        result.share: Renumbering.of(spec.values, result.values, dictionary)
        for result in results
        if isinstance(result, ValuesMade)
    }
    made = {share: renumbering for share, renumbering in made.items() if not renumbering.changes_nothing}
    if made and spec.agrees:
        return [Failed(share, Fault.ERROR) for share in made]
    found: list[Result] = []
    for result in results:
        renumber = made.get(result.share)
        if renumber is not None and isinstance(result, StateWritten | ChangesWritten) and result.file.rows:
            bases = spec.program.relations[result.relation].bases
            path = write_anew(result.file.path, spec.folder, result.relation, partial(renumber, bases=bases))
            result = replace(result, file=replace(result.file, path=path))
        found.append(result)
    return found
