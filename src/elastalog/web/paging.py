"""Relations and answers by pages, filtered and sorted by the service, so that no client has to fetch all.

An unsorted page is a slice of what the kernel holds. What was filtered or sorted is kept for the next pages, as encoded
facts, until an epoch changes the relations it came from.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastalog.analysis.listing import show_value
from elastalog.analysis.program import Base, Value
from elastalog.analysis.query import about_part, require_columns
from elastalog.backends.rows import places_in
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.facts import FactWords, Relation
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_table
from elastalog.relations.words import Dictionary
from elastalog.session import Session
from elastalog.syntax.keywords import RESERVED
from elastalog.web.replicas import Replicas
from elastalog.web.settings import Limits

FEW = 10_000
"""Up to this many first rows are found without sorting all."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some facts of a relation, or answers of a query, out of `total` at an epoch. The facts have levels and counts if
    they were requested and the strategy keeps them."""

    facts: Relation
    epoch: int
    offset: int
    total: int

    @property
    def schema(self) -> Schema:
        return self.facts.schema

    @property
    def rows(self) -> list[tuple[Value, ...]]:
        """The facts as Python values."""
        return list(self.facts)

    @property
    def annotations(self) -> dict[str, list[int]]:
        """The `levels` and `counts` of the facts, where they have any."""
        facts = self.facts.fact_words()
        if facts.level is None or facts.count is None:
            return {}
        return {"levels": facts.level.tolist(), "counts": facts.count.tolist()}

    def part(self, rows: slice) -> Relation:
        """Some of the facts."""
        words = self.facts.fact_words().taken(rows)
        return Relation(self.schema, self.facts.dictionary, lambda: words)


@dataclass(frozen=True, slots=True)
class Cut:
    """A range of rows, and their order: columns, each with whether it is descending."""

    offset: int
    limit: int
    order: tuple[tuple[str, bool], ...] = ()


class Wanted(TypedDict, total=False):
    """The requested part of facts or answers: `limit` of them from `offset` on. `order`: columns, prefixed with `-` for
    descending; without it, facts are in no particular order. `most`: the most rows of a page, and their number without
    a `limit`, in place of the limits of the service."""

    offset: int
    limit: int | None
    order: str | Sequence[str]
    most: int | None


def sorted_rows(schema: Schema, facts: FactWords, dictionary: Dictionary, cut: Cut) -> FactWords:
    """The facts in the requested order, or only the first of them if these suffice. Ties are broken by the other
    columns, so that no fact is on two pages."""
    names = [*schema.names, *(("@level", "@count") if facts.level is not None else ())]
    for name, _ in cut.order:
        if name not in names:
            listed, near = ", ".join(f"`{known}`" for known in names), did_you_mean(name, names)
            raise error("E0920.unknown_column", relation=schema.name, column=name, known=listed, near=near)
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
    return facts.taken(order.to_numpy())


def _key(schema: Schema, name: str, facts: FactWords, dictionary: Dictionary) -> pa.Array:
    """The sort key of a column: its values; for records, their text."""
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
    """Integers that are ordered like the given floats, NaN first."""
    bits = floats.view(np.int64)
    numbers = np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
    numbers[np.isnan(floats)] = np.iinfo(np.int64).min
    return numbers


@dataclass(frozen=True, slots=True)
class View:
    """Facts in an order, and their number even if only the first of them are kept."""

    facts: FactWords
    total: int

    @property
    def bytes(self) -> int:
        return int(self.facts.words.nbytes * 2)

    def has(self, cut: Cut) -> bool:
        """Whether it has the requested rows."""
        return len(self.facts.words) == self.total or cut.offset + cut.limit <= len(self.facts.words)


class Views:
    """The most recently used views, by what they were made of."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._views: OrderedDict[object, View] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: object, cut: Cut) -> View | None:
        """A view with the requested rows, if one is kept."""
        with self._lock:
            known = self._views.get(key)
            if known is None or not known.has(cut):
                return None
            self._views.move_to_end(key)
            return known

    def keep(self, key: object, view: View) -> View:
        """Keeps a view, and drops the least recently used ones beyond the limit."""
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


