"""A round in several threads: the start rows of all its runs are shared out, what is derived is inserted by all.

Facts are added to the relations of the heads, in rows beyond those that the round reads (see `meeting`).
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from elastalog.backends.kernel.bootstrap.workers import Run, note
from elastalog.backends.kernel.execution.bound_variant import BLOCK, Bounds, Scratch, Sink
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew, Stopped
from elastalog.backends.kernel.threads.meeting import Meeting
from elastalog.backends.kernel.threads.shared_head import SharedHead
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

LEFT_OVER = 2
"""A share is one of so many that what is left of a thread's part would make: the last are small, so that no thread has
to wait long for another at the end."""


LEAST_COST = 1 << 11
"""What goes by in a run that does nothing, in rows."""

Share: TypeAlias = tuple[int, int, int]
"""The number of a run, and a range of its start rows."""


MOST_EXPECTED = 1 << 19
"""Facts for which there is room from the start in the first round of a stratum, at most."""


def expected_work(run: Run) -> int:
    """Rows that a run is expected to look at or make, judged by those so far; at first, one at every step."""
    size, member = run.stop - run.start, run.body.members[0]
    if not member.start_rows:
        return size * (1 + len(member.probes))
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
        crew: Crew,
        scratch: Sequence[Scratch],
        runs: Sequence[Run],
        relations: Mapping[str, KernelRelation],
        bounds: Bounds,
        counted: Mapping[str, int],
        watch: Watch,
    ) -> None:
        self._crew = crew
        self._scratch = scratch
        self._runs = runs
        self._relations = relations
        self._bounds = bounds
        self._watch = watch
        self._heads: dict[str, SharedHead] = {}
        starts: Counter[str] = Counter()
        for run in runs:
            starts.update(dict.fromkeys((member.clause.head for member in run.body.members), run.stop - run.start))
        for name, rows in starts.items():
            # About as many facts as in the round before; in the first, as there are rows to start at, for all we know.
            expected = counted[name] - bounds.start[name] if bounds.start[name] else min(rows, MOST_EXPECTED)
            self._heads[name] = SharedHead(relations[name], counted[name], len(scratch), expected)
        self._shares: list[deque[Share]] = [deque() for _ in scratch]
        self._share_out()
        self._done = [[_Done() for _ in runs] for _ in scratch]
        self._lock = threading.Lock()
        self._meeting = Meeting(self._heads.values(), len(scratch))

    def _share_out(self) -> None:
        """Gives every thread a part of each run, in shares, or of small ones a whole one, the largest first."""
        threads = len(self._shares)
        works = [expected_work(run) for run in self._runs]
        given = [sum(LEAST_COST + work for work in works if work < SETTINGS.light_work), *[0] * (threads - 1)]
        for work, number in sorted(zip(works, range(len(works)), strict=True), reverse=True):
            run = self._runs[number]
            rows = run.stop - run.start
            if work < SETTINGS.light_work:
                self._shares[0].appendleft((number, run.start, run.stop))
                continue
            parts = threads if work >= threads * SETTINGS.least_work_of_share else 1
            least = max(rows * SETTINGS.least_work_of_share // max(work, 1), SETTINGS.least_share)
            for part in range(parts):
                thread = part if parts > 1 else given.index(min(given))
                given[thread] += work // parts
                first, last = (run.start + rows * place // parts for place in (part, part + 1))
                while first < last:
                    end = min(first + min(max((last - first) // LEFT_OVER, least), BLOCK), last)
                    self._shares[thread].append((number, first, end))
                    first = end

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
            self._crew.do(self._work, self._meeting.abort)
        finally:
            for scratch in self._scratch:
                scratch.look = self._watch.step
        self._meeting.close()
        for number, run in enumerate(self._runs):
            parts = [done[number] for done in self._done]
            seconds = sum(part.seconds for part in parts) / len(parts)
            derivations, rows = sum(part.derivations for part in parts), sum(part.rows for part in parts)
            note(run, derivations, rows, seconds, self._watch)

    def _look(self) -> None:
        if self._meeting.is_stopped:
            raise Stopped
        self._watch.step()

    def _work(self, thread: int) -> None:
        scratch = self._scratch[thread]
        sinks: dict[int, Sink] = {}
        while (share := self._take(thread)) is not None:
            number, start, stop = share
            done = self._done[thread][number]
            began, derivations, rows = time.perf_counter(), scratch.derivations, scratch.rows
            run = self._runs[number]
            sink = sinks.get(number) or sinks.setdefault(number, self._sink(thread, run))
            run.body.variant.run(self._relations, start, stop, self._bounds, scratch, sink)
            done.derivations += scratch.derivations - derivations
            done.rows += scratch.rows - rows
            done.seconds += time.perf_counter() - began
        self._meeting.leave()

    def _sink(self, thread: int, run: Run) -> Sink:
        body, scratch, meeting = run.body, self._scratch[thread], self._meeting
        heads = [self._heads[member.clause.head] for member in body.members]

        def insert(block: Matrix, used: int) -> None:
            if meeting.is_stopped:
                raise Stopped
            with self._lock:
                self._watch.derived(used * len(heads))
            for head, facts in zip(heads, body.facts(block, used, scratch), strict=True):
                done = 0
                while True:
                    if meeting.is_wanted:
                        meeting.meet(thread)
                    done = head.insert(thread, facts, done, used)
                    if done == used:
                        break
                    meeting.ask_for_room(head)

        return insert
