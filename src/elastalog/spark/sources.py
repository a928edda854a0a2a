"""Facts that Spark reads, by kind."""

from __future__ import annotations

import os
from collections.abc import Mapping

from elastalog.diagnostics.arguments import require_one_of, require_path
from elastalog.pipeline.spark.sources import Source, SourceKind

_PARAMETERS = ("columns", "compress", "delimiter", "headers", "rfc4180")


def parquet(path: str | os.PathLike[str], **options: object) -> Source:
    """Facts in Parquet files: a file, a folder or a pattern."""
    return _files("parquet", path, options)


def orc(path: str | os.PathLike[str], **options: object) -> Source:
    """Facts in ORC files."""
    return _files("orc", path, options)


def facts(path: str | os.PathLike[str], **parameters: object) -> Source:
    """Facts in text files as Soufflé writes them; `parameters` are those of `.input`: `delimiter`, `headers`,
    `rfc4180`, `columns`, `compress`."""
    for name in parameters:
        require_one_of("parameter", name, _PARAMETERS)
    return _files("text", path, parameters)


def tsv(path: str | os.PathLike[str], **parameters: object) -> Source:
    """Facts in tab-separated files."""
    return facts(path, **parameters)


def csv(path: str | os.PathLike[str], **parameters: object) -> Source:
    """Facts in comma-separated files with quoting as in RFC 4180; `headers=True` if the first line names the
    columns."""
    return facts(path, **{"rfc4180": True, **parameters})


def json(path: str | os.PathLike[str]) -> Source:
    """Facts in files of JSON lines."""
    return _files("json", path, {})


def jdbc(url: str, table: str, **options: object) -> Source:
    """Facts in a table of a database."""
    return Source("jdbc", url, _as_texts({**options, "dbtable": table}))


def table(name: str) -> Source:
    """Facts in a table or view of the Spark catalogue."""
    return Source("table", name)


def _files(kind: SourceKind, path: str | os.PathLike[str], options: Mapping[str, object]) -> Source:
    require_path("files have a path", path, "give that of a file or of a folder, or a pattern")
    return Source(kind, os.fspath(path), _as_texts(options))


def _as_texts(options: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
