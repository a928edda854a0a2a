"""The backends by name of their engine.

An engine is where a user wants strata evaluated. Another one is another case here, and nothing above changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalProgram
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BackendMaker(Protocol):
    """Makes the backend of a program."""

    def __call__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        annotation: Annotation,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> Backend: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """The Spark that a backend may use. `new_folder` makes one that driver and executors see, for things of a kind."""

    spark: SparkSession
    new_folder: Callable[[str], Path]


def backend_maker(engine: str, cluster: Cluster | None = None) -> BackendMaker:
    """`local`: this process. `spark`: tasks of a cluster, wherever possible. `auto`: this process while memory
    suffices, and tasks beyond, if there is a cluster."""
    match engine, cluster:
        case ("spark" | "auto", Cluster()):
            from elastalog.backends.spark.backend import SparkBackend

            return partial(SparkBackend, cluster=cluster, is_elastic=engine == "auto")
        case ("local", _) | ("auto", None):
            from elastalog.backends.kernel.backend import KernelBackend

            return KernelBackend
        case _:
            raise ValueError(f"there is no engine `{engine}`, or not without a cluster")
