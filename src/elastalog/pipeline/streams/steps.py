"""A stream in one file: a row is a change, `step` says to which update it belongs; what else a row has: `changes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.pipeline.files.allowance import read_bounded
from elastalog.pipeline.files.diff import Diff
from elastalog.pipeline.files.parquet import read_in_batches
from elastalog.pipeline.streams.changes import column_as, fault, numbered, read_changes
from elastalog.relations.schema import Schema


def read_steps(path: Path, schemas: Mapping[str, Schema]) -> Iterator[tuple[int, Diff]]:
    """The updates of a table, in order of their steps."""
    table, place = _read(path), str(path)
    for wanted in ("step", "op"):
        if wanted not in table.column_names:
            raise fault(place, f"`{path.name}` has no column `{wanted}`", "every row needs a `step` and an `op`")
    table = numbered(table)
    steps = column_as(place, table, "step", pa.int64())
    for step in sorted(pc.unique(steps).to_pylist()):
        yield int(step), read_changes(table.filter(pc.equal(steps, step)), schemas, path.stem, place)


def _read(path: Path) -> pa.Table:
    try:
        data = read_bounded(path, is_gzip=False)
        if path.suffix.lower() == ".parquet":
            table = read_in_batches(data, str(path))
            plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
            return pa.table(plain, names=table.column_names)
        from pyarrow import csv

        form = csv.ParseOptions(delimiter="\t" if b"\t" in data.split(b"\n", 1)[0] else ",")
        names = csv.open_csv(pa.BufferReader(data), parse_options=form).schema.names
        text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        return csv.read_csv(pa.BufferReader(data), parse_options=form, convert_options=text)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise fault(str(path), f"`{path.name}` cannot be read: {error}", "it must be CSV, TSV or Parquet") from None
