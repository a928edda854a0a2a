"""A Spark session with the settings that suit fixpoints: as many partitions as cores, Arrow, quiet."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.backends.spark.cluster import is_stopped
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.spark.java import provide_java
from elastalog.pipeline.spark.warm import archive_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = f"-XX:+UseParallelGC -Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def spark_session(
    cores: int | None = None, *, memory: str = "2g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The active Spark session if there is one, otherwise a local one with `cores` (all of them by default) and
    `memory` for the Java side. `settings` are added to ours, or replace them."""
    active = active_session()
    if active is not None:
        return active
    require_pyspark()
    from pyspark.sql import SparkSession

    options = java_options()

    # Workers have to be this Python, with this package, whatever the PATH says.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    number = cores or os.cpu_count() or 2
    builder: Any = SparkSession.builder.appName("elastalog")
    if "spark.master" not in (settings or {}):
        # Plain local[N] never retries a task.
        builder = builder.master(f"local[{number},4]")
    ours = {**local_settings(number, memory), "spark.driver.extraJavaOptions": options}
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def java_options() -> str:
    """The options of the Java that there is."""
    return f"{JAVA_OPTIONS} {archive_options(provide_java())}".rstrip()


def local_settings(cores: int, memory: str) -> dict[str, str]:
    """What we set for a local session. With 200 partitions, Spark's default, a small join takes seconds."""
    path = os.pathsep.join(p for p in (str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.default.parallelism": str(cores),
        "spark.sql.shuffle.partitions": str(cores),
        # Tasks that want more slots than there are fail soon, not after ten minutes.
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.executorEnv.PYTHONPATH": path,
    }


def silence_streams(spark: SparkSession) -> None:
    """Spark does not log errors of streams any more: for who waits for the streams, and tells them."""
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.streaming", log4j.Level.OFF)


def active_session() -> SparkSession | None:
    """The Spark session of this thread, or of this process, if one is running. Does not import pyspark if nobody
    has."""
    sql = sys.modules.get("pyspark.sql")
    if sql is None:
        return None
    session: SparkSession | None = sql.SparkSession.getActiveSession()
    if session is None:  # so it is in every thread but the one that started it
        session = sql.SparkSession._instantiatedSession
    return None if session is None or is_stopped(session) else session


def require_pyspark() -> None:
    """A diagnostic unless pyspark 4 is installed."""
    try:
        import pyspark
    except ImportError:
        advice = 'pip install "elastalog[spark]"'
        raise ElastalogError([Diagnostic("E1102", "pyspark is not installed", help=advice)]) from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        message = f"pyspark {pyspark.__version__} is too old"
        raise ElastalogError([Diagnostic("E1102", message, help='pip install "pyspark>=4"')])
