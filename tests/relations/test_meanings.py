"""Facts decoded with no more of a dictionary than they need."""

from __future__ import annotations

import numpy as np
import pytest

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.relations.meanings import Entries, own_words
from elastalog.relations.words import Dictionary

BASES = (Base.SYMBOL, Base.NUMBER, Base.FLOAT)
FACTS = [("b", 2**40, 0.5), ("d", 7, -1.5), ("b", -(2**30), 2.0)]


def parts(known: Dictionary, read: list[str]) -> tuple[list[Entries], list[Entries]]:
    """The entries of a dictionary, two and two; what is read is noted."""

    def texts(first: int, last: int) -> object:
        read.append(f"texts {first}")
        return known.symbols.array(first, last)

    def patterns(first: int, last: int) -> object:
        read.append(f"patterns {first}")
        return known.wide.patterns_from(first)[: last - first]

    return (
        [Entries(i, i + 2, lambda i=i: texts(i, i + 2)) for i in range(0, len(known.symbols), 2)],
        [Entries(i, i + 2, lambda i=i: patterns(i, i + 2)) for i in range(0, len(known.wide), 2)],
    )


def test_only_what_facts_need_is_read_and_kept() -> None:
    known = Dictionary()
    for text in "abcdef":
        known.symbols.encode_one(text)
    known.from_floats(np.array([9.0, 8.0]))
    words = np.array([[known.encode_value(b, v) for b, v in zip(BASES, fact, strict=True)] for fact in FACTS], np.int32)
    known.from_floats(np.array([4.5, 5.5]))
    read: list[str] = []
    made, own = own_words(BASES, words, *parts(known, read))
    decoded = [tuple(made.decode_value(b, w) for b, w in zip(BASES, row, strict=True)) for row in own.tolist()]
    assert decoded == FACTS
    assert (len(made.symbols), len(made.wide)) == (2, 4)
    assert read == ["texts 0", "texts 2", "patterns 2", "patterns 4"]
    assert own_words(BASES, words[:0], *parts(known, read))[1].shape == (0, 3)


def test_a_word_that_no_part_has_is_told() -> None:
    known = Dictionary()
    known.symbols.encode_texts(["a", "b"])
    texts, patterns = parts(known, [])
    with pytest.raises(InternalError, match="not in the dictionary"):
        own_words((Base.SYMBOL,), np.array([[5]], np.int32), texts, patterns)
