"""One run of a variant in several threads: the start rows are shared out, what is derived is inserted by all.

The threads run by themselves until one of them finds no room in the head's relation, or all are done. Then they meet:
one makes room for rows, all fill a wider set table if one is needed. Between meetings facts are added to the head's
relation (see `inserting`), in rows beyond those that the run reads, and nothing is moved.
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
from elastalog.backends.kernel.threads.growth import Growth
from elastalog.backends.watch import Watch

SHARES = 16
"""So many for each thread, so that none has to wait long for another at the end."""

LEAST_SHARE = 64
"""Start rows that a thread takes at a time, at least."""

LEAST_ROOM = 1 << 16
"""Rows for which there is room after a meeting, at least."""

LEAST_GROWTH = 1 << 14
"""Relations with fewer rows are made larger by one thread."""


class WorkerThread:
    """What a thread keeps for itself from one run to the next."""

    __slots__ = ("number", "scratch", "state")

    def __init__(self, number: int, scratch: Scratch) -> None:
        self.number = number
        self.scratch = scratch
        self.state: Vector = np.zeros(2, np.int64)


class _Stopped(Exception):
    """Another thread has failed, or the user has interrupted."""


class SharedRun:
    """One run of a variant over a range of start rows."""

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
    ) -> None:
        self._threads = threads
        self._variant = interruptible(variant, self._check)
        self._relations = relations
        self._bounds = bounds
        self._head = head
        self._counted_from = counted_from
        self._watch = watch
        share = min(max(len(start_rows) // (SHARES * len(threads)), LEAST_SHARE), BLOCK)
        self._shares = iter(range(start_rows.start, start_rows.stop, share))
        self._share = share
        self._stop = start_rows.stop
        self._lock = threading.Lock()
        self._is_stopped = False
        self._wants_meeting = False
        self._running = len(threads)
        self._is_over = False
        self._given: Vector = np.zeros(1, np.int64)
        self._assembled = threading.Barrier(len(threads), self._make_room)
        self._growth: Growth | None = None
        self._grown = threading.Barrier(len(threads), self._finish_growth)

    def run(self) -> None:
        """Puts what the variant derives into the head's relation."""
        self._give_out()
        in_threads(len(self._threads), lambda number: self._work(self._threads[number]), self._abort)

    def _work(self, thread: WorkerThread) -> None:
        head = self._head

        def insert(block: Matrix, used: int) -> None:
            self._check()
            with self._lock:
                self._watch.derived(used)
            done = 0
            while True:
                if self._wants_meeting:
                    self._meet(thread)
                done = operators.insert_together(
                    block, done, used, head.rows, head.table, head.shift, head.count, self._counted_from, head.room,
                    self._given, thread.state,
                )  # fmt: skip
                if done == used:
                    return
                self._wants_meeting = True

        while (start := self._next_share()) is not None:
            self._check()
            stop = min(start + self._share, self._stop)
            self._variant.run(self._relations, start, stop, self._bounds, thread.scratch, insert)
        with self._lock:
            self._running -= 1
        while not self._is_over:
            self._meet(thread)

    def _next_share(self) -> int | None:
        with self._lock:
            return next(self._shares, None)

    def _meet(self, thread: WorkerThread) -> None:
        """All threads come here; when they leave, there is room."""
        self._assembled.wait()
        if self._growth is not None:
            self._growth.work(thread.number)
            self._grown.wait()

    def _make_room(self) -> None:
        """Makes rows dense, and room for more unless all threads are done."""
        self._take_back()
        self._is_over = not self._running
        if self._is_over:
            return
        head = self._head
        size = head.used + max(head.used // 4, LEAST_ROOM, 2 * len(self._threads) * operators.TURN)
        if size <= head.full or head.used < LEAST_GROWTH:
            head.reserve(size)
            self._give_out()
        else:
            head.reserve_rows(size)
            self._growth = Growth(head, size, len(self._threads))

    def _finish_growth(self) -> None:
        assert self._growth is not None
        self._growth.finish()
        self._growth = None
        self._give_out()

    def _give_out(self) -> None:
        """From now on threads are given rows behind those that there are."""
        self._given[0] = self._head.used
        for thread in self._threads:
            thread.state[:] = self._head.used
        self._wants_meeting = False

    def _take_back(self) -> None:
        """Rows that threads were given and have not used are used no longer."""
        head = self._head
        first, given = head.used, int(self._given[0])
        # Threads also ask when there are no more.
        turns = min(given - first, head.room - first) // operators.TURN
        gaps = sorted((int(own), int(end)) for own, end in (thread.state for thread in self._threads) if own < end)
        head.used = operators.close_gaps(
            head.rows, head.table, head.shift, head.count, first + turns * operators.TURN,
            np.array(gaps, np.int64).reshape(-1),
        )  # fmt: skip

    def _check(self) -> None:
        if self._is_stopped:
            raise _Stopped

    def _abort(self) -> None:
        self._is_stopped = True
        self._assembled.abort()
        self._grown.abort()


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
