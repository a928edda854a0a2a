"""Files that live as long as the Spark session: what is too large to hand over directly.

The folder must be seen by the driver and by the executors. In local mode that is any folder; on a cluster it is named
by the setting `spark.elastalog.workplace`, and lies on storage that all machines mount.
"""

from __future__ import annotations

import atexit
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.own_folder import folder_of_this_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING = "spark.elastalog.workplace"
_made: dict[str, Path] = {}


def workplace(spark: SparkSession) -> Path:
    """The folder of this application, made when first asked for and removed when this process ends."""
    application = spark.sparkContext.applicationId
    found = _made.get(application)
    if found is None:
        root = spark.conf.get(SETTING, None)
        master = spark.sparkContext.master or ""
        is_one_machine = master.startswith("local")  # `local-cluster` too
        if root is None and not is_one_machine:
            raise ElastalogError([_no_workplace(master)])
        if root is None:
            found = folder_of_this_process()
        else:
            found = _own_folder_in(Path(root.removeprefix("file://")), application)
            atexit.register(shutil.rmtree, found, ignore_errors=True)
        _made[application] = found
    return found


def _own_folder_in(root: Path, application: str) -> Path:
    """The folder of an application in one that several may use. Tasks read what lies there, and believe it."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / application).mkdir(mode=0o755)
    except OSError as error:
        message = f"no folder for this application can be made in `{root}`: {error.strerror or error}"
        advice = f"set `{SETTING}` to a folder that this user may write to"
        raise ElastalogError([Diagnostic("E1104", message, help=advice)]) from None
    return root / application


def new_folder(spark: SparkSession, kind: str) -> Path:
    """A new folder in the workplace."""
    folder = workplace(spark) / f"{kind}-{uuid.uuid4().hex[:12]}"
    folder.mkdir()
    return folder


def through_parquet(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of a large table: written as Parquet files, a few for every core, and read by Spark when it is
    used."""
    from pyarrow import parquet

    folder = new_folder(spark, "table")
    pieces = max(2, spark.sparkContext.defaultParallelism)
    size = -(-table.num_rows // pieces)
    for i in range(pieces):
        parquet.write_table(table.slice(i * size, size), folder / f"{i:04}.parquet", compression="zstd")
    return spark.read.parquet(f"file://{folder}")


def _no_workplace(master: str) -> Diagnostic:
    return Diagnostic(
        code="E1104",
        message=f"Spark at `{master}` needs a folder that driver and executors share",
        help=f"set `{SETTING}` to a folder on storage that all machines mount",
    )
