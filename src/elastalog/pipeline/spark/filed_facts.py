"""Facts of a large DataFrame that go to files without passing through the driver: tasks write the words of the share of
facts that falls to each. The driver sees every text once, to number it, and no fact.

Facts with wide numbers, floats or records take the ordinary way: these have no word before the driver has numbered
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.backends.rows import distinct
from elastalog.backends.spark.filed import FiledRelation
from elastalog.backends.spark.routing import MULTIPLIER, Routing
from elastalog.backends.spark.slots import shares_for
from elastalog.backends.spark.word_files import WordFile, write_words
from elastalog.folders.files import files_at, remove
from elastalog.late import dataclass
from elastalog.pipeline.spark.texts import is_large, numbers_frame, ordered, sorted_texts, with_numbers
from elastalog.pipeline.spark.workplace import new_folder
from elastalog.relations.facts import FactWords
from elastalog.relations.limits import LEAST_NARROW, WIDE
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LEAST = {Base.NUMBER: LEAST_NARROW, Base.UNSIGNED: 0}
_WHOLE = re.compile(r"tinyint|smallint|int|bigint|decimal\(\d+,0\)")
_SHARE = "@share"
_WRITTEN = "share int, location string, rows bigint, found bigint"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where tasks write facts: in a `folder` that driver and executors see, as words of a dictionary."""

    folder: str
    dictionary: Dictionary


@dataclass(frozen=True, slots=True)
class FiledFacts:
    """Facts in files. `num_rows`: how many rows there were, duplicates included."""

    files: FiledRelation
    num_rows: int


def filed_facts(schema: Schema, frame: DataFrame, into: Destination) -> FiledFacts | None:
    """The facts of a large DataFrame, written by tasks. None if it is not large, or if some row is bad or has a value
    that they cannot write: then it has to be read in the ordinary way."""
    if not schema.columns or not is_large(frame):
        return None
    rows = ordered(schema, frame)
    if not all(_is_fit(column.base, kind) for column, (_, kind) in zip(schema.columns, rows.dtypes, strict=True)):
        return None
    folder = new_folder(frame.sparkSession, "texts")
    try:
        words = _in_words(schema, rows, into.dictionary, folder)
        return None if words is None else _written(schema.name, words, into)
    finally:
        files_at(folder).remove_folder(folder)


def _is_fit(base: Base, kind: str) -> bool:
    return kind == "string" if base is Base.SYMBOL else base in _LEAST and _WHOLE.fullmatch(kind) is not None


def _in_words(schema: Schema, rows: DataFrame, dictionary: Dictionary, folder: str) -> DataFrame | None:
    """The rows as words, null where a value has none. None if a text is no text."""
    from pyspark.sql import functions as sql

    positions = [i for i, column in enumerate(schema.columns) if column.base is Base.SYMBOL]
    if positions:
        try:
            pieces = ((texts, dictionary.symbols.encode(texts)) for texts in sorted_texts(rows, positions, folder))
            rows = with_numbers(rows, positions, numbers_frame(rows.sparkSession, pieces, folder))
        except pa.ArrowInvalid:
            return None
    for i, column in enumerate(schema.columns):
        if i not in positions:
            value = sql.col(f"c{i}")
            narrow = sql.when(value.between(_LEAST[column.base], WIDE - 1), value.cast("int"))
            rows = rows.withColumn(f"c{i}", narrow)
    return rows


def _written(name: str, words: DataFrame, into: Destination) -> FiledFacts | None:
    """The files that tasks write, one for every share."""
    routing = Routing(0, shares_for(words.sparkSession, are_together=False))
    shared = words.withColumn(_SHARE, _share(routing.shares))
    # Older versions of Spark may give several shares to one task.
    parted = getattr(shared, "repartitionById", shared.repartition)(routing.shares, _SHARE)
    found = parted.mapInArrow(partial(_write_shares, into.folder, name), _WRITTEN).collect()
    if any(row.location is None for row in found):
        remove([row.location for row in found if row.location is not None])
        return None
    files = tuple(
        WordFile(row.location, row.rows, routing, row.share, grown=row.rows, explicit=row.rows)
        for row in sorted(found, key=lambda row: (row.share, row.location))
    )
    return FiledFacts(FiledRelation(files), sum(row.found for row in found)) if files else None


def _share(shares: int) -> Column:
    """The share of a row, as `routing.hashed` gives it. The product is made of two halves: whole, it would not fit."""
    from pyspark.sql import functions as sql

    low = sql.col("c0").bitwiseAND(0xFFFF).cast("bigint")
    high = sql.shiftrightunsigned("c0", 16).cast("bigint")
    above = sql.shiftleft((high * MULTIPLIER).bitwiseAND(0xFFFF), 16)
    mixed = (low * MULTIPLIER + above).bitwiseAND(0xFFFFFFFF)
    return (sql.shiftright(mixed, 16) % shares).cast("int")


def _write_shares(folder: str, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does: a file for every share that it is given, each fact once, and a row that names it; a row without
    a file if some value has no word. A repeated task writes other files."""
    found: dict[int, list[np.ndarray]] = {}
    is_good = True
    for batch in batches:
        is_good = is_good and not any(column.null_count for column in batch.columns)
        if is_good:
            *columns, shares = (column.to_numpy() for column in batch.columns)
            words = np.stack(columns, axis=1).astype(np.int32, copy=False)
            for share in np.unique(shares).tolist():
                found.setdefault(share, []).append(words[shares == share])
    if not is_good:
        found = {0: []}
    for share, parts in found.items():
        location, rows, number = None, 0, sum(map(len, parts))
        if parts:
            facts = distinct(np.concatenate(parts))
            rows = len(facts)
            nothing = np.zeros(rows, np.int32)
            location = write_words(folder, name, FactWords(facts, nothing, nothing + 1)).path
        kinds = (pa.int32(), pa.string(), pa.int64(), pa.int64())
        values = zip((share, location, rows, number), kinds, strict=True)
        names = ["share", "location", "rows", "found"]
        yield pa.RecordBatch.from_arrays([pa.array([value], kind) for value, kind in values], names=names)
