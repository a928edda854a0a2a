"""A planned variant of a clause over sorted facts: from its start through its probes, chunk by chunk, depth first, so
that memory is bounded by the chunk and not by the derivations of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from elastalog.backends.gpu.actions import Columns, Run, runner
from elastalog.backends.gpu.arrays import Array, Arrays
from elastalog.backends.gpu.packing import Keys
from elastalog.backends.gpu.sorted_facts import SortedIndex, is_member
from elastalog.diagnostics.source import Source
from elastalog.planning.steps import Gather, Probe, Variant
from elastalog.relations.words import Dictionary

Indexes: TypeAlias = Callable[[str, tuple[int, ...]], SortedIndex]
"""The index of a relation whose order begins with some columns."""


class DeviceVariant:
    """A variant ready to run; `indexes` gives the facts it probes."""

    def __init__(
        self, variant: Variant, arrays: Arrays, indexes: Indexes, dictionary: Dictionary, source: Source, chunk: int
    ) -> None:
        self.variant = variant
        self._arrays = arrays
        self._indexes = indexes
        self._chunk = chunk
        self._actions = [
            runner(step.actions, step.slots, step.width, arrays, dictionary, source)
            for step in (variant.gather, *variant.probes)
        ]
        self._head_width = len(variant.clause.head_terms)

    def run(self, keys: Keys, start: SortedIndex | None) -> Iterator[list[Array]]:
        """The heads that follow from the facts that some keys of the start relation stand for, as columns."""
        gather = self.variant.gather
        if start is None:
            yield from self._go_on([None] * gather.width, 1, self._actions[0], 0)
            return
        for begin in range(0, len(keys[0]), self._chunk):
            part = tuple(key[begin : begin + self._chunk] for key in keys)
            yield from self._go_on(_gathered(gather, part, start), len(part[0]), self._actions[0], 0)

    def _go_on(self, columns: Columns, size: int, actions: Run, depth: int) -> Iterator[list[Array]]:
        """From rows that a step gave, through its actions, to the next step."""
        columns, size = actions(columns, size)
        if not size:
            return
        if depth == len(self.variant.probes):
            heads = columns[: self._head_width]
            yield heads  # type: ignore[misc]
            return
        probe = self.variant.probes[depth]
        then = self._actions[depth + 1]
        for found, number in self._probe(probe, columns, size):
            yield from self._go_on(found, number, then, depth + 1)

    def _probe(self, probe: Probe, columns: Columns, size: int) -> Iterator[tuple[Columns, int]]:
        index = self._indexes(probe.relation, probe.key_columns)
        keys = index.old if probe.is_before else index.new
        by_column = dict(zip(probe.key_columns, probe.key_slots, strict=True))
        order = index.packing.order[: len(by_column)]
        values = [columns[by_column[column]] for column in order]
        if probe.is_member or probe.is_negated:
            mask = is_member(self._arrays, keys, index.packing.pack(values, self._arrays.module))
            mask = ~mask if probe.is_negated else mask
            yield _moved(columns, probe, lambda column: column[mask]), int(mask.sum())
            return
        if not len(keys[0]):
            return
        module = self._arrays.module
        if values:
            starts, counts = index.ranges(values, keys)
        else:
            starts = module.zeros(size, "int64")
            counts = module.full(size, len(keys[0]), "int64")
        ends = module.cumsum(counts)
        for begin in range(0, total := int(ends[-1]), self._chunk):
            number = min(self._chunk, total - begin)
            left, position = self._arrays.expand(ends, starts, counts, begin, number)
            found = _moved(columns, probe, lambda column, left=left: column[left])
            facts = tuple(part[position] for part in keys)
            for column, slot in probe.take:
                found[slot] = index.packing.column(facts, column)
            yield found, number


def _gathered(gather: Gather, keys: Keys, start: SortedIndex) -> Columns:
    columns: Columns = [None] * gather.width
    for column, slot in gather.take:
        columns[slot] = start.packing.column(keys, column)
    return columns


def _moved(columns: Columns, probe: Probe, choose: Callable[[Array], Array]) -> Columns:
    moved: Columns = [None] * probe.width
    for origin, slot in probe.keep:
        moved[slot] = choose(columns[origin])
    return moved


def orders_of(variants: Mapping[object, Variant]) -> set[tuple[str, tuple[int, ...], bool]]:
    """The relations and columns by which variants look facts up, and whether as they were before the round."""
    return {(p.relation, p.key_columns, p.is_before) for v in variants.values() for p in v.probes}
