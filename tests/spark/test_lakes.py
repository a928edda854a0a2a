"""Delta and Iceberg, as docs/how-to/run-on-spark.md shows them. Their packages are not in PySpark's: with them on the
class path (`PYSPARK_SUBMIT_ARGS="--packages … pyspark-shell"`) these tests run, otherwise they say why not; so they are
for long runs, where somebody has seen to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import elastalog
import elastalog.spark as es
from tests.closures import CLOSURE as PROGRAM

pytestmark = pytest.mark.long


def needs(spark: Any, java_class: str, package: str) -> None:
    """Skips the test unless the class path has a class of a package."""
    from py4j.protocol import Py4JJavaError

    loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(java_class)
    except Py4JJavaError:
        pytest.skip(f"the class path has no {package}")


def test_the_change_feed_of_a_delta_table(spark: Any, tmp_path: Path) -> None:
    needs(spark, "io.delta.sql.DeltaSparkSessionExtension", "io.delta:delta-spark")
    from pyspark.sql import functions as sql

    spark.sql(
        f"CREATE TABLE edge (`from` BIGINT, `to` BIGINT) USING delta LOCATION '{tmp_path / 'edge'}'"
        " TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql("INSERT INTO edge VALUES (1, 2), (2, 3)")
    spark.sql("DELETE FROM edge WHERE `from` = 1")
    feed = spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0).table("edge")
    op = sql.when(sql.col("_change_type").isin("insert", "update_postimage"), "+").otherwise("-")
    stream = feed.select(op.alias("op"), "from", "to", sql.col("_commit_version").alias("step"))
    with elastalog.open(PROGRAM, store=tmp_path / "store") as db:
        checkpoint = str(tmp_path / "checkpoint")
        es.apply_updates(stream, db, relation="edge", step="step", checkpoint=checkpoint, available_now=True).wait()
        assert set(db["path"]) == {(2, 3)}
        assert [entry.epoch for entry in db.log()] == [1, 2, 3]


def test_an_iceberg_table_of_facts(spark: Any, tmp_path: Path) -> None:
    needs(spark, "org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg:iceberg-spark-runtime")
    for name, value in {
        "": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(tmp_path)
    }.items():  # fmt: skip
        spark.conf.set(f"spark.sql.catalog.lake{name}", value)
    spark.sql("CREATE TABLE lake.db.edge (`from` BIGINT, `to` BIGINT) USING iceberg")
    spark.sql("INSERT INTO lake.db.edge VALUES (1, 2), (2, 3)")
    with elastalog.open(PROGRAM, {"edge": spark.table("lake.db.edge")}, spark=spark) as db:
        assert set(db["path"]) == {(1, 2), (2, 3), (1, 3)}
