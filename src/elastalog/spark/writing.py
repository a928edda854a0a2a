"""Rows of a DataFrame as an update of a store: `df.write.format("elastalog")`.

Tasks hand their rows to the driver with the message that they have ended; rows of repeated tasks are never looked at.
The driver applies all of them as one update, so a store has the whole of a DataFrame or nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from elastalog.pipeline.files.diff import OPERATION
from elastalog.pipeline.spark.frames import with_integers
from elastalog.pipeline.streams import read_changes, relation_column
from elastalog.relations.schema import schema_named
from elastalog.session import open as open_session
from elastalog.spark.stored_rows import WriteOptions, folder_of, refused, state_and_schemas

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PLACE = "the DataFrame"


class WrittenRows(WriterCommitMessage):
    """The rows of a task, as an Arrow stream; nothing if it had none."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream


class UpdateWriter(DataSourceArrowWriter):
    """Applies the rows of a DataFrame: `op` (`+` or `-`), and the columns of a relation; or columns `relation`, `a1`,
    `a2`, …. A fact that is both inserted and deleted is inserted."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        _, schemas = state_and_schemas(folder_of(options.store), None)
        names = schema.fieldNames()
        if options.relation is not None:
            schema_named(schemas, options.relation)
        elif relation_column(names) is None:
            raise refused(
                "nothing says which relation the rows are about",
                'give `.option("relation", …)`, or a column `relation`',
            )
        if OPERATION not in names:
            raise refused(f"{_PLACE} has no column `{OPERATION}`", "add one that is `+` or `-` in every row")
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        batches = [batch for batch in iterator if batch.num_rows]
        if not batches:
            return WrittenRows(b"")
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batches[0].schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return WrittenRows(out.getvalue().to_pybytes())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        written = [message.stream for message in messages if isinstance(message, WrittenRows) and message.stream]
        if not written:
            return
        rows = with_integers(pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in written]))
        options = self._options
        with open_session(store=options.store) as db, db.update(options.source, options.batch) as update:
            update.take(read_changes(rows, update.schemas, options.relation, _PLACE))
