"""One run of a variant in several threads: the start rows are shared out, what is derived is inserted by all.

The threads run by themselves until one of them has no room for more candidates, or all are done. Then they meet: one
makes room in the head's relation, each inserts the candidates of its parts (see `parallel_operators`), one puts the
rows in order. Between meetings nobody writes to a relation, so rows may be read without locks, and memory is bounded
however much a start row derives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import BLOCK, Bounds, BoundVariant, Scratch, Transform
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads import inserting as operators
from elastalog.backends.kernel.threads.growth import Growth, is_too_full
from elastalog.backends.watch import Watch

CANDIDATES = 1 << 18
"""Derived facts that a thread collects before all insert theirs."""

LEAST_SHARE = 1 << 10
"""Start rows that a thread takes at a time, at least."""

LEAST_GROWTH = 1 << 14
"""Relations with fewer rows are made larger by one thread."""

_LARGE = 1 << 29
"""Beyond this many rows a relation grows by itself, since it knows its limit."""

_REPEATED = 4
"""When more derivations than this go to a new fact, known facts are left out before the threads meet, which is then
seldom; otherwise looking for them twice costs more."""


class WorkerThread:
    """What a thread keeps for itself from one run to the next."""

    __slots__ = ("_matrices", "capacity", "filled", "number", "scratch", "state")

    def __init__(self, number: int, parts: int, scratch: Scratch) -> None:
        self.number = number
        self.scratch = scratch
        self.filled: Vector = np.zeros(parts, np.int64)
        self.capacity = max(CANDIDATES // parts, 1)
        self.state: Vector = np.zeros(2, np.int64)
        self._matrices: dict[int, Matrix] = {}

    def candidates(self, width: int) -> Matrix:
        """One range of `capacity` rows for every part."""
        matrix = self._matrices.get(width)
        if matrix is None:
            matrix = self._matrices[width] = np.empty((len(self.filled) * self.capacity, width), np.int32)
        return matrix


class _Stopped(Exception):
    """Another thread has failed, or the user has interrupted."""


class SharedRun:
    """One run of a variant over a range of start rows. `repeating` names the relations of which hardly anything
    derived lately was new; it is kept up to date."""

    def __init__(
        self,
        threads: Sequence[WorkerThread],
        variant: BoundVariant,
        relations: Mapping[str, KernelRelation],
        start_rows: range,
        bounds: Bounds,
        head: KernelRelation,
        counted_from: int,
        watch: Watch,
        repeating: set[str],
    ) -> None:
        self._threads = threads
        self._variant = interruptible(variant, self._check)
        self._relations = relations
        self._bounds = bounds
        self._head = head
        self._counted_from = counted_from
        self._watch = watch
        self._repeating = repeating
        self._derived = 0
        share = min(max(len(start_rows) // (16 * len(threads)), LEAST_SHARE), BLOCK)
        self._shares = iter(range(start_rows.start, start_rows.stop, share))
        self._share = share
        self._stop = start_rows.stop
        self._lock = threading.Lock()
        self._is_stopped = False
        self._wants_meeting = False
        self._running = len(threads)
        self._is_over = False
        self._parts = len(threads[0].filled)
        self._part_shift = 65 - self._parts.bit_length()
        self._base = head.used
        self._assembled = threading.Barrier(len(threads), self._make_room)
        self._growth: Growth | None = None
        self._grown = threading.Barrier(len(threads), self._finish_growth)
        self._inserted = threading.Barrier(len(threads), self._settle)

    def run(self) -> None:
        """Puts what the variant derives into the head's relation."""
        for thread in self._threads:
            thread.filled[:] = 0
        in_threads(len(self._threads), lambda number: self._work(self._threads[number]), self._abort)

    def _work(self, thread: WorkerThread) -> None:
        candidates = thread.candidates(self._head.width)

        def collect(block: Matrix, used: int) -> None:
            self._check()
            with self._lock:
                self._derived += used
                self._watch.derived(used)
            if self._wants_meeting:
                self._meet(thread)
            done = 0
            while done < used:
                done = self._collect(block, done, used, thread, candidates)
                if done < used:
                    self._wants_meeting = True
                    self._meet(thread)

        while (start := self._next_share()) is not None:
            self._check()
            stop = min(start + self._share, self._stop)
            self._variant.run(self._relations, start, stop, self._bounds, thread.scratch, collect)
        with self._lock:
            self._running -= 1
        while not self._is_over:
            self._meet(thread)

    def _collect(self, block: Matrix, start: int, stop: int, thread: WorkerThread, candidates: Matrix) -> int:
        """Makes rows of a block candidates, as far as there is room."""
        head = self._head
        if head.name not in self._repeating:
            done = operators.scatter(block, start, stop, self._part_shift, thread.capacity, candidates, thread.filled)
        else:
            done = operators.sift(
                block, start, stop, self._part_shift, thread.capacity, candidates, thread.filled, head.rows,
                head.table, head.shift, head.count, self._counted_from,
            )  # fmt: skip
        return int(done)

    def _next_share(self) -> int | None:
        with self._lock:
            return next(self._shares, None)

    def _meet(self, thread: WorkerThread) -> None:
        """All threads come here; when they leave, their candidates are in the relation."""
        self._assembled.wait()
        if self._growth is not None:
            self._growth.work(thread.number)
            self._grown.wait()
        head = self._head
        thread.state[operators.ADDED] = 0
        slots = len(head.table) // self._parts
        for part in range(thread.number, self._parts, len(self._threads)):
            for other in self._threads:
                size = int(other.filled[part])
                if size:
                    operators.insert_part(
                        other.candidates(head.width), part * other.capacity, size, head.rows, head.table, head.shift,
                        (part + 1) * slots, head.count, self._counted_from, self._base, thread.number,
                        len(self._threads), thread.state,
                    )  # fmt: skip
                    other.filled[part] = thread.state[operators.PUT_OFF]
        self._inserted.wait()

    def _make_room(self) -> None:
        """Room for as many rows as there are candidates, however they are dealt out."""
        head = self._head
        self._base = head.used
        filled = np.sum([thread.filled for thread in self._threads], axis=0)
        owners = len(self._threads)
        most = max(int(filled[number::owners].sum()) for number in range(owners))
        needed = max(head.used + owners * (most + operators.TURN), self._parts)
        if needed <= len(head.rows) and not is_too_full(needed, len(head.table)):
            return
        size = max(needed, int(head.used * 1.5))
        if head.used >= LEAST_GROWTH and size < _LARGE:
            self._growth = Growth(head, size, owners)
        else:
            head.reserve(size)

    def _finish_growth(self) -> None:
        assert self._growth is not None
        self._growth.finish()
        self._growth = None

    def _settle(self) -> None:
        """Makes rows dense, inserts what was put off, and lets the threads go on."""
        head = self._head
        added = np.array([thread.state[operators.ADDED] for thread in self._threads], np.int64)
        operators.close_gaps(head.rows, head.table, head.shift, head.count, self._base, added)
        head.used = self._base + int(added.sum())
        for thread in self._threads:
            for part in np.flatnonzero(thread.filled).tolist():
                first = part * thread.capacity
                head.insert(thread.candidates(head.width), first, first + int(thread.filled[part]), self._counted_from)
            thread.filled[:] = 0
        if (head.used - self._base) * _REPEATED < self._derived:
            self._repeating.add(head.name)
        else:
            self._repeating.discard(head.name)
        self._derived = 0
        self._wants_meeting = False
        self._is_over = not self._running

    def _check(self) -> None:
        if self._is_stopped:
            raise _Stopped

    def _abort(self) -> None:
        self._is_stopped = True
        self._assembled.abort()
        self._grown.abort()
        self._inserted.abort()


