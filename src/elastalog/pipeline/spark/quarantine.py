"""Bad rows as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from elastalog.pipeline.files.policy import Report
from elastalog.pipeline.spark.engine import require_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = ("relation", "file", "line", "code", "reason", "text")


def bad_rows_frame(reports: Iterable[Report]) -> DataFrame:
    """Every row that was set aside, with its reason; of rows that were skipped, those that the report names."""
    rows: list[tuple[str, str, int, str, str, str]] = []
    for report in reports:
        if report.quarantine is not None and report.quarantine.exists():
            for line in report.quarantine.read_text(encoding="utf-8").splitlines():
                found = json.loads(line)
                rows.append((report.relation, *(found[name] for name in _COLUMNS[1:])))
        else:
            rows += [(report.relation, b.file, b.line, b.fault.code, b.fault.reason, b.text) for b in report.first_bad]
    kinds = [pa.string(), pa.string(), pa.int64(), pa.string(), pa.string(), pa.string()]
    columns = list(zip(*rows, strict=True)) or [()] * len(_COLUMNS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return require_session(None).createDataFrame(pa.table(arrays, names=list(_COLUMNS)))
