"""Arrow arrays from NumPy arrays and texts and back, without `pa.array` and `to_numpy`: these import pandas where it is
installed, which takes longer than a small program, and swallows an interrupt that comes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

FEW_ROWS = 2000
"""Rows up to which Python objects are quicker than `pyarrow.compute`, which takes 50 ms to import. It is behind `cast`,
`take`, `filter`, `dictionary_encode` and the like."""

_TYPES: dict[np.dtype[Any], pa.DataType] = {
    np.dtype(np.int32): pa.int32(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float64): pa.float64(),
}


def array_of_numbers(values: np.ndarray) -> pa.Array:
    """The numbers of a NumPy array, without a copy where it is contiguous."""
    kind = _TYPES.get(values.dtype)
    if kind is None:
        return pa.array(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def numbers_of_array(array: pa.Array) -> np.ndarray:
    """The numbers of an Arrow array without nulls, not copied; they must not be written to."""
    dtype = next((dtype for dtype, kind in _TYPES.items() if kind == array.type), None)
    if dtype is None or array.null_count:
        values: np.ndarray = array.to_numpy(zero_copy_only=False)
        return values
    if not len(array):
        return np.empty(0, dtype)
    numbers: np.ndarray = np.frombuffer(
        memoryview(array.buffers()[1]), dtype, len(array), array.offset * dtype.itemsize
    )
    return numbers


def cast_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of another type, which can hold all its values: of integers without `cast`."""
    if column.type == kind:
        return column
    known = {kind: dtype for dtype, kind in _TYPES.items() if dtype.kind in "iu"}
    if column.type not in known or kind not in known or column.null_count:
        return column.cast(kind)
    chunks = [array_of_numbers(numbers_of_array(chunk).astype(known[kind])) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def array_of_texts(texts: Sequence[str]) -> pa.LargeStringArray:
    """Texts as an Arrow array."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def typed_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of an Arrow type, none of them null, as an array."""
    dtype = next((dtype for dtype, known in _TYPES.items() if known == kind), None)
    if dtype is not None:
        return array_of_numbers(np.array(values, dtype))
    if kind == pa.large_string():
        return array_of_texts(values)
    if kind == pa.string():
        return with_short_offsets(array_of_texts(values))
    return pa.array(values, kind)


def with_short_offsets(texts: pa.LargeStringArray) -> pa.StringArray:
    """Texts as an array of `string`, which must take less than 2 GiB."""
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64, len(texts) + 1, 8 * texts.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    known = None if data is None else data.slice(first, last - first)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer((offsets - first).astype(np.int32)), known]
    )


def lengths_of_texts(array: pa.Array) -> np.ndarray:
    """Bytes of each text of an array of `string` or `large_string`."""
    kind = np.dtype(np.int32 if pa.types.is_string(array.type) else np.int64)
    places = array.buffers()[1]
    if places is None or not len(array):
        return np.empty(0, kind)
    lengths: np.ndarray = np.diff(np.frombuffer(places, kind, len(array) + 1, array.offset * kind.itemsize))
    return lengths


def texts_of_array(array: pa.Array) -> list[str]:
    """The texts of an Arrow array without nulls."""
    kind = {pa.string(): np.int32, pa.large_string(): np.int64}.get(array.type)
    if kind is None or array.null_count or not len(array):
        texts: list[str] = array.to_pylist()
        return texts
    _, places, data = array.buffers()
    ends = np.frombuffer(places, kind, len(array) + 1, array.offset * np.dtype(kind).itemsize)
    first = int(ends[0])
    known = b"" if data is None else data.slice(first, int(ends[-1]) - first).to_pybytes()
    return [known[start:end].decode() for start, end in pairwise((ends - first).tolist())]
