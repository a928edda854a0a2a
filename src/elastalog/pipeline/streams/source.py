"""Where the updates of a stream come from.

A folder holds one update an entry (a diff file, a table with a column `op`, or a folder of them), applied in natural
order of their names: `2.diff` before `10.diff`. A single CSV, TSV or Parquet file holds all of them: a column `step`
says which update a row belongs to, steps are applied in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elastalog.pipeline.files.diff import Diff, read_diff, update_files
from elastalog.pipeline.streams.steps import read_steps
from elastalog.relations.schema import Schema


@dataclass(frozen=True, slots=True)
class StreamedUpdate:
    """`batch` identifies the update within its stream: the name of its file, or its step."""

    batch: str
    diff: Diff


def read_stream(path: Path | str, schemas: Mapping[str, Schema]) -> Iterator[StreamedUpdate]:
    """The updates of a stream in order. Those of a folder are read when they are asked for."""
    path = Path(path)
    if path.is_file():
        for step, diff in read_steps(path, schemas):
            yield StreamedUpdate(str(step), diff)
        return
    for part in update_files(path):
        yield StreamedUpdate(part.name, read_diff(part, schemas))
