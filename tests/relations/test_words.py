"""Values and words: a bijection for every base type."""

from __future__ import annotations

import math
import struct
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.analysis.program import Base
from elastalog.relations import wide
from elastalog.relations.arrays import ARROW_TYPES
from elastalog.relations.wide import WideTable
from elastalog.relations.words import Dictionary

EXTREME_NUMBERS = [-(2**63), -(2**63) + 1, -(2**30) - 1, -(2**30), -1, 0, 1, 2**30 - 1, 2**30, 2**31, 2**63 - 1]
EXTREME_UNSIGNED = [0, 1, 2**30 - 1, 2**30, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
EXTREME_FLOATS = [0.0, 1.0, -1.5, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
EXTREME_TEXTS = ["", "a", "\0", "tab\t", "line\n", "é", "😀", "\U0010ffff", "x" * 10_000]

VALUES = {
    Base.NUMBER: st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31), 2**31) | st.sampled_from(EXTREME_NUMBERS),
    Base.UNSIGNED: st.integers(0, 2**64 - 1) | st.integers(0, 2**31) | st.sampled_from(EXTREME_UNSIGNED),
    Base.FLOAT: st.floats() | st.sampled_from(EXTREME_FLOATS),
    Base.SYMBOL: st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(EXTREME_TEXTS),
}
EXTREMES = {
    Base.NUMBER: EXTREME_NUMBERS,
    Base.UNSIGNED: EXTREME_UNSIGNED,
    Base.FLOAT: EXTREME_FLOATS,
    Base.SYMBOL: EXTREME_TEXTS,
}


