"""Relations by pages: filtered and sorted here, so that nobody has to fetch a whole one.

A page in no particular order is a slice of what the kernel holds. What was filtered or sorted is kept for the pages
that follow, as the words of its facts, until an epoch changes what it was made of.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Base, Value
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.facts import FactWords, Relation
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_table
from elastalog.relations.words import Dictionary
from elastalog.web import faults

FEW = 10_000
"""So many first rows are found without sorting all."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some facts of a relation, or answers of a query, of `total` that there are at an epoch. `levels` and `counts` are
    there if they were asked for and the strategy keeps them."""

    facts: Relation
    epoch: int
    offset: int
    total: int
    levels: tuple[int, ...] | None = None
    counts: tuple[int, ...] | None = None

    @property
    def schema(self) -> Schema:
        return self.facts.schema

    @property
    def rows(self) -> list[tuple[Value, ...]]:
        """The facts as Python has them."""
        return list(self.facts)

    def to_arrow(self) -> pa.Table:
        """As an Arrow table, with columns `@level` and `@count` if there are such."""
        table = self.facts.to_arrow()
        if self.levels is not None and self.counts is not None:
            table = table.append_column("@level", pa.array(self.levels, pa.int32()))
            table = table.append_column("@count", pa.array(self.counts, pa.int32()))
        return table


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part is wanted, of facts in which order: columns of the schema, each with whether it is turned."""

    offset: int
    limit: int
    order: tuple[tuple[str, bool], ...] = ()


def cut_of(offset: int, limit: int, order: str | Sequence[str], most: int) -> Cut:
    """A part as it is asked for: `order` has names of columns, prefixed with `-` for descending."""
    if not 0 <= offset < 1 << 62:
        raise faults.wrong_page(f"its offset is {offset}")
    if not 0 <= limit <= most:
        raise faults.wrong_page(f"{limit:,} rows are asked for, and {most:,} are the most")
    names = order.split(",") if isinstance(order, str) else order
    keys = [name.strip() for name in names if name.strip()]
    return Cut(offset, limit, tuple((key.removeprefix("-"), key.startswith("-")) for key in keys))


def sorted_rows(schema: Schema, facts: FactWords, dictionary: Dictionary, cut: Cut) -> FactWords:
    """The facts in the order that is asked for; no more than the first few if these are enough. Those that are equal in
    it have an order of their own, so that no page has what another one has."""
    names = [*schema.names, *(("@level", "@count") if facts.level is not None else ())]
    for name, _ in cut.order:
        if name not in names:
            raise faults.unknown_column(schema.name, name, names)
    keys = [(name, "descending" if is_turned else "ascending") for name, is_turned in cut.order]
    wanted = {name for name, _ in keys}
    columns = {name: _key(schema, name, facts, dictionary) for name in wanted}
    for place, words in enumerate(facts.words.T):
        columns[f"@{place}"] = array_of_numbers(words)
        keys.append((f"@{place}", "ascending"))
    table = pa.table(columns)
    end = cut.offset + cut.limit
    if end <= FEW < table.num_rows:
        order = pc.select_k_unstable(table, k=end, sort_keys=keys)
    else:
        order = pc.sort_indices(table, sort_keys=keys)
    return taken(facts, order.to_numpy())


def _key(schema: Schema, name: str, facts: FactWords, dictionary: Dictionary) -> pa.Array:
    """What facts are sorted by: the values of a column, records by how they are written."""
    if name not in schema.names:
        return pa.array(facts.level if name == "@level" else facts.count)
    place = schema.names.index(name)
    part = replace(schema, columns=(schema.columns[place],))
    words = facts.words[:, [place]]
    if schema.columns[place].record is not None:
        return pa.array([show_value(value) for (value,) in Relation.of(part, dictionary, words)])
    values = to_table(part, words, dictionary).column(0)
    return array_of_numbers(_in_order(values.to_numpy())) if schema.columns[place].base is Base.FLOAT else values


def _in_order(floats: np.ndarray) -> np.ndarray:
    """Integers in the order of floats, NaN, which has none, first."""
    bits = floats.view(np.int64)
    numbers = np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
    numbers[np.isnan(floats)] = np.iinfo(np.int64).min
    return numbers


def taken(facts: FactWords, rows: np.ndarray | slice) -> FactWords:
    """Some of the facts, by row."""
    level, count = facts.level, facts.count
    return FactWords(facts.words[rows], None if level is None else level[rows], None if count is None else count[rows])


@dataclass(frozen=True, slots=True)
class View:
    """Facts in an order, and how many they are if only the first of them are here."""

    facts: FactWords
    total: int

    @property
    def bytes(self) -> int:
        return int(self.facts.words.nbytes * 2)

    def has(self, cut: Cut) -> bool:
        """Whether the part that is wanted is here."""
        return len(self.facts.words) == self.total or cut.offset + cut.limit <= len(self.facts.words)


class Views:
    """The views that were asked for lately, by what they are of."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._views: OrderedDict[object, View] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: object, cut: Cut) -> View | None:
        """A view that has a part, if it is kept."""
        with self._lock:
            known = self._views.get(key)
            if known is None or not known.has(cut):
                return None
            self._views.move_to_end(key)
            return known

    def keep(self, key: object, view: View) -> View:
        """Keeps a view, and fewer of the others."""
        with self._lock:
            self._forget(key)
            self._views[key] = view
            self._bytes += view.bytes
            while self._bytes > self._most and self._views:
                self._forget(next(iter(self._views)))
        return view

    def _forget(self, key: object) -> None:
        gone = self._views.pop(key, None)
        self._bytes -= 0 if gone is None else gone.bytes
