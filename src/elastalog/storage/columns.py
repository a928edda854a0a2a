"""Relations and parts of the dictionary as Parquet files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elastalog.relations.arrays import array_of_numbers, array_of_texts, numbers_of_array
from elastalog.relations.facts import FactWords
from elastalog.storage import errors
from elastalog.storage.filesystem import FileEntry, read_checked

LEVEL, COUNT = "@level", "@count"

LARGE = 1 << 20
"""Bytes from which on a file is worth several threads."""


WRITING: Final[Mapping[str, Any]] = {
    "compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False
}  # fmt: skip
"""How all files are written."""

# Words are small integers: their high bytes compress to nearly nothing once they lie together.
WRITING_FACTS: Final[Mapping[str, Any]] = {**WRITING, "use_byte_stream_split": True}


def facts_bytes(facts: FactWords) -> bytes:
    """Facts with their annotations: the words of the columns `0`, `1`, …, then `@level` and `@count`, all 32-bit."""
    assert facts.level is not None
    assert facts.count is not None
    columns = {str(i): facts.words[:, i] for i in range(facts.words.shape[1])}
    columns |= {LEVEL: facts.level, COUNT: facts.count}
    arrays = [array_of_numbers(numbers) for numbers in columns.values()]
    return _parquet(pa.Table.from_arrays(arrays, list(columns)), WRITING_FACTS)


def read_facts(root: Path, entry: FileEntry, width: int) -> FactWords:
    """The facts of a file, checked."""
    table = _table(root, entry, [*map(str, range(width)), LEVEL, COUNT])
    words = np.empty((table.num_rows, width), np.int32)
    for i in range(width):
        words[:, i] = _numbers(table.column(i), np.int32)
    level, count = (_numbers(table.column(place), np.int32) for place in (width, width + 1))
    return FactWords(words, level, count)


def texts_bytes(texts: list[str] | pa.Array) -> bytes:
    """Symbols in the order of their ids."""
    return _parquet(pa.table({"text": array_of_texts(texts) if isinstance(texts, list) else texts}))


def read_texts(root: Path, entry: FileEntry) -> pa.ChunkedArray:
    """The symbols of a file, checked."""
    return _table(root, entry, ["text"]).column(0)


def patterns_bytes(patterns: np.ndarray) -> bytes:
    """Wide patterns in the order of their ids."""
    return _parquet(pa.table({"pattern": array_of_numbers(np.asarray(patterns, np.int64))}))


def read_patterns(root: Path, entry: FileEntry) -> np.ndarray:
    """The patterns of a file, checked."""
    return _numbers(_table(root, entry, ["pattern"]).column(0), np.int64)


def _numbers(column: pa.ChunkedArray, kind: type[np.generic]) -> np.ndarray:
    """The numbers of a column, a copy."""
    return np.concatenate([np.empty(0, kind), *map(numbers_of_array, column.chunks)])


def _parquet(table: pa.Table, options: Mapping[str, Any] = WRITING) -> bytes:
    import pyarrow.parquet as pq  # only stores need it

    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def _table(root: Path, entry: FileEntry, columns: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    data = read_checked(root, entry)
    try:
        # The bytes are in memory already, and small files are many: threads only pay for large ones.
        table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=len(data) > LARGE)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise errors.damaged(root / entry.name, str(error)) from None
    if table.column_names != columns:
        raise errors.damaged(root / entry.name, "it has other columns")
    return table
