"""The change feed: what every epoch changed, as Parquet files that other Spark jobs read, batch or stream.

A folder a relation, a file an epoch that changed it; columns `op` (`+` or `-`), those of the relation, and `epoch`.
Files are named after the epoch and appear whole, so that writing an epoch again changes nothing; `_epoch` holds the
last one that is complete, and when it was committed. What a crash between a commit and its files has left out is made
up from the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from elastalog.pipeline.files.atomic import replacing

_LAST = "_epoch"


class ChangesOfRelation(Protocol):
    """Facts of a relation that came and went."""

    @property
    def inserted(self) -> Any: ...
    @property
    def deleted(self) -> Any: ...


class ChangeFeed:
    """The feed in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def last(self) -> int | None:
        """The last epoch that the feed has, None if it has none."""
        noted = self._noted()
        return int(noted[0]) if noted else None

    @property
    def last_time(self) -> float | None:
        """When that epoch was committed, None if it was not noted."""
        noted = self._noted()
        return float(noted[1]) if len(noted) > 1 else None

    def begin(self, epoch: int, time: float) -> None:
        """The feed starts after an epoch: those before it are not told."""
        if self.last is None:
            self._note(epoch, time)

    def add(self, epoch: int, time: float, changes: Mapping[str, ChangesOfRelation]) -> None:
        """Writes what an epoch changed, which was committed at a time."""
        from pyarrow import parquet

        for name, changed in changes.items():
            table = pa.concat_tables(list(_signed(changed, epoch)))
            if not table.num_rows:
                continue
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            fresh = folder / f"_{epoch:012}.{os.getpid()}"
            parquet.write_table(table, fresh)
            os.replace(fresh, folder / f"epoch-{epoch:012}.parquet")
        self._note(epoch, time)

    def _noted(self) -> list[str]:
        path = self.folder / _LAST
        return path.read_text(encoding="ascii").split() if path.exists() else []

    def _note(self, epoch: int, time: float) -> None:
        with replacing(self.folder / _LAST) as out:
            out.write(f"{epoch} {time!r}".encode())


def _signed(changed: ChangesOfRelation, epoch: int) -> Iterator[pa.Table]:
    for sign, facts in (("-", changed.deleted), ("+", changed.inserted)):
        table = facts.to_arrow()
        columns = {
            "op": pa.array([sign] * table.num_rows, pa.string()),
            **{name: table.column(name) for name in table.column_names},
            "epoch": pa.array([epoch] * table.num_rows, pa.int64()),
        }
        yield pa.table(columns)
