"""Facts as files of words: what driver and tasks hand to each other. Parquet, a column of int32 for every column,
level, count.

A file is written under a name of its own and never changed, so that a repeated task leaves at worst a file that nobody
reads.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from elastalog.relations.facts import FactWords

_MULTIPLIER = np.uint32(0x9E3779B1)


@dataclass(frozen=True, slots=True)
class WordFile:
    """A file with facts of one relation. `column`, `share`, `shares`: whose word in that column falls in that share;
    column None: any."""

    path: str
    rows: int
    column: int | None = None
    share: int = 0
    shares: int = 1


def shares_of(words: np.ndarray, shares: int) -> np.ndarray:
    """The share of every word: a hash, so that neighbouring numbers spread."""
    mixed = words.astype(np.uint32) * _MULTIPLIER
    spread: np.ndarray = (mixed >> np.uint32(16)) % np.uint32(shares)
    return spread


def write_words(folder: Path, name: str, facts: FactWords) -> WordFile:
    """Writes facts into a new file. It appears whole or not at all."""
    from pyarrow import parquet

    columns = {f"c{i}": np.ascontiguousarray(facts.words[:, i]) for i in range(facts.words.shape[1])}
    if facts.level is not None and facts.count is not None:
        columns |= {"level": facts.level, "count": facts.count}
    plain = "".join(c if c.isalnum() else "_" for c in name)
    path = folder / f"{plain}-{uuid.uuid4().hex}.parquet"
    fresh = path.with_suffix(".tmp")
    parquet.write_table(pa.table(columns), fresh, compression="lz4", use_dictionary=False, write_statistics=False)
    os.replace(fresh, path)
    return WordFile(str(path), len(facts.words))


def read_words(
    files: Sequence[WordFile], width: int, column: int | None = None, share: int = 0, shares: int = 1
) -> FactWords:
    """The facts of files; with a column, only those in a share."""
    parts = [part for file in files if (part := _read(file, width, column, share, shares)) is not None]
    if not parts:
        nothing = np.empty(0, np.int32)
        return FactWords(np.empty((0, width), np.int32), nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    has_levels = all(part.level is not None for part in parts)
    return FactWords(
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.level for part in parts if part.level is not None]) if has_levels else None,
        np.concatenate([part.count for part in parts if part.count is not None]) if has_levels else None,
    )


def _read(file: WordFile, width: int, column: int | None, share: int, shares: int) -> FactWords | None:
    from pyarrow import parquet

    if not file.rows:
        return None
    is_shared_so = column is not None and file.column == column and file.shares == shares
    if is_shared_so and file.share != share:
        return None
    table = parquet.read_table(file.path, memory_map=True)
    words = np.empty((table.num_rows, width), np.int32)
    for i in range(width):
        words[:, i] = table.column(f"c{i}").to_numpy()
    level = table.column("level").to_numpy() if "level" in table.column_names else None
    count = table.column("count").to_numpy() if "count" in table.column_names else None
    if column is not None and not is_shared_so:
        kept = shares_of(words[:, column], shares) == share
        words = words[kept]
        level, count = (None if level is None else level[kept]), (None if count is None else count[kept])
    return FactWords(words, level, count)
