"""Workers that share the start rows of a variant, and the indexes of a stratum, among several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from elastalog.backends.kernel.bootstrap.fixpoint import Workers
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Scratch
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.run import SharedRun, WorkerThread, in_threads
from elastalog.backends.kernel.threads.shareable import is_shareable
from elastalog.backends.watch import Watch

LEAST_ROWS = 20_000
"""Fewer start rows of a variant of which nothing is known, or fewer rows to add to indexes, are left to one thread."""

LEAST_WORK = 50_000
"""The same for a variant that has run before: start rows, and derivations to judge by those so far."""


class ParallelWorkers(Workers):
    """Runs variants in several threads, this one among them; small ranges and actions on texts in this one only."""

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch, jobs: int) -> None:
        super().__init__(relations, watch)
        self._threads = [
            WorkerThread(number, self.scratch if number == 0 else Scratch(watch)) for number in range(jobs)
        ]

    def run(self, variant: BoundVariant, start: int, stop: int, bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs a variant over a range of start rows; what it derives goes into the head's relation."""
        if not _is_worth_it(variant, stop - start) or not is_shareable(variant):
            super().run(variant, start, stop, bounds, counted)
            return
        _make_indexes(variant, self.relations)
        head = self.relations[variant.clause.head]
        began = time.perf_counter()
        before = sum(thread.scratch.derivations for thread in self._threads)
        rows = sum(thread.scratch.rows for thread in self._threads)
        SharedRun(
            self._threads, variant, self.relations, range(start, stop), bounds, head, counted[head.name], self.watch
        ).run()  # fmt: skip
        self.watch.rows += sum(thread.scratch.rows for thread in self._threads) - rows
        variant.seconds += time.perf_counter() - began
        variant.start_rows += stop - start
        variant.derivations += sum(thread.scratch.derivations for thread in self._threads) - before

    def extend_indexes(self, relations: list[KernelRelation]) -> None:
        """Adds the latest rows to the indexes, several at a time."""
        waiting = [
            (index, relation)
            for relation in relations
            for index in relation.indexes.values()
            if index.done < relation.used
        ]
        if len(waiting) < 2 or sum(relation.used - index.done for index, relation in waiting) < LEAST_ROWS:
            super().extend_indexes(relations)
            return
        waiting.sort(key=lambda pair: pair[1].used - pair[0].done)
        lock = threading.Lock()

        def take() -> tuple[Index, KernelRelation] | None:
            with lock:
                return waiting.pop() if waiting else None

        def work(number: int) -> None:
            while (taken := take()) is not None:
                index, relation = taken
                index.extend(relation.rows, relation.used)

        in_threads(min(len(self._threads), len(waiting)), work, waiting.clear)


def _is_worth_it(variant: BoundVariant, rows: int) -> bool:
    """Whether a run over so many start rows is long enough to be shared out."""
    if not variant.start_rows:
        return rows >= LEAST_ROWS
    return rows + variant.derivations * rows // variant.start_rows >= LEAST_WORK


def _make_indexes(variant: BoundVariant, relations: Mapping[str, KernelRelation]) -> None:
    """The indexes that the variant would otherwise make when it first needs them."""
    for probe in variant.probes:
        relation = relations[probe.relation]
        if not probe.is_member and probe.key_columns and probe.key_columns not in relation.indexes:
            relation.index(probe.key_columns)
