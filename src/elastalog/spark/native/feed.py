"""What every epoch of a store changes, as a stream: `spark.readStream.format("elastalog")`.

An offset is an epoch, so every change is told once, whatever is begun again; with it stands which store it is of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.stored import unmoved
from elastalog.folders.addresses import without_secrets
from elastalog.late import dataclass
from elastalog.relations.schema import Schema
from elastalog.spark.native.options import ReadOptions, folder_of
from elastalog.spark.native.reading import as_batches
from elastalog.spark.native.stored_rows import Share, rows_of_changes, rows_of_share, shares_of, with_operation
from elastalog.storage.store import Store

FEED = {"op": pa.string(), "epoch": pa.int64()}
"""Columns that a feed has besides those of its relation."""

_BEGINNING = 0
"""Before the first epoch: what is there when the stream begins is told as inserted."""


@dataclass(frozen=True, slots=True)
class _Epochs:
    """The epochs after one until another."""

    after: int
    until: int


class ChangeReader(DataSourceStreamReader):
    """Reads what epochs change. `epoch` of the options: the last one that is known already; without it the stream
    begins with the relation as it is."""

    def __init__(self, options: ReadOptions, schema: Schema, fields: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._fields = fields
        self._seen: tuple[frozenset[tuple[str, int, int]], dict[str, Any]] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        latest = self.latestOffset()
        return {**latest, "epoch": _BEGINNING if self._options.epoch is None else self._options.epoch}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802  # the form that all of Spark 4 has
        # Asked many times a second: a store whose files are as they were has no other epoch.
        files = frozenset(
            (e.name, (s := e.stat()).st_size, s.st_mtime_ns) for e in os.scandir(folder_of(self._options.store))
        )
        if self._seen is None or self._seen[0] != files:
            store = self._store()
            self._seen = files, {"epoch": store.epoch, "store": store.manifest.store}
        return self._seen[1]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        store = self._store()
        if start["store"] != store.manifest.store or start["epoch"] > store.epoch:
            raise ElastalogError([_other_store(self._options, start["epoch"])])
        if start["epoch"] == _BEGINNING:
            options = self._options
            shares = shares_of(folder_of(options.store), self._schema.name, end["epoch"], options.partitions)
            return [InputPartition(share) for share in shares]
        return [InputPartition(_Epochs(store.require(start["epoch"]), end["epoch"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part, root = partition.value, folder_of(self._options.store)
        names = [name for name in self._fields.names if name not in FEED]
        tables: Iterator[pa.Table]
        if isinstance(part, Share):
            rows = rows_of_share(root, self._schema, part, names)
            tables = (with_operation(table, "+", part.epoch) for table in rows)
        else:
            tables = rows_of_changes(root, self._schema, part.after, part.until, names)
        for table in tables:
            yield from as_batches(table, self._fields)

    def _store(self) -> Store:
        """The store as it is now."""
        folder = folder_of(self._options.store)
        with unmoved(folder):
            return Store.open(folder, read_only=True)


def _other_store(options: ReadOptions, epoch: int) -> Diagnostic:
    return Diagnostic(
        "E0873",
        f"the stream has been read until epoch {epoch} of another store",
        notes=("its checkpoint says so",),
        help="begin the stream anew, with another checkpoint",
        location=without_secrets(options.store),
    )
