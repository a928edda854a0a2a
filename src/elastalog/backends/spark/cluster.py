"""The Spark that a backend uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from elastalog.late import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Cluster:
    """A session, and `new_folder`, which makes a folder that driver and executors see, for things of a kind, and
    tells its location."""

    spark: SparkSession
    new_folder: Callable[[str], str]
