"""A relation of a store as a DataFrame, `spark.read.format("elastalog")`, and what every epoch changes, as a stream,
`spark.readStream.format("elastalog")`.

Conditions that Spark hands to a reader are taken where Arrow decides them as Spark does: comparisons of numbers and
texts, `IN`, and the beginning, end or inside of a text. Floats are left to Spark, to which NaN equals itself; so are
decimals, and what is not a column. An offset of a stream is an epoch, so every change is told once, whatever is begun
again; with it stands which store it is of.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from elastalog.diagnostics.diagnostic import error
from elastalog.folders.addresses import without_secrets
from elastalog.relations.schema import Schema
from elastalog.spark.stored_rows import (
    ReadOptions,
    Share,
    folder_of,
    opened,
    rows_of_changes,
    rows_of_share,
    shares_of,
    with_operation,
)
from elastalog.storage.store import Store


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
        return shares_at(self._options, self._epoch)

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


def shares_at(options: ReadOptions, epoch: int) -> list[InputPartition]:
    """What tasks read of a relation at an epoch."""
    with opened(folder_of(options.store), epoch) as store:
        return [InputPartition(share) for share in shares_of(store.state(epoch), options.relation, options.partitions)]


def as_batches(table: pa.Table, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows as Spark takes them: of exactly these fields, whether they may be null included."""
    yield from pa.table(table.columns, schema=fields).to_batches()


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}
_OF_TEXTS: Mapping[str, Callable[[Any, str], Any]] = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}


def expression_of(condition: Any, fields: Mapping[str, pa.DataType]) -> pc.Expression | None:
    """A filter of Spark on columns as a condition on tables of Arrow; None if it is left to Spark."""
    kind = type(condition).__name__
    if kind == "Not":
        inner = expression_of(condition.child, fields)
        return None if inner is None else ~inner
    if len(condition.attribute) != 1 or condition.attribute[0] not in fields:
        return None
    name = condition.attribute[0]
    column, wanted = pc.field(name), _value_type(fields[name])
    if kind == "IsNotNull" or kind == "IsNull":  # facts have a value in every column
        return pc.scalar(kind == "IsNotNull")
    if wanted is None:
        return None
    if kind == "In":
        values = list(condition.value)
        return column.isin(pa.array(values, fields[name])) if all(type(v) is wanted for v in values) else None
    if type(condition.value) is not wanted:
        return None
    if kind in _COMPARISONS:
        expression: pc.Expression = _COMPARISONS[kind](column, pc.scalar(condition.value))
        return expression
    if kind in _OF_TEXTS and isinstance(condition.value, str):
        return _OF_TEXTS[kind](column, condition.value)
    return None


def _value_type(kind: pa.DataType) -> type | None:
    if kind == pa.int64() or kind == pa.int32():
        return int
    return str if kind == pa.string() else None


FEED = {"op": pa.string(), "epoch": pa.int64()}
"""Columns that a feed has besides those of its relation."""

_BEGINNING = 0
"""Before the first epoch: what is there when the stream begins is told as inserted."""


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
            raise error("E0873", location=without_secrets(self._options.store), epoch=start["epoch"])
        if start["epoch"] == _BEGINNING:
            return shares_at(self._options, end["epoch"])
        return [InputPartition((store.require(start["epoch"]), end["epoch"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part, root = partition.value, folder_of(self._options.store)
        names = [name for name in self._fields.names if name not in FEED]
        tables: Iterator[pa.Table]
        if isinstance(part, Share):
            rows = rows_of_share(root, self._schema, part, names)
            tables = (with_operation(t, ["+"] * t.num_rows, [part.epoch] * t.num_rows) for t in rows)
        else:
            after, until = part
            tables = rows_of_changes(root, self._schema, after, until, names)
        for table in tables:
            yield from as_batches(table, self._fields)

    def _store(self) -> Store:
        """The store as it is now."""
        with opened(folder_of(self._options.store)) as store:
            return store
