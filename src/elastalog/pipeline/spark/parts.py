"""Which updates the rows of a micro-batch are: one, or one for every step, or one for every file.

Batches of parts are named so that a store remembers those of the latest micro-batch only; see `storage.batches`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.pipeline.spark.frames import path_of
from elastalog.pipeline.spark.malformed import malformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE, _TIME = "@file", "@time"


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a micro-batch that are an update. `batch` identifies it within its query, `place` is for diagnostics."""

    batch: str
    place: str
    rows: pa.Table


class Parting(Protocol):
    """How micro-batches are taken apart. `columns`: those of the stream that say so, which come first in the rows."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def parts(self, rows: pa.Table, number: int) -> list[Part]:
        """The updates of a micro-batch, in order, their rows without the columns that told them apart."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A micro-batch is an update."""

    columns: ClassVar[tuple[str, ...]] = ()

    def parts(self, rows: pa.Table, number: int) -> list[Part]:
        return [Part(str(number), f"batch {number}", rows)]


@dataclass(frozen=True, slots=True)
class BySteps:
    """All rows with the same whole number in a column are an update, in ascending order."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def parts(self, rows: pa.Table, number: int) -> list[Part]:
        place = f"batch {number}"
        steps, rest = rows.column(0), rows.remove_column(0)
        if steps.null_count or not pa.types.is_integer(steps.type):
            raise malformed(f"{place} has steps that are no whole numbers")
        return [
            Part(f"{number} step {step}", place, rest.filter(pc.equal(steps, step)))
            for step in sorted(pc.unique(steps).to_pylist())
        ]


@dataclass(frozen=True, slots=True)
class ByFiles:
    """Every file is an update, the oldest first, those of the same age in the order of their paths. For streams that
    `with_files` gives."""

    columns: ClassVar[tuple[str, ...]] = (_TIME, _FILE)

    def parts(self, rows: pa.Table, number: int) -> list[Part]:
        files, rest = rows.column(_FILE), rows.drop_columns([*self.columns])
        found = rows.select([*self.columns]).group_by([*self.columns]).aggregate([])
        ordered = found.sort_by([(name, "ascending") for name in self.columns]).column(_FILE).to_pylist()
        return [
            Part(f"{number} file {path_of(file)}", path_of(file), rest.filter(pc.equal(files, file)))
            for file in ordered
        ]


def with_files(stream: DataFrame) -> DataFrame | None:
    """A stream with the columns that tell its files apart; None if Spark does not know from which file a row is."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as sql

    if "_metadata" in stream.columns:  # of the user
        return None
    time, file = sql.col("_metadata.file_modification_time"), sql.col("_metadata.file_path")
    try:
        known = stream.select("*", time.alias(_TIME), file.alias(_FILE))
        return known if known.columns[-2:] == [_TIME, _FILE] else None  # Spark Connect looks at the select only now
    except AnalysisException:
        return None
