"""Arrow arrays from NumPy arrays and texts and back, without `pa.array` and `to_numpy`: these import pandas where it is
installed, which takes longer than a small program, and swallows an interrupt that comes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base

ARROW_TYPES = {
    Base.NUMBER: pa.int64(),
    Base.UNSIGNED: pa.uint64(),
    Base.FLOAT: pa.float64(),
    Base.SYMBOL: pa.string(),
    Base.RECORD: pa.string(),
}

FEW_ROWS = 2000
"""Rows up to which Python objects are quicker than `pyarrow.compute`, which takes 50 ms to import. It is behind `cast`,
`take`, `filter`, `dictionary_encode` and the like."""

_TYPES: dict[np.dtype[Any], pa.DataType] = {
    np.dtype(np.int32): pa.int32(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float64): pa.float64(),
}
_DTYPES = {kind: dtype for dtype, kind in _TYPES.items()}


def array_of_numbers(values: np.ndarray) -> pa.Array:
    """The numbers of a NumPy array, without a copy where it is contiguous."""
    kind = _TYPES.get(values.dtype)
    if kind is None:
        return pa.array(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def numbers_of_array(array: pa.Array) -> np.ndarray:
    """The numbers of an Arrow array without nulls, not copied; they must not be written to."""
    dtype = _DTYPES.get(array.type)
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
    dtype, given = _DTYPES.get(kind), _DTYPES.get(column.type)
    if dtype is None or given is None or "f" in (dtype.kind, given.kind) or column.null_count:
        return column.cast(kind)
    chunks = [array_of_numbers(numbers_of_array(chunk).astype(dtype)) for chunk in column.chunks]
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
    dtype = _DTYPES.get(kind)
    if dtype is not None:
        return array_of_numbers(np.array(values, dtype))
    if kind == pa.large_string():
        return array_of_texts(values)
    if kind == pa.string():
        return with_short_offsets(array_of_texts(values))
    return pa.array(values, kind)


def places_of(texts: pa.Array) -> np.ndarray:
    """Where each text of an array of `string` or `large_string` begins among its bytes, and the last ends."""
    kind = np.dtype(np.int32 if pa.types.is_string(texts.type) else np.int64)
    places = texts.buffers()[1]
    if places is None or not len(texts):
        return np.zeros(1, kind)
    found: np.ndarray = np.frombuffer(places, kind, len(texts) + 1, texts.offset * kind.itemsize)
    return found


def bytes_of(texts: pa.Array) -> pa.Buffer:
    """The bytes of the texts of such an array, one text after the other."""
    places, data = places_of(texts), texts.buffers()[2]
    return pa.py_buffer(b"") if data is None else data.slice(int(places[0]), int(places[-1] - places[0]))


def with_short_offsets(texts: pa.LargeStringArray) -> pa.StringArray:
    """Texts as an array of `string`, which must take less than 2 GiB."""
    places = places_of(texts)
    offsets = (places - places[0]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(offsets), bytes_of(texts)])


def texts_of_array(array: pa.Array) -> list[str]:
    """The texts of an Arrow array without nulls."""
    if array.type not in (pa.string(), pa.large_string()) or array.null_count:
        texts: list[str] = array.to_pylist()
        return texts
    places, known = places_of(array), bytes_of(array).to_pybytes()
    return [known[start:end].decode() for start, end in pairwise((places - places[0]).tolist())]
