"""Rows of words as keys: columns side by side in as few 62-bit numbers as hold them, the first column highest.

A column needs the bits of its range. Columns that share a variable in some clause have the same range, so that a key
made of bindings and one made of facts are equal when their words are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.analysis.program import Constant, Variable, variables_of
from elastalog.backends.gpu import fused
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.late import dataclass
from elastalog.planning.goals import constructor_of
from elastalog.planning.logical import Clause, LogicalStratum, Test
from elastalog.relations.words import Dictionary

KEY_BITS = 62
"""So that the key after the last one of a prefix is a number, too."""

Keys: TypeAlias = tuple[Array, ...]
"""Keys of rows in parallel arrays, the highest part first; one array if all columns fit."""


def one_after_the_other(pieces: Sequence[Keys], arrays: Arrays) -> Keys:
    """The keys of several pieces."""
    if len(pieces) == 1:
        return pieces[0]
    return tuple(arrays.module.concatenate(parts) for parts in zip(*pieces, strict=True))


@dataclass(frozen=True, slots=True)
class Range:
    """Words from `least` on, as many as `bits` tell apart."""

    least: int
    bits: int


EVERYTHING = Range(-(1 << 31), 32)


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each column of an order lies: the number of its part, its shift there, its range."""

    order: tuple[int, ...]
    places: tuple[tuple[int, int, Range], ...]
    parts: int

    def pack(self, columns: Sequence[Array], arrays: Arrays) -> Keys:
        """The keys of rows given by columns in this order; only the first ones may be given, then the rest is 0."""
        if self.is_fused(columns, arrays):
            return (fused.packed(arrays.module, columns, self.shifts(len(columns))),)
        parts: list[Array] = []
        for (part, shift, span), column in zip(self.places, columns, strict=False):
            piece = (column.astype(np.int64) - span.least) << shift
            if part == len(parts):
                parts.append(piece)
            else:
                parts[part] |= piece
        while len(parts) < self.parts:
            parts.append(arrays.module.zeros(len(columns[0]), np.int64))
        return tuple(parts)

    def is_fused(self, columns: Sequence[Array], arrays: Arrays) -> bool:
        """Rows given by columns are handled in one pass."""
        return arrays.is_device and self.parts == 1 and 0 < len(columns) <= fused.MOST_PARTS

    def shifts(self, columns: int) -> list[tuple[int, int]]:
        """What is added to the words of the first columns, and how far they are shifted."""
        return [(-span.least, shift) for _, shift, span in self.places[:columns]]

    def column(self, keys: Keys, column: int, arrays: Arrays) -> Array:
        """The words of a column of the relation."""
        return self.columns(keys, [column], arrays)[0]

    def columns(self, keys: Keys, columns: Sequence[int], arrays: Arrays) -> list[Array]:
        """The words of some columns of the relation, at least one."""
        taken = [self._taken(keys, column) for column in columns]
        if arrays.is_device:
            return fused.unpacked(arrays.module, taken)
        return [(((part >> shift) & mask) + least).astype(np.int32) for part, shift, mask, least in taken]

    def rows(self, keys: Keys, arrays: Arrays) -> Array:
        """The words of all columns, row by row."""
        columns = range(len(self.order))
        if arrays.is_device:
            return fused.unpacked(arrays.module, [self._taken(keys, column) for column in columns], is_matrix=True)[0]
        return np.stack(self.columns(keys, columns, arrays), axis=1)

    def _taken(self, keys: Keys, column: int) -> tuple[Array, int, int, int]:
        part, shift, span = self.places[self.order.index(column)]
        return keys[part], shift, (1 << span.bits) - 1, span.least

    @property
    def bits(self) -> int:
        """How many bits keys have that consist of one part."""
        return sum(span.bits for _, _, span in self.places)

    def rest(self, columns: int) -> tuple[int, ...]:
        """What to add, part by part, to the key of the first columns and zeros to have the last key with these."""
        most = [0] * self.parts
        for part, shift, span in self.places[columns:]:
            most[part] |= ((1 << span.bits) - 1) << shift
        return tuple(most)