class Pager:
    """Makes pages, and caches what it sorted and filtered."""

    def __init__(self, replicas: Replicas, limits: Limits) -> None:
        self._replicas = replicas
        self._limits = limits
        self._views = Views(limits.cache)

    def page(
        self, session: Session, relation: str, where: str, cut: Cut, parameters: Mapping[str, Value], annotations: bool
    ) -> Callable[[], Page]:
        """A function that makes a page of a relation; it may be called when the session is no longer held."""
        source, epoch = session[relation], session.epoch
        if not where.strip() and not cut.order:
            facts = source.fact_words().taken(slice(cut.offset, cut.offset + cut.limit)).copied()
            total = len(source)
            return lambda: _page(source, facts, epoch, cut, total, annotations)
        names = {name for name, _ in cut.order}
        is_annotated = annotations or not names.isdisjoint(("@level", "@count"))
        version = self._replicas.version(session, None if where.strip() else relation)
        key = (relation, where, repr(sorted(parameters.items())), cut.order, is_annotated, version)
        known = self._views.find(key, cut)
        make = None if known is not None else self._maker(session, source, where, parameters, cut, is_annotated)

        def made() -> Page:
            view = known
            if view is None and make is not None:
                view = self._views.find(key, cut) or self._views.keep(key, make())
            assert view is not None
            part = view.facts.taken(slice(cut.offset, cut.offset + cut.limit))
            return _page(source, part, epoch, cut, view.total, annotations)

        return made

    def _maker(
        self,
        session: Session,
        source: Relation,
        where: str,
        parameters: Mapping[str, Value],
        cut: Cut,
        is_annotated: bool,
    ) -> Callable[[], View]:
        """A function that filters and sorts the present facts."""
        schema, dictionary = source.schema, source.dictionary
        if not where.strip():
            facts = source.fact_words().copied()
            return lambda: View(sorted_rows(schema, facts, dictionary, cut), len(facts.words))
        names = [f"{name}_" if name in RESERVED else name for name in schema.names]
        require_columns(where, schema.name, names)
        columns = ", ".join(names)
        # In brackets: alternatives are among the facts of the relation. On a line of its own: it may end in a comment.
        prefix = f"wanted({columns}) :- {schema.name}({columns}), ("
        try:
            answer = session.engine.asking(f"{prefix}{where.rstrip().rstrip('.')}\n)", parameters)
        except ElastalogError as failed:
            raise about_part(failed, where, len(prefix)) from None
        all_facts = source.fact_words().copied() if is_annotated else None

        def filtered() -> View:
            words = answer().fact_words().words
            found = FactWords(words)
            if all_facts is not None:
                found = all_facts.taken(places_in(words, all_facts.words))
            return View(sorted_rows(schema, found, dictionary, cut) if cut.order else found, len(words))

        return filtered

    def answers(self, answers: Relation, epoch: int, cut: Cut) -> Page:
        """A page of the answers to a query."""
        facts = answers.fact_words()
        total = len(facts.words)
        if cut.order:
            facts = sorted_rows(answers.schema, facts, answers.dictionary, cut)
        part = facts.taken(slice(cut.offset, cut.offset + cut.limit))
        return _page(answers, part, epoch, cut, total, False)

    def cut(self, **wanted: Unpack[Wanted]) -> Cut:
        """The requested rows, within the limits."""
        most, offset, limit = wanted.get("most"), wanted.get("offset", 0), wanted.get("limit")
        rows = (self._limits.page if most is None else most) if limit is None else limit
        if not 0 <= offset < 1 << 62:
            raise error("E0920", offset=offset)
        if not 0 <= rows <= (most or self._limits.rows):
            raise error("E0920.limit", rows=rows, most=most or self._limits.rows)
        order = wanted.get("order", "")
        keys = [name.strip() for name in (order.split(",") if isinstance(order, str) else order) if name.strip()]
        return Cut(offset, rows, tuple((key.removeprefix("-"), key.startswith("-")) for key in keys))


def _page(source: Relation, facts: FactWords, epoch: int, cut: Cut, total: int, annotations: bool) -> Page:
    shown = facts if annotations else FactWords(facts.words)
    return Page(Relation(source.schema, source.dictionary, lambda: shown), epoch, cut.offset, total)
