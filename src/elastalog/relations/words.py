"""Values as 32-bit words: a bijection per base type, so that joins and duplicate elimination look at words alone.

| base | word |
|---|---|
| symbol | its id among the symbols |
| number | itself from -2^30 to 2^30 - 1, otherwise 2^30 + the id of its 64 bits in the wide table |
| unsigned | itself below 2^30, otherwise 2^30 + the id of its 64 bits |
| float | 2^30 + the id of its 64 bits, where -0.0 is 0.0 and there is one NaN |
| record | the id of the last pattern of its chain (see `records`) |

Blocks of arithmetic hold narrow numbers nearly always; then one look at the extremes and a change of width is all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.analysis.program import Base, Value
from elastalog.analysis.values import NIL, Branch, Nil, Record, plain_text, sort_key
from elastalog.relations import records
from elastalog.relations.arrays import ARROW_TYPES, array_of_numbers, array_of_texts, numbers_of_array
from elastalog.relations.limits import (
    LEAST_NARROW,
    LEAST_NUMBER,
    MOST_NUMBER,
    MOST_UNSIGNED,
    WIDE,
    Floats,
    Integers,
    Unsigned,
    Words,
)
from elastalog.relations.schema import Column
from elastalog.relations.symbols import Symbols
from elastalog.relations.wide import WideTable

_SYMBOL, _NUMBER = Base.SYMBOL, Base.NUMBER
_least = np.minimum.reduce
_most = np.maximum.reduce


class Dictionary:
    """What words mean in one database: its symbols and its wide table, the user's functors, and whether its integers
    wrap. Safe for readers while a writer adds values."""

    __slots__ = ("functions", "symbols", "wide", "wraps")

    def __init__(self) -> None:
        self.functions: Mapping[str, Callable[..., Any]] = {}
        self.wraps = False
        self.symbols = Symbols()
        self.wide = WideTable()

    # --- columns ---------------------------------------------------------------------------------------------------

    def encode_column(self, base: Base, array: pa.Array | pa.ChunkedArray) -> Words:
        """The words of a column without nulls. Integers of any width and 32-bit floats are widened; a value outside the
        base type raises `pa.ArrowInvalid` (`relations.tables` turns that into a located diagnostic)."""
        if base is Base.SYMBOL:
            return self.symbols.encode(array)
        if base is Base.RECORD:
            return self.encode_records(array.to_pylist())
        values = _as_numpy(array, ARROW_TYPES[base])
        return self.from_floats(values) if base is Base.FLOAT else self.from_integers(values)

    def decode_column(self, base: Base, words: Words) -> pa.Array:
        """The values of words: `int64`, `uint64`, `float64` or `string` (`large_string` beyond 2 GiB of text); records
        as their text."""
        if base is Base.SYMBOL:
            return self.symbols.decode(words)
        if base is Base.RECORD:
            return array_of_texts(list(map(plain_text, self.decode_records(words)))).cast(pa.string())
        if base is Base.FLOAT:
            return array_of_numbers(self.floats(words))
        return array_of_numbers(self.integers(words) if base is Base.NUMBER else self.unsigned(words))

    # --- single values ---------------------------------------------------------------------------------------------

    def encode_value(self, base: Base, value: Value) -> int:
        """The word of a value, which is added to the dictionary if new. A value outside the base type: ValueError."""
        if base is Base.SYMBOL:
            return self.symbols.encode_one(_text(value))
        if base is Base.RECORD:
            added = records.encode(self, value, may_add=True)
            assert added is not None
            return added
        narrow, pattern = _narrow_or_pattern(base, value)
        return WIDE + self.wide.intern_one(pattern) if narrow is None else narrow

    def find_value(self, base: Base, value: Value) -> int | None:
        """The word of a value, None if the dictionary would have to add it: then no fact holds the value."""
        if base is Base.SYMBOL:
            return self.symbols.find(_text(value))
        if base is Base.RECORD:
            return records.encode(self, value, may_add=False)
        narrow, pattern = _narrow_or_pattern(base, value)
        if narrow is not None:
            return narrow
        found = self.wide.find(pattern)
        return None if found is None else WIDE + found

    def find_row(self, columns: Iterable[Column], values: Iterable[Any]) -> list[int] | None:
        """The words of a fact, or of some columns of one; None if the dictionary lacks one of them. Raises ValueError,
        or NotOfType, if a value is not of its column's type."""
        found: list[Any] = []
        find = self.symbols.find
        for column, value in zip(columns, values, strict=True):
            base, kind = column.base, type(value)
            if kind is str and base is _SYMBOL:
                found.append(find(value))
            elif kind is int and base is _NUMBER and LEAST_NARROW <= value < WIDE:
                found.append(value)
            else:
                found.append(self.find_value(base, value if column.record is None else column.record.typed(value)))
        return None if None in found else found

    def ordinal(self, value: Any) -> int | None:
        """The number that `ord` gives for a symbol or record; None if it has none."""
        if isinstance(value, str):
            return self.symbols.find(value)
        word = records.encode(self, value, may_add=False)
        return 0 if value is NIL else None if word is None else word + 1

    def decode_value(self, base: Base, word: int) -> Value:
        """The value of a word."""
        if base is Base.SYMBOL:
            return self.symbols.text(word)
        if base is Base.RECORD:
            return records.decode(self, word)
        if word < WIDE and base is not Base.FLOAT:
            return word
        pattern = self.wide.pattern(word - WIDE)
        if base is Base.FLOAT:
            value: float = struct.unpack("<d", struct.pack("<q", pattern))[0]
            return value
        return pattern if base is Base.NUMBER else pattern & MOST_UNSIGNED

    def values(self, base: Base, words: Words) -> list[Value]:
        """The values of words as Python has them: nil is `None`."""
        if base is Base.RECORD:
            return self.decode_records(words, are_public=True)
        if base is _SYMBOL:
            return self.symbols.texts(words)  # type: ignore[return-value]
        listed: list[Any] = words.tolist()
        if base is not Base.FLOAT and max(listed, default=0) < WIDE:  # they are their own words
            return listed
        found: list[Value] = self.decode_column(base, words).to_pylist()
        return found

    # --- records ---------------------------------------------------------------------------------------------------

    def encode_records(self, values: Iterable[Value]) -> Words:
        """The words of records; new ones are added."""
        return np.array([self.encode_value(Base.RECORD, value) for value in values], np.int32)

    def decode_records(self, words: Words, *, are_public: bool = False) -> list[Value]:
        """The records of words; `are_public`: as users meet them."""
        memory: dict[int, Value] = {}
        return [records.decode(self, word, memory, is_public=are_public) for word in words.tolist()]

    # --- blocks for arithmetic -------------------------------------------------------------------------------------

    def integers(self, words: Words) -> Integers:
        """The numbers of words, as a new array."""
        values = words.astype(np.int64)
        if len(words) and _most(words) >= WIDE:
            is_wide = words >= WIDE
            values[is_wide] = self.wide.patterns(words[is_wide] - WIDE)
        return values

    def from_integers(self, values: Integers | Unsigned) -> Words:
        """The words of numbers, or of unsigned numbers."""
        words = values.astype(np.int32)
        if len(values) and (_most(values) >= WIDE or _least(values) < LEAST_NARROW):
            is_wide = (values >= WIDE) | (values < LEAST_NARROW)
            words[is_wide] = self.wide.intern(values[is_wide].view(np.int64)) + np.int32(WIDE)
        return words

    def unsigned(self, words: Words) -> Unsigned:
        """The unsigned numbers of words, as a new array."""
        return self.integers(words).view(np.uint64)

    def find_integers(self, values: Integers | Unsigned) -> tuple[Words, NDArray[np.bool_] | None]:
        """The words of numbers, or of unsigned numbers, and which of them the dictionary has; None if it has all."""
        words = values.astype(np.int32)
        is_wide = (values >= WIDE) | (values < LEAST_NARROW)
        if not is_wide.any():
            return words, None
        found = self.wide.find_all(values[is_wide].view(np.int64))
        words[is_wide] = found + np.int32(WIDE)
        is_known = ~is_wide
        is_known[is_wide] = found >= 0
        return words, is_known

    def floats(self, words: Words) -> Floats:
        """The floats of words, as a new array."""
        return self.wide.patterns(words - np.int32(WIDE)).view(np.float64)

    def from_floats(self, values: Floats) -> Words:
        """The words of floats; -0.0 becomes 0.0, every NaN the same NaN."""
        values = values + 0.0
        is_nan = values != values
        if is_nan.any():
            values[is_nan] = np.nan
        return self.wide.intern(values.view(np.int64)) + np.int32(WIDE)