def in_threads(number: int, work: Callable[[int], None], abort: Callable[[], None]) -> None:
    """Calls work(0) in this thread and work(1), … in others, and returns when all have. When one fails, `abort` must
    bring the others to an end soon; then its exception is raised. An interruption by the user is such a failure."""
    failures: list[BaseException] = []

    def guarded(own: int) -> None:
        try:
            work(own)
        except (_Stopped, threading.BrokenBarrierError):
            # Where this comes from has failed too, and says why.
            pass
        except BaseException as failure:
            failures.append(failure)
            abort()

    threads = [threading.Thread(target=guarded, args=(own,), daemon=True) for own in range(1, number)]
    started: list[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        guarded(0)
        for thread in started:
            thread.join()
    except BaseException:
        abort()
        for thread in started:
            thread.join()
        raise
    if failures:
        raise next((failure for failure in failures if isinstance(failure, KeyboardInterrupt)), failures[0])


def interruptible(variant: BoundVariant, check: Callable[[], None]) -> BoundVariant:
    """The variant, which asks for every block on its way whether to go on."""

    def checking(transform: Transform | None) -> Transform:
        def checked(block: Matrix, used: int) -> tuple[Matrix, int]:
            check()
            return (block, used) if transform is None else transform(block, used)

        return checked

    result = copy(variant)
    # The last step without actions hands its blocks to the sink at once, which asks as well.
    last = len(variant.probes) - 1
    result.probes = [
        probe if i == last and probe.transform is None else replace(probe, transform=checking(probe.transform))
        for i, probe in enumerate(variant.probes)
    ]
    return result