def packing_of(order: tuple[int, ...], ranges: Sequence[Range]) -> Packing:
    """The packing of an order of columns; `ranges` are those of the relation's columns."""
    parts: list[list[int]] = [[]]
    free = KEY_BITS
    for column in order:
        bits = ranges[column].bits
        if bits > free:
            parts.append([])
            free = KEY_BITS
        parts[-1].append(column)
        free -= bits
    places = []
    for part, columns in enumerate(parts):
        shift = sum(ranges[column].bits for column in columns)
        for column in columns:
            shift -= ranges[column].bits
            places.append((part, shift, ranges[column]))
    return Packing(order, tuple(places), len(parts))


@dataclass(slots=True)
class _Group:
    """Columns and variables that hold the same words, and between which these are."""

    least: int = 0
    most: int = 0
    is_open: bool = False


@dataclass(slots=True)
class _Groups:
    parents: dict[object, object] = field(default_factory=dict)
    groups: dict[object, _Group] = field(default_factory=dict)

    def root(self, member: object) -> object:
        parent = self.parents.setdefault(member, member)
        while parent != self.parents[parent]:
            parent = self.parents[parent]
        self.parents[member] = parent
        return parent

    def join(self, one: object, other: object) -> None:
        one, other = self.root(one), self.root(other)
        if one != other:
            self.parents[other] = one
            gone = self.groups.pop(other, None)
            if gone is not None:
                self._widen(one, gone.least, gone.most, gone.is_open)

    def add(self, member: object, least: int, most: int) -> None:
        self._widen(self.root(member), least, most, False)

    def open(self, member: object) -> None:
        """Its words are not known beforehand."""
        self._widen(self.root(member), 0, 0, True)

    def _widen(self, root: object, least: int, most: int, is_open: bool) -> None:
        group = self.groups.setdefault(root, _Group(least, most))
        group.least, group.most = min(group.least, least), max(group.most, most)
        group.is_open |= is_open

    def range(self, member: object) -> Range:
        group = self.groups.get(self.root(member), _Group())
        if group.is_open:
            return EVERYTHING
        return Range(group.least, max((group.most - group.least).bit_length(), 1))


def ranges_of(
    stratum: LogicalStratum,
    facts: Mapping[str, npt.NDArray[np.int32]],
    known: Mapping[str, Packing],
    dictionary: Dictionary,
) -> dict[str, tuple[Range, ...]]:
    """The ranges that the columns of all relations of a stratum will have, its own and those that it reads, from the
    facts that are given, and from how those are packed that are there already."""
    groups = _Groups()
    for name, packing in known.items():
        for column, (_, _, span) in zip(packing.order, packing.places, strict=True):
            groups.add((name, column), span.least, span.least + (1 << span.bits) - 1)
    for name, words in facts.items():
        for column in range(words.shape[1]):
            if len(words):
                groups.add((name, column), int(words[:, column].min()), int(words[:, column].max()))
    for clause in stratum.clauses:
        _connect(groups, clause, dictionary)
    return {
        name: tuple(groups.range((name, column)) for column in range(words.shape[1])) for name, words in facts.items()
    }


def _connect(groups: _Groups, clause: Clause, dictionary: Dictionary) -> None:
    atoms = [(clause.head, clause.head_terms)]
    for goal in clause.goals:
        if not isinstance(goal, Test):
            atoms.append((goal.relation, goal.terms))  # type: ignore[arg-type]
            continue
        sides = goal.left, goal.right
        if goal.operator != "=":
            continue
        if all(isinstance(side, Variable) for side in sides):
            groups.join((clause.number, goal.left.name), (clause.number, goal.right.name))  # type: ignore[union-attr]
            continue
        parts = constructor_of(goal)
        for part in () if parts is None else variables_of(parts):
            groups.open((clause.number, part.name))  # what is taken out of a record may be anything
        for side, other in (sides, sides[::-1]):
            if isinstance(side, Variable) and isinstance(other, Constant):
                word = dictionary.encode_value(other.base, other.value)
                groups.add((clause.number, side.name), word, word)
            elif isinstance(side, Variable):
                groups.open((clause.number, side.name))
    for name, terms in atoms:
        for column, term in enumerate(terms):
            if isinstance(term, Constant):
                word = dictionary.encode_value(term.base, term.value)
                groups.add((name, column), word, word)
            elif term is not None:
                groups.join((name, column), (clause.number, term))
