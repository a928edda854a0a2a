"""What a session needs of Spark: the Spark session that its engine uses, the backend that goes with it, and what reads
facts and writes them, imported when it is used."""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from elastalog import late
from elastalog.backends import engines
from elastalog.diagnostics.diagnostic import error
from elastalog.pipeline.spark.session import require_session, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elastalog.pipeline.spark import sinks
    from elastalog.pipeline.spark import sources as sources
    from elastalog.relations.facts import Relation
else:
    sinks, sources = (late.module(f"elastalog.pipeline.spark.{name}") for name in ("sinks", "sources"))

log = logging.getLogger("elastalog.placement")


def choose_spark(engine: str, spark: SparkSession | None) -> SparkSession | None:
    """The Spark session that an engine uses, None if it does without. `spark` starts a local one if there is none;
    `auto` uses the one given."""
    if engine == "gpu":
        return None
    if engine == "local":
        log.info("engine local: everything is evaluated in this process, as asked")
        return None
    if engine == "spark":
        found = spark_session() if spark is None else require_session(spark)
        if _is_of_connect(found):
            advice = "run the program where the driver is (spark-submit), or leave the engine out: DataFrames of this "
            advice += "session serve as facts all the same"
            raise error("E1120", advice=advice)
        return found
    if spark is None:
        log.info("engine auto: everything is evaluated in this process, since no Spark session was given")
        return None
    return require_session(spark)


def backend_maker(engine: str, spark: SparkSession | None, device_memory: int | None = None) -> engines.BackendMaker:
    """What makes the backend of a session that uses Spark, or does without."""
    if spark is not None and _is_of_connect(spark):
        log.info("engine auto: everything is evaluated in this process, since Spark Connect runs no tasks of ours")
        spark = None
    if spark is None:
        return engines.backend_maker(engine, room=device_memory)
    from elastalog.backends.spark.cluster import Cluster
    from elastalog.pipeline.spark.workplace import new_folder

    return engines.backend_maker(engine, Cluster(spark, partial(new_folder, spark)))


def _is_of_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_spark_rows(rows: Any) -> bool:
    """Whether rows come from Spark: a DataFrame, or a source of `elastalog.spark`."""
    if sys.modules.keys().isdisjoint(("pyspark", "elastalog.pipeline.spark.sources")):
        return False  # what makes them was never imported
    from elastalog.pipeline.spark.frames import is_spark_frame

    return isinstance(rows, sources.Source) or is_spark_frame(rows)


def make_frame(relation: Relation, annotations: bool, spark: SparkSession | None) -> Any:
    """What `Relation.to_spark` does."""
    return sinks.relation_to_frame(require_session(spark), relation, annotations)
