"""Columns of real tables: what says the same in one of the base types is taken for it, nothing else is.

| declared as | columns that are taken too |
|---|---|
| `symbol` | dates, times and timestamps (ISO 8601), decimals, truth values (`true`, `false`) |
| `number`, `unsigned` | whole floats (NaN is a missing value), decimals without fraction, truth values (0 and 1) |
| `float` | decimals |
"""

from __future__ import annotations

import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base

pc = late.module("pyarrow.compute")

MOST_EXACT = float(2**53)
"""Whole floats up to here are the only ones that mean one number."""


def as_base_values(base: Base, array: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that the base type has, if it says the same there; otherwise the column as it is."""
    kind = array.type
    match base:
        case Base.SYMBOL:
            if pa.types.is_temporal(kind) and not (pa.types.is_duration(kind) or pa.types.is_interval(kind)):
                return _as_iso_text(array)
            return array.cast(pa.string()) if pa.types.is_decimal(kind) or pa.types.is_boolean(kind) else array
        case Base.FLOAT:
            return array.cast(pa.float64()) if pa.types.is_decimal(kind) else array
        case Base.NUMBER | Base.UNSIGNED:
            if pa.types.is_boolean(kind):
                return array.cast(pa.int64())
            if pa.types.is_decimal(kind):
                return _as_integers(array)
            return _as_whole(array) if pa.types.is_floating(kind) else array


def _as_iso_text(array: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_timestamp(array.type):
        return array.cast(pa.string())
    text = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())  # of a time with a zone: that in UTC
    text = pc.replace_substring(text, " ", "T")
    return text if array.type.tz is None else pc.binary_join_element_wise(text, "Z", "")


def _as_integers(array: pa.ChunkedArray) -> pa.ChunkedArray:
    for kind in (pa.int64(), pa.uint64()):
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:  # a fraction, or too large
            continue
    return array


def _as_whole(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole floats as integers; the column as it is if one of them is not, or is too large to be exact."""
    known = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    is_whole = pc.and_(pc.equal(known, pc.floor(known)), pc.less_equal(pc.abs(known), MOST_EXACT))
    return known.cast(pa.int64()) if pc.all(is_whole).as_py() is not False else array
