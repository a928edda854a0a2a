"""A round in several threads: the start rows of all its runs are shared out, what is derived is inserted by all.

The threads run by themselves until one of them finds no room in a relation, or all are done. Then they meet: one makes
room for rows, all fill a wider set table if one is needed. Between meetings facts are added to the relations of the
heads, in rows beyond those that the round reads, and nothing is moved.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from elastalog.backends.kernel.bootstrap.workers import Run, note
from elastalog.backends.kernel.execution.bound_variant import BLOCK, Bounds, Scratch, Sink
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Stopped, in_threads
from elastalog.backends.kernel.threads.growth import Growth
from elastalog.backends.kernel.threads.shared_head import SharedHead
from elastalog.backends.watch import Watch

SHARES = 8
"""So many for each thread, so that none has to wait long for another at the end."""

LEAST_SHARE = 64
"""Start rows that a thread takes at a time, at least."""

LEAST_WORK_OF_SHARE = 1 << 14
"""What a share is expected to look at and make, at least."""


Share: TypeAlias = tuple[int, int, int]
"""The number of a run, and a range of its start rows."""


def expected_work(run: Run) -> int:
    """Rows that a run is expected to look at or make, judged by those so far."""
    size, member = run.stop - run.start, run.body.members[0]
    if not member.start_rows:
        return size
    made = member.rows + member.derivations * len(run.body.members)
    return size + made * size // member.start_rows


class _Done:
    """What a thread has done of a run."""

    __slots__ = ("derivations", "rows", "seconds")

    def __init__(self) -> None:
        self.derivations = 0
        self.rows = 0
        self.seconds = 0.0


class SharedRound:
    """Runs of one round, all of which threads may share. Of every thread its `scratch` is kept from round to round."""

    def __init__(
        self,
        scratch: Sequence[Scratch],
        runs: Sequence[Run],
        relations: Mapping[str, KernelRelation],
        bounds: Bounds,
        counted: Mapping[str, int],
        watch: Watch,
    ) -> None:
        self._scratch = scratch
        self._runs = runs
        self._relations = relations
        self._bounds = bounds
        self._watch = watch
        self._heads: dict[str, SharedHead] = {}
        for name in dict.fromkeys(member.clause.head for run in runs for member in run.body.members):
            # About as many facts as in the round before.
            expected = counted[name] - bounds.start[name]
            self._heads[name] = SharedHead(relations[name], counted[name], len(scratch), expected)
        self._shares: list[deque[Share]] = [deque() for _ in scratch]
        for shares in self._shared_out():
            for thread, own in enumerate(self._shares):
                first, last = (len(shares) * number // len(scratch) for number in (thread, thread + 1))
                own.extend(shares[first:last])
        self._done = [[_Done() for _ in runs] for _ in scratch]
        self._lock = threading.Lock()
        self._is_stopped = False
        self._wants_meeting = False
        self._running = len(scratch)
        self._is_over = False
        self._assembled = threading.Barrier(len(scratch), self._make_room)
        self._growing: list[tuple[SharedHead, Growth]] = []
        self._grown = threading.Barrier(len(scratch), self._finish_growth)

    def _shared_out(self) -> Iterator[list[Share]]:
        """For every run its shares, in order; first of those runs that take longest."""
        works = [expected_work(run) for run in self._runs]
        most = max(sum(works) // (SHARES * len(self._scratch)), LEAST_WORK_OF_SHARE)
        for work, number in sorted(zip(works, range(len(works)), strict=True), reverse=True):
            run = self._runs[number]
            rows = min(max((run.stop - run.start) * most // max(work, 1), LEAST_SHARE), BLOCK)
            yield [(number, start, min(start + rows, run.stop)) for start in range(run.start, run.stop, rows)]

    def _take(self, thread: int) -> Share | None:
        """The next share of a thread, or one that another thread would come to last. Neighbours go to one thread, since
        rows that were found one after the other lead to the same places."""
        for shares in self._shares[thread:] + self._shares[:thread]:
            try:
                return shares.popleft() if shares is self._shares[thread] else shares.pop()
            except IndexError:
                pass
        return None

    def run(self) -> None:
        """Puts what is derived into the relations of the heads."""
        for scratch in self._scratch:
            scratch.look = self._look
        try:
            in_threads(len(self._scratch), self._work, self._abort)
        finally:
            for scratch in self._scratch:
                scratch.look = self._watch.step
        for number, run in enumerate(self._runs):
            parts = [done[number] for done in self._done]
            seconds = sum(part.seconds for part in parts) / len(parts)
            derivations, rows = sum(part.derivations for part in parts), sum(part.rows for part in parts)
            note(run, derivations, rows, seconds, self._watch)

    def _look(self) -> None:
        if self._is_stopped:
            raise Stopped
        self._watch.step()

    def _work(self, thread: int) -> None:
        scratch = self._scratch[thread]
        sinks = [self._sink(thread, run) for run in self._runs]
        while (share := self._take(thread)) is not None:
            number, start, stop = share
            done = self._done[thread][number]
            began, derivations, rows = time.perf_counter(), scratch.derivations, scratch.rows
            variant = self._runs[number].body.variant
            variant.run(self._relations, start, stop, self._bounds, scratch, sinks[number])
            done.derivations += scratch.derivations - derivations
            done.rows += scratch.rows - rows
            done.seconds += time.perf_counter() - began
        with self._lock:
            self._running -= 1
        while not self._is_over:
            self._meet(thread)

    def _sink(self, thread: int, run: Run) -> Sink:
        body, scratch = run.body, self._scratch[thread]
        heads = [self._heads[member.clause.head] for member in body.members]

        def insert(block: Matrix, used: int) -> None:
            if self._is_stopped:
                raise Stopped
            with self._lock:
                self._watch.derived(used * len(heads))
            for head, facts in zip(heads, body.facts(block, used, scratch), strict=True):
                done = 0
                while True:
                    if self._wants_meeting:
                        self._meet(thread)
                    done = head.insert(thread, facts, done, used)
                    if done == used:
                        break
                    head.is_full = self._wants_meeting = True

        return insert

    def _meet(self, thread: int) -> None:
        """All threads come here; when they leave, there is room."""
        self._assembled.wait()
        if self._growing:
            for _, growth in self._growing:
                growth.work(thread)
            self._grown.wait()

    def _make_room(self) -> None:
        """Makes rows dense, and room for more unless all threads are done."""
        self._is_over = not self._running
        self._wants_meeting = False
        for head in self._heads.values():
            if self._is_over:
                head.take_back()
            elif head.is_full and (growth := head.make_room()) is not None:
                self._growing.append((head, growth))

    def _finish_growth(self) -> None:
        for head, growth in self._growing:
            head.take_table(growth)
        self._growing.clear()

    def _abort(self) -> None:
        self._is_stopped = True
        self._assembled.abort()
        self._grown.abort()