def row_to_write(arity: int) -> tuple[Words, Callable[..., None]]:
    """The place of a fact to ask about under a lock, and what writes words into it: `write(row, 0, *words)`."""
    width = max(arity, 1)
    return np.empty((1, width), np.int32), packing(width)


@cache
def packing(size: int) -> Callable[..., None]:
    """The function that writes `size` words into an array."""
    return struct.Struct(f"{size}i").pack_into


def _as_numpy(array: pa.Array | pa.ChunkedArray, arrow_type: pa.DataType) -> np.ndarray:
    if array.type != arrow_type:
        array = array.cast(arrow_type)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    values = [numbers_of_array(chunk) for chunk in chunks] or [np.empty(0, arrow_type.to_pandas_dtype())]
    return values[0] if len(values) == 1 else np.concatenate(values)


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a symbol")
    return value


def _narrow_or_pattern(base: Base, value: Value) -> tuple[int | None, int]:
    """The word of a value that needs no pattern, or None and the pattern."""
    if isinstance(value, str | bool | Record | Branch | Nil):
        raise ValueError(f"{value!r} is not a {base.value}")
    if base is Base.FLOAT:
        try:
            number = float(value) + 0.0
        except (TypeError, OverflowError):
            raise ValueError(f"{value!r} is not a float") from None
        if number != number:
            number = float("nan")
        pattern: int = struct.unpack("<q", struct.pack("<d", number))[0]
        return None, pattern
    if not isinstance(value, int):
        try:
            value = index(value)  # type: ignore[arg-type]  # those of NumPy are whole numbers too
        except TypeError:
            raise ValueError(f"{value!r} is not a {base.value}") from None
    least, most = (LEAST_NUMBER, MOST_NUMBER) if base is Base.NUMBER else (0, MOST_UNSIGNED)
    if not least <= value <= most:
        raise ValueError(f"{value} is outside the range of {base.value}")
    if LEAST_NARROW <= value < WIDE:
        return value, 0
    return None, value if value <= MOST_NUMBER else value - (MOST_UNSIGNED + 1)


def order_of(row: Sequence[int], bases: tuple[Base, ...], dictionary: Dictionary) -> tuple[Any, ...]:
    """By what facts are ordered: their values, part by part, whatever their words."""
    return tuple(sort_key(dictionary.decode_value(base, word)) for base, word in zip(bases, row, strict=True))
