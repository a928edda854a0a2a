"""How many tasks can run at the same time."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.elastalog.shares"
_LOCAL = re.compile(r"local(?:\[(\*|[0-9]+)(?:,[^\]]*)?\])?")


def shares_for(spark: SparkSession, are_together: bool) -> int:
    """The number of tasks for a stratum: as many as the session's parallelism, or as the user sets. Tasks that exchange
    must all have a slot at once, or Spark would wait for slots that never come."""
    given = shares_asked_for(spark)
    wanted = given or max(1, spark.sparkContext.defaultParallelism)
    return min(wanted, slots(spark)) if are_together and not given else wanted


def shares_asked_for(spark: SparkSession) -> int | None:
    """The number of tasks that the user has set, if there is one."""
    given = spark.conf.get(SETTING, None)
    return int(given) if given else None


def slots(spark: SparkSession) -> int:
    """The slots of the executors that are there now."""
    context = spark.sparkContext
    found = _LOCAL.fullmatch(context.master or "")
    if found is not None:
        number = found.group(1)
        return (os.cpu_count() or 1) if number == "*" else int(number or 1)
    java: Any = context._jsc
    executors = int(java.sc().getExecutorMemoryStatus().size()) - 1  # the driver is among them
    settings = context.getConf()
    cores = int(settings.get("spark.executor.cores", "1") or 1) // int(settings.get("spark.task.cpus", "1") or 1)
    return max(1, executors) * max(1, cores)
