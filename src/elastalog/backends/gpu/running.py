"""A planned variant of a clause over sorted facts: from its start through its probes, chunk by chunk, depth first, so
that memory is bounded by the chunk and not by the derivations of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from elastalog.backends.gpu.actions import Columns, Run, runner
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.gpu.device_arrays import MOST_PARTS
from elastalog.backends.gpu.joining import Pairs, Part, columns_of, unknown_heads
from elastalog.backends.gpu.packing import Keys, Packing
from elastalog.backends.gpu.sorted_facts import SortedIndex
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Gather, Probe, Variant
from elastalog.relations.words import Dictionary

Indexes: TypeAlias = Callable[[str, tuple[int, ...], bool], SortedIndex]
"""The index of a relation whose order begins with some columns, to find facts or their absence."""


class DeviceVariant:
    """A variant ready to run; `indexes` gives the facts it probes, `head` those of the head's relation."""

    def __init__(
        self,
        variant: Variant,
        arrays: Arrays,
        indexes: Indexes,
        head: SortedIndex,
        dictionary: Dictionary,
        source: Source,
        chunk: int,
    ) -> None:
        self.variant = variant
        self._arrays = arrays
        self._indexes = indexes
        self._head = head
        self._chunk = chunk
        steps: tuple[Gather | Probe, ...] = (variant.gather, *variant.probes)
        self._actions = [runner(step.actions, step.slots, step.width, arrays, dictionary, source) for step in steps]
        self._head_width = len(variant.clause.head_terms)
        self._ends_in_join = (
            bool(variant.probes)
            and not variant.probes[-1].actions
            and not variant.probes[-1].is_filter
            and head.packing.parts == 1
            and self._head_width <= MOST_PARTS
        )

    def run(self, keys: Keys, start: SortedIndex | None) -> Iterator[tuple[int, Keys]]:
        """What follows from the facts that some keys of the start relation stand for, piece by piece: how many
        derivations, and the keys of the heads of those whose head is not known."""
        gather = self.variant.gather
        if start is None:
            yield from self._go_on([None] * gather.width, 1, self._actions[0], 0)
            return
        for begin in range(0, len(keys[0]), self._chunk):
            part = tuple(key[begin : begin + self._chunk] for key in keys)
            yield from self._go_on(_gathered(gather, part, start, self._arrays), len(part[0]), self._actions[0], 0)

    def _go_on(self, columns: Columns, size: int, actions: Run, depth: int) -> Iterator[tuple[int, Keys]]:
        """From rows that a step gave, through its actions, to the next step."""
        columns, size = actions(columns, size)
        if not size:
            return
        if depth == len(self.variant.probes):
            keys = self._head.packing.pack(columns[: self._head_width], self._arrays)
            at = (~self._head.knows(keys)).nonzero()[0]
            yield size, tuple(part[at] for part in keys)
            return
        probe = self.variant.probes[depth]
        index = self._indexes(probe.relation, probe.key_columns, probe.is_negated)
        if probe.is_filter:
            # Found once: a mask would be counted for every column, and waited for.
            at = self._held(probe, index, columns).nonzero()[0]
            yield from self._go_on(_kept(columns, probe, at), len(at), self._actions[depth + 1], depth + 1)
            return
        pairs, number = self._pairs(probe, index, columns, size)
        if pairs.is_narrow and self._ends_in_join and depth + 1 == len(self.variant.probes):
            parts = _head_parts(probe, index.packing, columns, self._head.packing)
            known = [run[0] for run in self._head.runs]
            for begin, length in self._chunks(number):
                yield length, (unknown_heads(self._arrays, pairs, begin, length, parts, known),)
            return
        places, parts = _row_parts(probe, index.packing, columns)
        for begin, length in self._chunks(number):
            found: Columns = [None] * probe.width
            for slot, column in zip(places, columns_of(self._arrays, pairs, begin, length, parts), strict=True):
                found[slot] = column
            yield from self._go_on(found, length, self._actions[depth + 1], depth + 1)

    def _chunks(self, number: int) -> Iterator[tuple[int, int]]:
        for begin in range(0, number, self._chunk):
            yield begin, min(self._chunk, number - begin)

    def _sought(self, probe: Probe, index: SortedIndex, columns: Columns) -> tuple[list[Array], Keys]:
        """The values that a probe looks for, in the order of the index, and the facts among which it does."""
        by_column = dict(zip(probe.key_columns, probe.key_slots, strict=True))
        order = index.packing.order[: len(by_column)]
        return [columns[by_column[column]] for column in order], index.old if probe.is_before else index.new

    def _held(self, probe: Probe, index: SortedIndex, columns: Columns) -> Array:
        """The rows that a probe lets through."""
        values, keys = self._sought(probe, index, columns)
        mask = index.holds(values, keys)
        return ~mask if probe.is_negated else mask

    def _pairs(self, probe: Probe, index: SortedIndex, columns: Columns, size: int) -> tuple[Pairs, int]:
        """The pairs that a probe finds, and how many they are."""
        values, keys = self._sought(probe, index, columns)
        module = self._arrays.module
        if values:
            starts, counts = index.ranges(values, keys)
        else:
            starts = module.zeros(size, "int64")
            counts = module.full(size, len(keys[0]), "int64")
        ends = module.cumsum(counts)
        return Pairs(starts, counts, ends, keys), int(ends[-1])


def _gathered(gather: Gather, keys: Keys, start: SortedIndex, arrays: Arrays) -> Columns:
    columns: Columns = [None] * gather.width
    for column, slot in gather.take:
        columns[slot] = start.packing.column(keys, column, arrays)
    return columns


def _kept(columns: Columns, probe: Probe, at: Array) -> Columns:
    """What is kept of the rows at some positions."""
    kept: Columns = [None] * probe.width
    for origin, slot in probe.keep:
        kept[slot] = columns[origin][at]
    return kept


def _row_parts(probe: Probe, facts: Packing, columns: Columns) -> tuple[list[int], list[Part]]:
    """Where the words of the rows that a probe gives come from, and into which slots they go."""
    places = [slot for _, slot in (*probe.keep, *probe.take)]
    parts = [Part(columns[origin]) for origin, _ in probe.keep]
    return places, parts + [_from_fact(facts, column) for column, _ in probe.take]


def _head_parts(probe: Probe, facts: Packing, columns: Columns, head: Packing) -> list[Part]:
    """Where the words of the heads that follow from the last probe come from, each moved into its place in a key."""
    rows = {slot: origin for origin, slot in probe.keep}
    taken = {slot: column for column, slot in probe.take}
    parts: list[Part] = []
    for column, (_, shift, span) in zip(head.order, head.places, strict=True):
        if column in rows:
            parts.append(Part(columns[rows[column]], add=-span.least, shift=shift))
        else:
            part = _from_fact(facts, taken[column])
            parts.append(replace(part, add=part.add - span.least, shift=shift))
    return parts


def _from_fact(facts: Packing, column: int) -> Part:
    part, shift, span = facts.places[facts.order.index(column)]
    return Part(None, shift, (1 << span.bits) - 1, span.least, part=part)
