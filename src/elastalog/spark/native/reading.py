"""A relation of a store as a DataFrame: `spark.read.format("elastalog")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from elastalog.relations.schema import Schema
from elastalog.spark.native.filters import expression_of
from elastalog.spark.native.options import ReadOptions, folder_of
from elastalog.spark.native.stored_rows import rows_of_share, shares_of

_ROWS_OF_A_BATCH = 1 << 16


class RelationReader(DataSourceReader):
    """Reads a relation at one epoch, share by share, in tasks."""

    def __init__(self, options: ReadOptions, schema: Schema, epoch: int, fields: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._epoch = epoch
        self._fields = fields
        self._conditions: list[pc.Expression] = []
        self.pushFilters = _FiltersWhereAsked(self)  # type: ignore[method-assign]

    def take_filters(self, filters: Sequence[Any]) -> Iterator[Any]:
        """Takes what it can decide itself, and gives the others back."""
        kinds = {field.name: field.type for field in self._fields}
        for condition in filters:
            expression = expression_of(condition, kinds)
            if expression is None:
                yield condition
            else:
                self._conditions.append(expression)

    def partitions(self) -> list[InputPartition]:
        shares = shares_of(folder_of(self._options.store), self._schema.name, self._epoch, self._options.partitions)
        return [InputPartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for table in rows_of_share(folder_of(self._options.store), self._schema, partition.value, self._fields.names):
            for condition in self._conditions:
                table = table.filter(condition)
            yield from as_batches(table, self._fields)


class _FiltersWhereAsked:
    """The method `pushFilters` of a reader. Where a session does not push filters, which is Spark's default, Spark
    refuses a reader that has the method instead of leaving it alone. It tells by `__func__`, which is therefore that of
    its own base here."""

    __func__ = staticmethod(getattr(DataSourceReader, "pushFilters", lambda self, filters: filters))

    def __init__(self, reader: RelationReader) -> None:
        self._reader = reader

    def __call__(self, filters: Sequence[Any]) -> Iterator[Any]:
        return self._reader.take_filters(filters)


def as_batches(table: pa.Table, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows as Spark takes them: of exactly these fields, whether they may be null included."""
    yield from pa.table(table.columns, schema=fields).to_batches(max_chunksize=_ROWS_OF_A_BATCH)
