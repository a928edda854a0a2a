"""Arrow arrays to NumPy arrays and texts and back, by their buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from elastalog.relations.arrays import array_of_numbers, array_of_texts, cast_column, numbers_of_array, texts_of_array

TEXTS = ["", "a", "ä€𝄞", "", "two words", "\n"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_come_back(kind: pa.DataType) -> None:
    array = pa.array(TEXTS, kind)
    assert texts_of_array(array) == TEXTS
    assert texts_of_array(array[2:5]) == TEXTS[2:5]
    assert texts_of_array(array[3:4]) == [""]
    assert texts_of_array(array[:0]) == []


def test_texts_go_and_come() -> None:
    assert texts_of_array(array_of_texts(TEXTS)) == TEXTS
    assert texts_of_array(array_of_texts([])) == []


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.int16()])
def test_numbers_come_back(kind: pa.DataType) -> None:
    array = pa.array([3, 1, 4, 1, 5], kind)
    assert numbers_of_array(array).tolist() == [3, 1, 4, 1, 5]
    assert numbers_of_array(array[1:3]).tolist() == [1, 4]
    assert numbers_of_array(array[5:]).tolist() == []
    assert numbers_of_array(array).dtype == kind.to_pandas_dtype()


def test_numbers_go_and_come() -> None:
    numbers = np.arange(10, dtype=np.int64)
    assert numbers_of_array(array_of_numbers(numbers[::3])).tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.uint32()])
@pytest.mark.parametrize("values", [[[3, 1], [], [4, 1, 5]], [[2, None]], []])
def test_columns_are_cast(kind: pa.DataType, values: list[list[int | None]]) -> None:
    column = pa.chunked_array(values, pa.int64())
    assert cast_column(column, kind) == column.cast(kind)
    assert cast_column(column.slice(1), kind) == column.slice(1).cast(kind)
