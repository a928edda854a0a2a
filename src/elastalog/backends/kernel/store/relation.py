"""A relation of the kernel: facts as rows of words, found by a set table, joined through indexes, annotated in parallel
arrays."""

from __future__ import annotations

from collections.abc import Collection
from ctypes import addressof
from operator import attrgetter
from typing import Any

import numpy as np

from elastalog.backends.kernel.store import inserting
from elastalog.backends.kernel.store import set_table as row_operators
from elastalog.backends.kernel.store.annotations import ABSENT, NEW, REFERENCE, TOUCHED_WIDTH
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import (
    MOST_TAKEN,
    NO_TABLE,
    NO_WORDS,
    STAMPS,
    Matrix,
    RelationDescriptor,
    Vector,
    empty_table,
    grown,
    lengthen,
    rows_for,
    slots_at_once,
    slots_for,
    write_place,
)
from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.relations.facts import FactWords
from elastalog.relations.limits import WORD
from elastalog.settings import SETTINGS

_FIRST_TABLE = 128
_SLOT = np.dtype(np.uint32)
_MOST_ROWS = (1 << 30) - 64
_SLACK = 16
"""A relation that was filled has room for one more row for this many that it holds."""

_AT_ONCE = 4
"""A relation into which facts are inserted grows by at most this many times its rows, even if more are to come."""


IN_UPDATES = 1.1
"""Growth of a relation to which an update adds rows."""


def _described(name: str) -> Any:
    """What is kept in the descriptor of a relation, where compiled code finds it."""
    return property(attrgetter(f"descriptor.{name}"), lambda relation, value: setattr(relation.descriptor, name, value))


