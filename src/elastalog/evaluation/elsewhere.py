"""The first epoch of a store, written where a backend keeps the facts, if that is not in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from elastalog.backends.protocol import Backend, Elsewhere
from elastalog.planning.logical import LogicalProgram
from elastalog.storage.checked_files import FileEntry
from elastalog.storage.elsewhere import Pieces, pieced_files, write_pieced
from elastalog.storage.store import WriteElsewhere

S = TypeVar("S")
T = TypeVar("T")


def written_elsewhere(backend: Backend, *, is_here: bool) -> WriteElsewhere | None:
    """For a backend that has relations in files: writes those of the store from them, so that this process never holds
    the facts. None for any other. `is_here`: other processes do not see the folder of the store."""
    elsewhere = backend.capabilities.elsewhere
    if elsewhere is None:
        return None

    def write(root: Path, layout: Mapping[str, tuple[str, ...]], epoch: int) -> Mapping[str, FileEntry]:
        files = pieced_files(root, layout, epoch, _pieces(backend.program, elsewhere))
        # Each by itself: a store has one file for each relation.
        each = _in_this_process if is_here else elsewhere.each
        return dict(zip(files, each(write_pieced, files.values()), strict=True)) if files else {}

    return write


def _in_this_process(function: Callable[[S], T], items: Iterable[S]) -> list[T]:
    return [function(item) for item in items]


def _pieces(program: LogicalProgram, elsewhere: Elsewhere) -> dict[str, Pieces]:
    """The relations that are in files only."""
    found = {}
    for name, relation in program.relations.items():
        files = elsewhere.files(name)
        if files is not None and not files.changes:
            words = [f"c{i}" for i in range(relation.width)]
            found[name] = Pieces(tuple(file.path for file in files.base if file.rows), (*words, "level", "count"))
    return found
