"""Most of the time in which Spark starts, Java loads classes. Java can keep them, ready for use, in an archive.

`python -m elastalog.pipeline.spark.warm` makes one, for the installed Java and pyspark; sessions that
`spark_session` starts then use it. One that does not fit (another Java, another pyspark) is not looked at.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from elastalog.diagnostics.diagnostic import error
from elastalog.pipeline.spark.session import QUIET, archive_of, java_options, provide_java, spark_session


def make_archive() -> Path:
    """Starts a session that does what sessions do, and keeps the classes that Java has loaded for it."""
    archive = archive_of(provide_java())
    if archive is None:
        raise error("E1119")
    archive.unlink(missing_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    options = f"{java_options()} -XX:ArchiveClassesAtExit={fresh} {QUIET}"
    spark = spark_session(2, memory="1g", settings={"spark.driver.extraJavaOptions": options})
    with tempfile.TemporaryDirectory() as folder:
        place = f"file://{folder}/facts"
        spark.createDataFrame([(1, "a"), (2, "b")], "x bigint, y string").write.parquet(place)
        facts = spark.read.parquet(place)
        facts.join(facts.groupBy("y").count(), "y").toArrow()
        facts.mapInArrow(lambda batches: batches, "x bigint, y string").collect()
    gateway = spark.sparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(600)  # Java writes the archive when it ends
    os.replace(fresh, archive)
    return archive


if __name__ == "__main__":
    print(f"made {make_archive()}", file=sys.stderr)
