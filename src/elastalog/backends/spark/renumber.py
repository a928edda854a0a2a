"""Values that tasks have made get the numbers of the driver.

A task knows the words of all values that there were when it started, and gives the next numbers to those that it makes:
another task may give the same number to another value. Where a stratum decomposes no task sees what another derives,
so it is enough that the driver takes the values into its dictionary afterwards and writes the files anew, with its own
numbers. Records are chains of such numbers (`relations.records`), so theirs are found part by part. The argument by
which facts are shared never has a new value: it comes from facts that were there before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from elastalog.analysis.program import Base
from elastalog.backends.protocol import Matrix, Vector
from elastalog.backends.spark.record_numbers import RecordNumbers
from elastalog.backends.spark.results import ChangesWritten, Result, StateWritten, ValuesMade
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
        texts = dictionary.symbols.encode_texts(list(made.texts))
        numbers = dictionary.wide.intern(np.frombuffer(made.patterns, np.int64)) + np.int32(WIDE)
        records = RecordNumbers(sent, made, texts, numbers, dictionary)
        return Renumbering(sent.number_of_texts, texts, WIDE + sent.numbers, numbers, records)

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


def with_numbers_of_driver(spec: StratumSpec, results: Sequence[Result], dictionary: Dictionary) -> list[Result]:
    """Results whose files have the words of the driver's dictionary, which takes what tasks have made."""
    made: Mapping[int, Renumbering] = {
        result.share: Renumbering.of(spec.values, result.values, dictionary)
        for result in results
        if isinstance(result, ValuesMade)
    }
    found: list[Result] = []
    for result in results:
        renumber = made.get(result.share)
        if renumber is not None and isinstance(result, StateWritten | ChangesWritten) and result.file.rows:
            bases = spec.program.relations[result.relation].bases
            path = write_anew(result.file.path, spec.folder, result.relation, partial(renumber, bases=bases))
            result = replace(result, file=replace(result.file, path=path))
        found.append(result)
    return found
