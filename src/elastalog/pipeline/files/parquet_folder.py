"""Folders of Parquet files that stand for one file, as Spark and pyarrow write them: the parts lie in it, or in folders
of it that tell the value of a column, `year=2026`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.paths import natural_order, resolve_under
from elastalog.relations.schema import Schema

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called whose column has no value."""


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files in a folder and those below it, in natural order, but for what is hidden by `_` or `.`. No link
    may lead out. Raises ElastalogError if there is none."""
    below = (path.relative_to(folder) for path in folder.rglob("*.parquet") if path.is_file())
    found = [resolve_under(folder, str(part)) for part in below if not any(map(_is_hidden, part.parts))]
    if not found:
        raise ElastalogError([_empty(folder)])
    return sorted(found, key=lambda path: [natural_order(Path(name)) for name in path.parts])


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name


def with_columns_of_folders(schema: Schema, table: pa.Table, folder: Path, part: Path) -> pa.Table:
    """The table of a part, and those columns of the relation whose values the folders on the way to it tell."""
    for name in part.relative_to(folder).parent.parts:
        key, mark, text = name.partition("=")
        column = next((column for column in schema.columns if column.name.casefold() == unquote(key).casefold()), None)
        if mark and column is not None and unquote(key) not in table.column_names:
            value = pa.scalar(None if text == _NULL else unquote(text), pa.string())
            values: pa.Array = pa.repeat(value, table.num_rows)
            if column.base is not Base.SYMBOL and column.record is None:
                values = _numbers(values, schema.arrow().field(column.name).type)
            table = table.append_column(column.name, values)
    return table


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The numbers that texts tell; the texts where they tell none, which are refused as such."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return texts


def _empty(folder: Path) -> Diagnostic:
    return Diagnostic(
        code="E0515",
        message=f"cannot read `{folder}` as Parquet: there is no Parquet file in this folder",
        help="name the files that it holds `….parquet`, or put one file in its place",
        location=str(folder),
    )
