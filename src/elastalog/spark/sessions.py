"""Spark sessions that know the data source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from elastalog.pipeline.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(cores: int | None = None, *, memory: str = "2g", settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active Spark session if there is one, otherwise a local one with `cores` (all of them by default) and
    `memory` for the Java side. `settings` are added to ours, or replace them. The data source `elastalog` is known to
    it."""
    spark = spark_session(cores, memory=memory, settings=settings)
    from elastalog.spark.native.source import ElastalogSource

    spark.dataSource.register(ElastalogSource)
    return spark
