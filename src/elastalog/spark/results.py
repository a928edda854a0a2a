"""What a session has, written out by Spark or as DataFrames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elastalog.pipeline.spark.sinks import write_frame

if TYPE_CHECKING:
    from elastalog.session import Session


def write(
    db: Session,
    relation: str,
    kind: Any,
    place: str | os.PathLike[str],
    *,
    mode: Any = "error",
    options: Mapping[str, str] | None = None,
) -> None:
    """Writes a relation as it is now: `kind` is `parquet`, `orc`, `csv`, `json`, `jdbc` or `table`; `mode`, if
    something is there, `error`, `overwrite`, `append` or `ignore`."""
    write_frame(db[relation].to_spark(), kind, place, mode=mode, options=options)


def bad_rows(db: Session) -> Any:
    """A DataFrame of the rows that were set aside or skipped when the session was opened: relation, file, line, code,
    reason, text."""
    from elastalog.pipeline.spark.quarantine import bad_rows_frame

    return bad_rows_frame(db.reports)