def same(left: object, right: object) -> bool:
    """Equality under which NaN equals NaN, and 0.0 differs from -0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or struct.pack("<d", left) == struct.pack("<d", right)
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("base", EXTREMES)
def test_extremes_survive_the_round_trip_one_by_one(base):
    dictionary = Dictionary()
    for value in EXTREMES[base]:
        word = dictionary.encode_value(base, value)
        assert -(2**31) <= word < 2**31
        assert same(dictionary.decode_value(base, word), value)
        assert dictionary.find_value(base, value) == word


def test_values_of_numpy_are_those_of_python():
    dictionary = Dictionary()
    for number in (7, -(2**40)):
        assert dictionary.encode_value(Base.NUMBER, np.int64(number)) == dictionary.encode_value(Base.NUMBER, number)
    assert dictionary.find_value(Base.UNSIGNED, np.uint64(2**64 - 1)) is None
    assert dictionary.encode_value(Base.FLOAT, np.float32(0.5)) == dictionary.find_value(Base.FLOAT, 0.5)


@pytest.mark.parametrize(
    ("base", "value"),
    [
        (Base.NUMBER, np.bool_(True)), (Base.NUMBER, np.float64(1)), (Base.NUMBER, np.array([1, 2])),
        (Base.UNSIGNED, np.int64(-1)), (Base.FLOAT, None), (Base.FLOAT, 10**400), (Base.SYMBOL, None),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_type_is_refused(base, value):
    dictionary = Dictionary()
    for ask in (dictionary.encode_value, dictionary.find_value):
        with pytest.raises(ValueError, match=r"is not a|is outside the range of"):
            ask(base, value)


@pytest.mark.parametrize("base", EXTREMES)
def test_columns_and_single_values_have_the_same_words(base):
    dictionary = Dictionary()
    column = pa.array(EXTREMES[base] * 5, ARROW_TYPES[base])
    words = dictionary.encode_column(base, column)
    assert words.dtype == np.int32
    assert words.tolist() == [dictionary.encode_value(base, value) for value in EXTREMES[base] * 5]
    decoded = dictionary.decode_column(base, words)
    assert decoded.type == ARROW_TYPES[base]
    assert all(same(a, b) for a, b in zip(decoded.to_pylist(), EXTREMES[base] * 5, strict=True))


@given(st.data(), st.sampled_from(list(EXTREMES)))
@settings(max_examples=150, deadline=None)
def test_encoding_is_a_bijection(data, base):
    values = data.draw(st.lists(VALUES[base], max_size=60))
    dictionary = Dictionary()
    words = dictionary.encode_column(base, pa.array(values, ARROW_TYPES[base]))
    decoded = dictionary.decode_column(base, words).to_pylist()
    expected = [value + 0.0 for value in values] if base is Base.FLOAT else values
    assert all(same(a, b) for a, b in zip(decoded, expected, strict=True))
    for i, left in enumerate(expected):
        for j in range(i):
            is_equal = left == expected[j] or (left != left and expected[j] != expected[j])
            assert (words[i] == words[j]) == is_equal


def test_narrow_numbers_are_their_own_words():
    dictionary = Dictionary()
    values = [-(2**30), -5, 0, 7, 2**30 - 1]
    assert dictionary.encode_column(Base.NUMBER, pa.array(values)).tolist() == values
    assert len(dictionary.wide) == 0
    assert dictionary.encode_value(Base.NUMBER, 2**30) == 2**30
    assert dictionary.encode_value(Base.NUMBER, -(2**30) - 1) == 2**30 + 1


def test_zeros_are_one_float_and_nans_are_one_float():
    dictionary = Dictionary()
    other_nan = struct.unpack("<d", struct.pack("<q", -1))[0]
    words = dictionary.from_floats(np.array([0.0, -0.0, math.nan, other_nan]))
    assert words[0] == words[1] != words[2] == words[3]
    assert dictionary.encode_value(Base.FLOAT, -0.0) == words[0]
    assert dictionary.encode_value(Base.FLOAT, other_nan) == words[2]


def test_finding_never_adds():
    dictionary = Dictionary()
    assert dictionary.find_value(Base.SYMBOL, "a") is None
    assert dictionary.find_value(Base.FLOAT, 1.0) is None
    assert dictionary.find_value(Base.NUMBER, 2**40) is None
    assert dictionary.find_value(Base.NUMBER, 12) == 12
    assert (len(dictionary.symbols), len(dictionary.wide)) == (0, 0)


@pytest.mark.parametrize(
    ("base", "value"),
    [
        (Base.NUMBER, 2**63),
        (Base.NUMBER, -(2**63) - 1),
        (Base.NUMBER, 1.0),
        (Base.NUMBER, True),
        (Base.NUMBER, "1"),
        (Base.UNSIGNED, -1),
        (Base.UNSIGNED, 2**64),
        (Base.FLOAT, "1.0"),
        (Base.SYMBOL, 1),
    ],
)
def test_values_outside_the_base_type_are_refused(base, value):
    with pytest.raises(ValueError, match=r"not a|outside the range"):
        Dictionary().encode_value(base, value)


def test_blocks_for_arithmetic_return_what_went_in():
    dictionary = Dictionary()
    numbers = np.array(EXTREME_NUMBERS, np.int64)
    assert dictionary.integers(dictionary.from_integers(numbers)).tolist() == EXTREME_NUMBERS
    unsigned = np.array(EXTREME_UNSIGNED, np.uint64)
    back = dictionary.unsigned(dictionary.from_integers(unsigned))
    assert back.dtype == np.uint64
    assert back.tolist() == EXTREME_UNSIGNED
    assert dictionary.floats(dictionary.from_floats(np.array([1.5, -2.5]))).tolist() == [1.5, -2.5]
    for empty in (dictionary.from_integers, dictionary.integers, dictionary.from_floats):
        assert len(empty(np.array([], np.int64))) == 0


def test_columns_of_a_row_major_block_can_be_decoded():
    dictionary = Dictionary()
    block = np.array([[1, 2**30], [2, 2**30 + 1]], np.int32)
    dictionary.from_floats(np.array([0.5, 1.5]))
    assert dictionary.floats(block[:, 1]).tolist() == [0.5, 1.5]
    assert dictionary.decode_column(Base.NUMBER, block[:, 0]).to_pylist() == [1, 2]


# --- readers and writers ---------------------------------------------------------------------------------------------


def test_readers_see_only_whole_entries_while_a_writer_appends():
    dictionary = Dictionary()
    wrong: list[object] = []
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            count = len(dictionary.symbols)
            if count:
                words = np.arange(count, dtype=np.int32)
                texts = dictionary.symbols.decode(words).to_pylist()
                if texts != [f"s{i}" for i in range(count)]:
                    wrong.append(texts)
            wide = len(dictionary.wide)
            found = dictionary.wide.find_all(np.arange(wide + 50, dtype=np.int64) + 2**40)
            if found[:wide].tolist() != list(range(wide)):
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for start in range(0, 6000, 60):
        dictionary.symbols.encode(pa.array([f"s{i}" for i in range(start, start + 60)]))
        dictionary.wide.intern(np.arange(start, start + 60, dtype=np.int64) + 2**40)
    is_done.set()
    reader.join()
    assert not wrong


# --- the wide table ------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=80), max_size=6))
@settings(max_examples=100, deadline=None)
def test_wide_ids_are_a_bijection_however_patterns_arrive(blocks):
    table = WideTable()
    known: dict[int, int] = {}
    for block in blocks:
        ids = table.intern(np.array(block, np.int64))
        for pattern, pattern_id in zip(block, ids.tolist(), strict=True):
            assert known.setdefault(pattern, pattern_id) == pattern_id
            assert table.find(pattern) == pattern_id
    assert sorted(known.values()) == list(range(len(known))) == list(range(len(table)))
    ids = np.arange(len(table), dtype=np.int32)
    assert {p: i for i, p in enumerate(table.patterns(ids).tolist())} == known
    assert table.patterns_from(0).tolist() == table.patterns(ids).tolist()


def test_floats_that_differ_in_few_bits_do_not_crowd_one_slot():
    table = WideTable()
    patterns = (np.arange(200_000) / 8.0).view(np.int64)
    ids = table.intern(patterns)
    assert (table.patterns(ids) == patterns).all()
    assert table.find_all(patterns).tolist() == ids.tolist()
    assert table.find_all(np.array([1], np.int64)).tolist() == [-1]


@pytest.mark.parametrize("known", [3, 60])  # with room for more, and without
def test_ctrl_c_while_patterns_are_entered_changes_no_meaning(monkeypatch, known):
    table = WideTable()
    table.intern(np.arange(known, dtype=np.int64))
    enter = wide.enter_patterns

    def interrupted(*given):
        enter(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(wide, "enter_patterns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.intern(np.arange(1000, 1040, dtype=np.int64))
    assert table.find(1000) is None
    assert table.intern(np.array([2000, 1001, 0], np.int64)).tolist() == [known, known + 1, 0]
    assert table.find_all(np.array([1000, 1001, 2000, known - 1], np.int64)).tolist() == [
        -1,
        known + 1,
        known,
        known - 1,
    ]
