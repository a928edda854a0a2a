"""Facts that Spark reads, by kind."""

from __future__ import annotations

from elastalog.pipeline.spark.sources import Source


def parquet(path: str, **options: str) -> Source:
    """Facts in Parquet files: a file, a folder or a pattern."""
    return Source("parquet", path, options)


def orc(path: str, **options: str) -> Source:
    """Facts in ORC files."""
    return Source("orc", path, options)


def facts(path: str, **parameters: str) -> Source:
    """Facts in text files as Soufflé writes them; `parameters` are those of `.input`: `delimiter`, `headers`,
    `rfc4180`."""
    return Source("text", path, parameters)


def tsv(path: str, **parameters: str) -> Source:
    """Facts in tab-separated files."""
    return facts(path, **parameters)


def csv(path: str, **parameters: str) -> Source:
    """Facts in comma-separated files with quoting as in RFC 4180; `headers="true"` if the first line names the
    columns."""
    return facts(path, **{"rfc4180": "true", **parameters})


def json(path: str) -> Source:
    """Facts in files of JSON lines."""
    return Source("json", path)


def jdbc(url: str, table: str, **options: str) -> Source:
    """Facts in a table of a database."""
    return Source("jdbc", url, {**options, "dbtable": table})


def table(name: str) -> Source:
    """Facts in a table or view of the Spark catalogue."""
    return Source("table", name)