class KernelRelation:
    """Facts of one relation. A row number identifies a fact for as long as the relation object lives.

    `counts` and `levels` are empty arrays unless the relation is annotated. `touched` are the entries of the update
    under way (see `marks`); `is_settled` says that every row is present and untouched, so that joins need not look at
    levels. All levels are between `lowest` and `highest`. `generation` changes whenever rows get new
    numbers, and no two relations have the same. `crew`: the threads that build large tables and indexes. `stamp`: a new
    number whenever an array is replaced or has moved (see `memory.STAMPS`); `laid_out`: the one at which the
    `descriptor` was written, which is at `address`."""

    used: int = _described("used")
    """How many rows there are, those of absent facts included."""
    present: int = _described("present")
    lowest: int = _described("lowest")
    highest: int = _described("highest")
    generation: int = _described("generation")
    is_settled: bool = _described("is_settled")
    touched_used: int = _described("touched_used")
    """How many entries the touched table has."""

    def __init__(self, name: str, width: int, is_annotated: bool, crew: Crew = ALONE) -> None:
        self.stamp = stamp = STAMPS.take()
        self.crew = crew
        self.laid_out = -1
        self.descriptor = RelationDescriptor(generation=stamp, is_settled=1, is_annotated=is_annotated)
        self.address = addressof(self.descriptor)
        self.name = name
        self.width = width
        self.is_annotated = is_annotated
        self._make_empty(SETTINGS.first_rows, _FIRST_TABLE)
        self.touched: Matrix = np.empty((16, TOUCHED_WIDTH), WORD)
        self._indexes: dict[tuple[int, ...], Index] = {}

    def _make_empty(self, room: int, slots: int) -> None:
        """Makes the arrays of an empty relation: for `room` rows, and a table of `slots` slots."""
        self.rows: Matrix = np.empty((room, self.width), WORD)
        self._table: Vector = np.zeros(slots, _SLOT)
        self.shift, self.full = 65 - slots.bit_length(), slots * MOST_TAKEN // 16
        self.level: Vector = np.empty(room, WORD) if self.is_annotated else NO_WORDS
        self.count: Vector = np.empty(room, WORD) if self.is_annotated else NO_WORDS

    def expect(self, rows: int) -> None:
        """About `rows` rows are expected: makes room for them, if the relation is empty."""
        if rows > len(self.rows) and not self.used:
            room = rows + rows // _SLACK + SETTINGS.first_rows
            self.stamp = STAMPS.take()
            self._make_empty(room, slots_for(room))

    @property
    def table(self) -> Vector:
        """The set table, made again if it has been forgotten; `shift` and `full` are to be asked for after it."""
        if not len(self._table):
            slots, full = slots_at_once(self.used + SETTINGS.first_rows)
            self._fill_table(empty_table(slots), full)
        return self._table

    def lay_out(self, *, with_table: bool = True) -> RelationDescriptor:
        """The descriptor that says where the relation is, written again if that has changed. Without `with_table`, a
        set table that has been forgotten is not made again: no fact will be looked up."""
        found = self.descriptor
        if self.stamp != self.laid_out:
            # Before the stamp: it may have to be made.
            table = self.table if with_table and not len(self._table) else self._table
            stamp = self.stamp
            write_place(self.address, self.rows, self.full, table, self.shift, self.level, self.count, self.touched)
            # Last: Ctrl-C may come in between, and then all of it is to be written again.
            self.laid_out = stamp if len(table) else -1
        return found

    @property
    def home(self) -> int:
        """Where its descriptor is, for operators; written down again if the relation has moved."""
        if self.stamp != self.laid_out:
            self.lay_out()
        return self.address

    def reserve(self, size: int, growth: float | None = None) -> None:
        """Makes room for `size` rows, and more: by a factor, which is small in updates, where few rows come."""
        if size > _MOST_ROWS:
            raise LimitReached.of("E0605", name=self.name, most=_MOST_ROWS)
        self.reserve_rows(size, growth)
        if size > self.full:
            slots = slots_for(size)
            size, known = 4 * slots, 4 * len(self._table)
            quota.ask(size, known) if self.is_annotated else quota.ask(size - known)
            self.forget_table()
            self._fill_table(empty_table(slots))

    def reserve_rows(self, size: int, growth: float | None = None) -> None:
        """Makes room for `size` rows and more, but not in the set table."""
        capacity = len(self.rows)
        if size > capacity:
            capacity = max(
                size + size // _SLACK, int(capacity * (growth or (1.6 if capacity < SETTINGS.many_rows else 1.0625)))
            )
            self._lengthen(capacity, ("level", "count", "rows"))

    def forget_table(self) -> None:
        """Drops the set table until a fact is looked up. With annotations that is soon, and there may be no memory
        for the table then, so it stays."""
        if not self.is_annotated:
            self.stamp = STAMPS.take()
            self._table, self.full = NO_TABLE, 0

    def _lengthen(self, capacity: int, arrays: tuple[str, ...]) -> None:
        """Gives arrays another length, in place if nothing else refers to them: the system moves pages, not their
        content. Memory may run out, or Ctrl-C come, in between, and rows must not be the longest then."""
        self.stamp = STAMPS.take()
        for name in arrays if self.is_annotated else ("rows",):
            lengthen(self, name, self.used, capacity)

    def reserve_touched(self, more: int) -> None:
        """Makes room for more entries of the update under way."""
        used = self.touched_used + more
        if used > len(self.touched):
            wider = grown(self.touched, len(self.touched), max(used, 2 * len(self.touched)))
            self.stamp = STAMPS.take()
            self.touched = wider

    def _fill_table(self, table: Vector, full: int | None = None) -> None:
        fill_table(self.rows, self.used, table, self.crew)
        self.take_table(table, full)

    def take_table(self, table: Vector, full: int | None = None) -> None:
        """From now on facts are found in a table that has all rows, until it has `full`."""
        shift = 65 - len(table).bit_length()
        full = rows_for(len(table)) if full is None else full
        self.stamp = STAMPS.take()
        # Without a call in between, at which Ctrl-C might come.
        self._table, self.shift, self.full = table, shift, full

    def trim(self) -> None:
        """Gives back room for rows that an evaluation has not used, but for what the next updates may need. Nothing is
        copied: an array to which there are other references keeps its room."""
        capacity = self.used + self.used // _SLACK + SETTINGS.first_rows
        if len(self.rows) <= capacity + capacity // _SLACK:
            return
        self._lengthen(capacity, ("rows", "level", "count"))

    def insert(self, block: Matrix, start: int, stop: int, counted_from: int) -> None:
        """Inserts rows of a block, each fact once, counting how often facts from row `counted_from` on are met."""
        while start < stop:
            if self.used >= self.full:
                self._reserve_for(stop - start)
            start = inserting.insert(self.home, block, start, stop, self.count, counted_from)
            if start < stop:
                self._reserve_for(stop - start)

    def _reserve_for(self, facts: int) -> None:
        """Makes room for some of these facts, most of which may be there already."""
        self.reserve(self.used + max(min(facts, _AT_ONCE * self.used), 64))

    def append(self, block: Matrix) -> None:
        """Adds facts, in a relation without annotations in which none is looked up: its rows."""
        if len(self._table):
            self.forget_table()
        first = self.used
        self.reserve_rows(first + len(block))
        self.rows[first : first + len(block)] = block
        self.used = first + len(block)

    def load(self, block: Matrix, level: Vector | int = 0, count: Vector | int = 1) -> None:
        """Inserts facts: explicit ones into a relation that holds no others, unless their levels are given."""
        first = self.used
        size = first + len(block)
        if size > SETTINGS.first_rows:
            size += 64
            if size > self.full:
                slots, full = slots_at_once(size)
                self._fill_table(empty_table(slots), full)
            self.reserve(size)
        self.insert(np.ascontiguousarray(block, WORD), 0, len(block), self.used)
        self.present = self.used
        if self.is_annotated:
            self.level[first : self.used] = level
            self.count[first : self.used] = count
            if type(level) is not int or level:
                note_levels(self)

    def adopt(self, facts: FactWords) -> None:
        """Holds given facts instead, in their order. Who first looks for one has the set table made, and indexes are
        made when they are needed: by all threads."""
        assert facts.level is not None
        assert facts.count is not None
        self.stamp = STAMPS.take()
        self._indexes.clear()
        self._table, self.full = NO_TABLE, 0
        self.rows = np.require(facts.words, np.int32, ["C", "W"])
        self.used = self.present = len(facts.words)
        if self.is_annotated:
            self.level = np.require(facts.level, np.int32, ["C", "W"])
            self.count = np.require(facts.count, np.int32, ["C", "W"])
            note_levels(self)

    def find(self, block: Matrix) -> Vector:
        """The row of each fact of a block, -1 where the relation never held it. The fact may be absent now."""
        found = np.empty(len(block), WORD)
        row_operators.find(self.home, np.ascontiguousarray(block, WORD), found)
        return found

    def matches(self, other: KernelRelation) -> Vector:
        """The row in another relation of each row, -1 where it holds none, -2 where the row is absent; outside an
        update of either."""
        found = np.empty(self.used, np.int32)
        self.lay_out(with_table=False)
        there = other.home
        self.crew.do_ranges(
            self.used, lambda _, start, stop: row_operators.match(self.address, there, start, stop, found)
        )
        return found

    def index(self, columns: tuple[int, ...], rows: int | None = None) -> Index:
        """The index on some columns, which holds the first `rows` rows at least, all of them by default. It is made
        when first asked for. This is the only way to an index that may be probed: the caller says how many rows it must
        hold, so that one which lacks some is extended first. While others probe it, it must hold what is asked for."""
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = Index(columns, self.rows, self.used, self.crew)
        if index.done < (self.used if rows is None else rows):
            self._extend(columns, index)
        return index

    @property
    def last_stamp(self) -> int:
        """The latest stamp of the relation and its indexes."""
        stamp = self.stamp
        for index in self._indexes.values():
            if index.stamp > stamp:
                stamp = index.stamp
        return stamp

    @property
    def indexed(self) -> tuple[tuple[int, ...], ...]:
        """The columns of the indexes that there are."""
        return tuple(self._indexes)

    def index_to_extend(self, columns: tuple[int, ...]) -> Index | None:
        """The index on some columns if there is one, for those who add rows to it: it may lack some, and must not be
        probed (see `index`)."""
        return self._indexes.get(columns)

    def index_ahead(self, columns: tuple[int, ...], index: Index) -> None:
        """Takes an index that has no rows yet."""
        self._indexes[columns] = index

    def lacks(self, columns: tuple[int, ...]) -> bool:
        """Whether there is no index on some columns that holds all rows."""
        index = self._indexes.get(columns)
        return index is None or index.done < self.used

    def extend_indexes(self) -> None:
        """Adds the latest rows to every index."""
        for columns, index in self._indexes.items():
            if index.done < self.used:
                self._extend(columns, index)

    def drop_outdated_indexes(self) -> None:
        """Forgets the indexes that lack rows, instead of extending them, which takes memory."""
        self.keep_indexes([columns for columns, index in self._indexes.items() if index.done >= self.used])

    def keep_indexes(self, columns: Collection[tuple[int, ...]] = ()) -> None:
        """Forgets the other indexes."""
        if len(kept := {key: index for key, index in self._indexes.items() if key in columns}) < len(self._indexes):
            self.stamp = STAMPS.take()
            self._indexes = kept

    def _extend(self, columns: tuple[int, ...], index: Index) -> None:
        try:
            index.extend(self.rows, self.used, self.crew)
        except BaseException:
            # Ctrl-C, or no memory: which rows it holds now is unknown. It is made again when next needed.
            self.stamp = STAMPS.take()
            del self._indexes[columns]
            raise

    def present_rows(self) -> Vector:
        """The row numbers of the facts that are present, in an update those that are now."""
        if self.is_settled:
            return np.arange(self.used, dtype=np.int32)
        return np.flatnonzero(levels_now(self, slice(0, self.used)) < ABSENT).astype(np.int32)

    @property
    def there(self) -> Vector | slice:
        """Likewise, to index arrays with."""
        return slice(0, self.used) if self.is_settled else self.present_rows()

    @property
    def is_sparse(self) -> bool:
        """Whether most rows are of facts that are gone."""
        absent = self.used - self.present
        return absent > SETTINGS.compact_from and absent > self.present

    def compact(self, kept: Vector | None = None) -> None:
        """Drops all rows but those `kept`, by default those of facts that are present, outside an update. Rows get new
        numbers; indexes are made again when needed. When memory ends, the relation is as before."""
        kept = self.present_rows() if kept is None else kept
        size = len(kept) + len(kept) // 4 + SETTINGS.first_rows
        rows = grown(self.rows[kept], len(kept), size)
        level = count = NO_WORDS
        if self.is_annotated:
            level, count = (grown(each[kept], len(kept), size) for each in (self.level, self.count))
        table = empty_table(slots_for(size))
        fill_table(rows, len(kept), table, self.crew)
        touched = np.empty((16, TOUCHED_WIDTH), WORD)
        # All is made: from here on nothing needs memory.
        self.stamp = STAMPS.take()
        self.rows, self.level, self.count, self.touched = rows, level, count, touched
        self.take_table(table)
        self.used = self.present = len(kept)
        self._indexes.clear()
        self.is_settled = True
        self.generation = self.stamp

    @property
    def nbytes(self) -> int:
        own = self.rows.nbytes + self._table.nbytes + self.level.nbytes + self.count.nbytes
        return int(own + sum(index.nbytes for index in self._indexes.values()))


def fill_table(rows: Matrix, used: int, table: Vector, crew: Crew) -> None:
    """Enters the first rows into an empty set table, with all threads of a crew if they are many."""
    shift = 65 - len(table).bit_length()
    crew.do_ranges(used, lambda _, start, stop: inserting.rebuild(rows, start, stop, table, shift, stop - start < used))


def levels_now(relation: KernelRelation, rows: Vector | slice, column: int = NEW) -> Vector:
    """The levels of rows in the state under way; by the column OLD of touched entries, those before it."""
    levels = relation.level[rows].copy()
    is_touched = levels >= REFERENCE
    levels[is_touched] = relation.touched[levels[is_touched] - REFERENCE, column]
    return levels


def note_levels(relation: KernelRelation) -> None:
    """Notes between which levels the facts of a settled relation are."""
    levels = relation.level[: relation.used]
    relation.lowest = int(levels.min()) if len(levels) else 0
    relation.highest = int(levels.max()) if len(levels) else 0


def highest_now(relation: KernelRelation) -> int:
    """A level above which the relation has no facts in the state under way."""
    touched = relation.touched[: relation.touched_used, NEW]
    return max(relation.highest, int(touched[touched < ABSENT].max(initial=0)))
