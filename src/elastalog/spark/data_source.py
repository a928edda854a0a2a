"""The data source, as Spark knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import StructType

from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.spark.frames import arrow_fields
from elastalog.relations.schema import Schema
from elastalog.spark.stored_rows import ReadOptions, WriteOptions, folder_of, readable, refused

if TYPE_CHECKING:
    from elastalog.spark.reading import ChangeReader, RelationReader
    from elastalog.spark.writing import UpdateWriter


class ElastalogSource(DataSource):
    """Stores for Spark's reader and writer, as format `elastalog`. `elastalog.spark.session()` knows it; to another
    session it is made known by `spark.dataSource.register(elastalog.spark.ElastalogSource)`.

    | | options |
    |---|---|
    | `spark.read` | `store`, `relation`, `epoch` (the last one there is when `load` is called), `columns` (names with commas), `annotations`, `partitions` |
    | `spark.readStream` | `store`, `relation`, `changes` (`true`), `epoch` (the last one known already; without it the relation as it is comes first), `columns`, `partitions` |
    | `df.write.mode("append")` | `store`, `relation`, `source` and `batch` |
    """  # noqa: E501

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self._found: tuple[ReadOptions, int, Schema] | None = None

    @classmethod
    def name(cls) -> str:
        return "elastalog"

    def schema(self) -> StructType:
        """The columns of the relation, or those that were asked for, with `op` and `epoch` in a feed of changes. The
        epoch that is read stays what it is from here on."""
        options, _, schema = self._relation()
        kinds = arrow_fields(schema, options.annotations)
        for name in options.columns or ():
            if name not in kinds:
                advice = did_you_mean(name, kinds) or f"it has {', '.join(kinds)}"
                raise refused(f"relation `{schema.name}` has no column `{name}`", advice)
        chosen = {name: kinds[name] for name in options.columns or kinds}
        if options.changes:
            chosen = _with_feed(schema, chosen)
        return from_arrow_schema(pa.schema([pa.field(name, kind, nullable=False) for name, kind in chosen.items()]))

    def reader(self, schema: StructType) -> RelationReader:
        """The reader of `spark.read`."""
        from elastalog.spark.reading import RelationReader

        options, epoch, relation = self._relation()
        if options.changes:
            raise refused("changes are told by a stream", "use `spark.readStream`, or leave the option `changes` out")
        fields = _arrow_schema(schema, arrow_fields(relation, annotations=True))
        return RelationReader(options, relation, epoch, fields)

    def streamReader(self, schema: StructType) -> ChangeReader:  # noqa: N802  # Spark's name
        """The reader of `spark.readStream`."""
        from elastalog.spark.reading import FEED, ChangeReader

        options, _, relation = self._relation()
        if not options.changes:  # Spark asks for the columns before it says what for
            raise refused("a stream tells changes", 'say so: `.option("changes", "true")`')
        fields = _arrow_schema(schema, {**arrow_fields(relation, annotations=False), **FEED})
        return ChangeReader(options, relation, fields)

    def writer(self, schema: StructType, overwrite: bool) -> UpdateWriter:
        """The writer of `df.write`."""
        from elastalog.spark.writing import UpdateWriter

        if overwrite:
            raise error("E0871")
        return UpdateWriter(WriteOptions.of(self.options), schema)

    def _relation(self) -> tuple[ReadOptions, int, Schema]:
        if self._found is None:
            options = ReadOptions.of(self.options)
            state, schema = readable(folder_of(options.store), options.relation, options.epoch)
            self._found = options, state.epoch, schema
        return self._found


def _with_feed(schema: Schema, kinds: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    from elastalog.spark.reading import FEED

    for name in FEED:
        if name in kinds:
            message = f"relation `{schema.name}` has a column `{name}` of its own, which its changes have too"
            raise refused(message, "name the other columns by the option `columns`")
    return {"op": FEED["op"], **kinds, "epoch": FEED["epoch"]}


def _arrow_schema(schema: StructType, kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """The Arrow form of the schema that Spark expects. Its columns must exist: Spark takes any schema from its user."""
    for field in schema.fields:
        if field.name not in kinds or from_arrow_type(kinds[field.name]) != field.dataType:
            message = f"there is no column `{field.name}` of type {field.dataType.simpleString()}"
            raise refused(message, "leave the schema to the data source, and name columns by the option `columns`")
    return pa.schema([pa.field(field.name, kinds[field.name], nullable=field.nullable) for field in schema.fields])
