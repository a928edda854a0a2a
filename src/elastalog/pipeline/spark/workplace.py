"""Files that live as long as the Spark session: what is too large to hand over directly; and such files as DataFrames.

The folder must be seen by the driver and by the executors. In local mode that is any folder; on a cluster it is named
by the setting `spark.elastalog.workplace`: on storage that all machines mount, or at an address, such as
`s3://bucket/elastalog`, to which all of them have the rights. What is mounted Spark reads itself. For an address its
Java side would need packages and credentials of its own, so there tasks read through pyarrow, as all of ours do.
"""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.folders.addresses import inside, is_address, without_secrets
from elastalog.folders.files import files_at
from elastalog.folders.local import folder_of_this_process
from elastalog.folders.remote import UnreachableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING = "spark.elastalog.workplace"
_made: dict[str, str] = {}


def workplace(spark: SparkSession) -> str:
    """The folder of this application, made when first asked for and removed when this process ends."""
    application = spark.sparkContext.applicationId
    found = _made.get(application)
    if found is None:
        root = spark.conf.get(SETTING, None)
        master = spark.sparkContext.master or ""
        is_one_machine = master.startswith("local")  # `local-cluster` too
        if root is None and not is_one_machine:
            raise error("E1104", master=master, setting=SETTING)
        if root is None:
            found = str(folder_of_this_process())
        else:
            found = _own_folder_in(root.removeprefix("file://"), application)
            atexit.register(files_at(found).remove_folder, found)
        _made[application] = found
    return found


def _own_folder_in(root: str, application: str) -> str:
    """The folder of an application in one that several may use. Tasks read what lies there, and believe it."""
    found = inside(root, application)
    try:
        if is_address(root):
            # Names of applications repeat from one cluster to another: the folder is ours by a name that does not.
            found = inside(root, f"{application}-{uuid.uuid4().hex[:12]}")
            files_at(found).make_folder(found)
        else:
            Path(root).mkdir(parents=True, exist_ok=True)
            Path(found).mkdir(mode=0o755)
    except (OSError, UnreachableError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise ElastalogError.of(
            "E1104.own_folder_in", root=without_secrets(root), why=why or error, setting=SETTING
        ) from None
    return found


def new_folder(spark: SparkSession, kind: str) -> str:
    """A new folder in the workplace."""
    folder = inside(workplace(spark), f"{kind}-{uuid.uuid4().hex[:12]}")
    files_at(folder).make_folder(folder)
    return folder


def through_parquet(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of a large table: written as Parquet files, a few for every core, and read by Spark when it is
    used."""
    from pyarrow import parquet

    folder = new_folder(spark, "table")
    pieces = max(2, spark.sparkContext.defaultParallelism)
    size = -(-table.num_rows // pieces)
    locations = [inside(folder, f"{i:04}.parquet") for i in range(pieces)]
    for i, location in enumerate(locations):
        with files_at(location).writing(location) as sink:
            parquet.write_table(table.slice(i * size, size), sink, compression="zstd")
    return parquet_frame(spark, locations, table.schema)


_ROWS = 200_000


def parquet_frame(spark: SparkSession, locations: Sequence[str], schema: pa.Schema) -> DataFrame:
    """The rows of files that have the columns of a schema."""
    if not any(map(is_address, locations)):
        return spark.read.parquet(*(f"file://{location}" for location in locations))
    from elastalog.pipeline.spark.frames import frame_of_shares

    fields = {field.name: field.type for field in schema}
    return frame_of_shares(spark, len(locations), partial(_read, locations), fields)


def _read(locations: Sequence[str], number: int) -> Iterator[pa.Table]:
    """What a task does: the rows of a file."""
    with files_at(locations[number]).parquet(locations[number]) as file:
        for rows in file.iter_batches(_ROWS):
            yield pa.Table.from_batches([rows])
