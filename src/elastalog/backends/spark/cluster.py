"""The Spark that a backend uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastalog.diagnostics.diagnostic import error
from elastalog.late import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Spark session, and `new_folder`, which makes a folder for things of a kind that driver and executors see, and
    returns its location."""

    spark: SparkSession
    new_folder: Callable[[str], str]


def is_stopped(spark: SparkSession) -> bool:
    """Whether the context of a session has been stopped; one of Spark Connect has none."""
    context = getattr(spark, "_sc", None)
    return context is not None and context._jsc is None


def require_running(spark: SparkSession) -> None:
    """A diagnostic if a session has been stopped."""
    if is_stopped(spark):
        raise error("E1109.require_running")
