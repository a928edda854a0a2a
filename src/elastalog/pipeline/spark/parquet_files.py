"""Parquet files of ours as DataFrames. What is mounted Spark reads itself. For an address its Java side would need
packages and credentials of its own, so there tasks read through pyarrow, as all of ours do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from elastalog.folders.addresses import is_address
from elastalog.folders.files import files_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 200_000


def parquet_frame(
    spark: SparkSession, locations: Sequence[str], schema: pa.Schema, index: str | None = None
) -> DataFrame:
    """The rows of files that have the columns of a schema. `index`: one more column, int, with the place of a row in
    its file."""
    from pyspark.sql import functions as sql

    columns = [sql.col(f"`{name}`") for name in schema.names]
    if not any(map(is_address, locations)):
        frame = spark.read.parquet(*(f"file://{location}" for location in locations))
        place = [] if index is None else [sql.col("_metadata.row_index").cast("int").alias(index)]
        return frame.select(*place, *columns)
    from pyspark.sql.pandas.types import from_arrow_schema

    given = schema if index is None else pa.schema([(index, pa.int32()), *schema])
    files = spark.createDataFrame([(location,) for location in locations], "location string")
    read = partial(_read, index=index, schema=given)
    return files.repartition(len(locations)).mapInArrow(read, from_arrow_schema(given))


def _read(batches: Iterator[pa.RecordBatch], index: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What a task does: the rows of the files that it is told of."""
    for batch in batches:
        for location in batch.column(0).to_pylist():
            with files_at(location).parquet(location) as file:
                first = 0
                for rows in file.iter_batches(_ROWS):
                    columns = {name: rows.column(name) for name in rows.schema.names}
                    if index is not None:
                        columns[index] = pa.array(range(first, first + rows.num_rows), pa.int32())
                    first += rows.num_rows
                    yield pa.RecordBatch.from_arrays(
                        [columns[field.name].cast(field.type) for field in schema], schema=schema
                    )
