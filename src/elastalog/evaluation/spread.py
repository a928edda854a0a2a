"""The first epoch of a store, written by the tasks of Spark where they hold the facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.storage.checked_files import FileEntry
from elastalog.storage.spread import Pieces, spread_files, write_spread
from elastalog.storage.store import WriteElsewhere


def written_by_tasks(backend: KernelBackend) -> WriteElsewhere | None:
    """For a backend that has relations in files: writes those of the store in tasks, so that the driver never holds the
    facts. None for any other."""
    spark: Any = getattr(backend, "spark", None)
    if spark is None:
        return None

    def write(root: Path, layout: Mapping[str, tuple[str, ...]], epoch: int) -> Mapping[str, FileEntry]:
        files = spread_files(root, layout, epoch, _pieces(backend))
        if not files:
            return {}
        # Each a task of its own: a store has one file for each relation.
        entries = spark.sparkContext.parallelize(list(files.values()), len(files)).map(write_spread).collect()
        return dict(zip(files, entries, strict=True))

    return write


def _pieces(backend: Any) -> dict[str, Pieces]:
    """The relations that are in files only."""
    found = {}
    for name, relation in backend.program.relations.items():
        filed = backend.filed(name)
        if filed is not None and not filed.changes:
            words = [f"c{i}" for i in range(relation.width)]
            found[name] = Pieces(tuple(file.path for file in filed.base if file.rows), (*words, "level", "count"))
    return found
