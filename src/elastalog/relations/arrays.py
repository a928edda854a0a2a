"""Arrow arrays from NumPy arrays and texts, without `pa.array`: where pandas is installed that function imports it,
which takes longer than a small program."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_TYPES = {
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


def array_of_texts(texts: list[str]) -> pa.LargeStringArray:
    """Texts as an Arrow array."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
