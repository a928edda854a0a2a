"""What a session needs of Spark: the Spark session that its engine uses, the backend that goes with it, and facts that
Spark reads or is given."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from elastalog.backends import engines
from elastalog.backends.protocol import Backend, FactFiles
from elastalog.diagnostics.diagnostic import error
from elastalog.pipeline.files.policy import BadRow, BadRows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from elastalog.analysis import program
    from elastalog.pipeline.files.read import FactsRead
    from elastalog.pipeline.spark.large_facts import Destination
    from elastalog.relations.facts import Relation
    from elastalog.relations.schema import Schema
    from elastalog.relations.words import Dictionary

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
        from elastalog.pipeline.spark.session import spark_session

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
    from elastalog.pipeline.spark.sources import Source

    return isinstance(rows, Source) or is_spark_frame(rows)


def destination(backend: Backend, dictionary: Dictionary) -> Destination | None:
    """Where tasks may write the explicit facts of a backend; None if it keeps none in files."""
    elsewhere = backend.capabilities.elsewhere
    if elsewhere is None:
        return None
    from elastalog.pipeline.spark.large_facts import Destination

    return Destination(elsewhere.folder, dictionary)


def read_spark_rows(
    schema: Schema, rows: Any, policy: BadRows, spark: SparkSession | None, into: Destination | None = None
) -> FactsRead:
    """The facts of a DataFrame or source, and how the reading went; in files, if a destination is given and they are
    many."""
    from elastalog.pipeline.spark.sources import Source, facts_given, settled

    found = facts_given(require_session(spark) if isinstance(rows, Source) else None, schema, rows, into)
    return settled(schema, found[:2], [found[2]], policy)


def good_spark_rows(schema: Schema, rows: Any, spark: SparkSession | None) -> tuple[pa.Table, list[BadRow], str]:
    """The facts of a DataFrame or source, the bad rows, and where they are from."""
    from elastalog.pipeline.spark.sources import Source, facts_given

    return facts_given(require_session(spark) if isinstance(rows, Source) else None, schema, rows)


def read_facts_folder(
    relation: program.Relation,
    root: str | os.PathLike[str],
    policy: BadRows,
    spark: SparkSession | None,
    into: Destination | None = None,
) -> FactsRead:
    """The explicit facts of a relation, from files or folders of files under a root, read by Spark; in files, if a
    destination is given and they are many."""
    from elastalog.pipeline.spark.sources import read_inputs

    return read_inputs(require_session(spark), relation, os.fspath(root), policy, into)


def filed_in(backend: Backend, relation: str, annotations: bool) -> FactFiles | None:
    """The files of a relation that a backend keeps in files only. None if it does not, or if they lack the annotations
    that are asked for."""
    elsewhere = backend.capabilities.elsewhere
    return None if elsewhere is None else elsewhere.files(relation, with_levels=annotations)


def make_frame(relation: Relation, annotations: bool, spark: SparkSession | None) -> Any:
    """What `Relation.to_spark` does."""
    from elastalog.pipeline.spark.sinks import relation_to_frame

    return relation_to_frame(require_session(spark), relation, annotations)


def require_session(spark: SparkSession | None) -> SparkSession:
    """The session given, or the one that is running."""
    from elastalog.backends.spark.cluster import require_running
    from elastalog.pipeline.spark.session import active_session

    if spark is not None:
        require_running(spark)
    found = spark or active_session()
    if found is None:
        raise error("E1109")
    return found
