"""How a round is shared out among threads: everything once, whatever the sizes; and whoever waits for others ends."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew, Stopped
from elastalog.backends.kernel.threads.meeting import Meeting
from elastalog.backends.kernel.threads.shared_head import SharedHead
from elastalog.backends.kernel.threads.shared_round import SharedRound
from elastalog.settings import SETTINGS

SOON = 30
"""Seconds after which a test that waits has failed."""


def a_run(first: int, rows: int, work_a_row: int) -> Any:
    member = SimpleNamespace(start_rows=1, rows=work_a_row, derivations=0, probes=())
    return SimpleNamespace(start=first, stop=first + rows, body=SimpleNamespace(members=[member]))


def shared_out(runs: list[Any], threads: int) -> SharedRound:
    """What threads are given of a round, without the round."""
    shared = SharedRound.__new__(SharedRound)
    shared._runs = runs
    shared._shares = [deque() for _ in range(threads)]
    shared._share_out()
    return shared


RUNS = {
    "one row": [(0, 1, 10**6)],
    "nothing": [(7, 0, 1)],
    "fewer rows than threads": [(5, 3, 10**6)],
    "a row more than blocks": [(1, (1 << 16) + 1, 3)],
    "odd sizes": [(0, 9_973, 7), (13, 101, 5_000), (3, 1, 1), (11, 65_537, 1)],
    "light ones beside a heavy one": [*((0, rows, 0) for rows in range(1, 40)), (2, 100_003, 50)],
}


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("sizes", RUNS.values(), ids=RUNS.keys())
def test_shares_cover_every_start_row_once(sizes: list[tuple[int, int, int]], threads: int) -> None:
    runs = [a_run(*size) for size in sizes]
    shared = shared_out(runs, threads)
    taken: list[list[tuple[int, int]]] = [[] for _ in runs]
    turn = 0
    # The first thread is the quickest: it takes from the others in the end.
    while (share := shared._take(turn % threads if turn % 3 else 0)) is not None:
        number, start, stop = share
        taken[number].append((start, stop))
        turn += 1
    for run, shares in zip(runs, taken, strict=True):
        assert [row for start, stop in sorted(shares) for row in range(start, stop)] == [*range(run.start, run.stop)]


def test_a_heavy_run_is_shared_by_all_and_small_ones_are_not_divided() -> None:
    shared = shared_out([a_run(0, 100_003, 50), a_run(0, 9, 0)], 3)
    heavy, light = ([[share for share in own if share[0] == run] for own in shared._shares] for run in (0, 1))
    assert all(heavy)
    assert SETTINGS.light_work > 9
    assert light == [[(1, 0, 9)], [], []]
    for own in heavy:
        sizes = [stop - start for _, start, stop in own]
        assert sizes[-1] <= sizes[0]  # the last are small, so that nobody waits long


def heads() -> list[SharedHead]:
    relation = KernelRelation("r", 1, is_annotated=False)
    return [SharedHead(relation, 0, 3, 100)]


def met(meeting: Meeting, thread: int) -> None:
    meeting.ask_for_room(next(iter(meeting._heads)))
    meeting.meet(thread)


def test_who_waits_for_others_goes_on_when_they_leave() -> None:
    meeting = Meeting(heads(), 3)

    def work(thread: int) -> None:
        if thread == 0:
            met(meeting, thread)
        meeting.leave()

    Crew(3).do(work, meeting.abort)
    assert not meeting.is_wanted


def test_who_waits_for_others_ends_when_one_fails() -> None:
    meeting = Meeting(heads(), 3)
    stopped: list[int] = []

    def work(thread: int) -> None:
        if thread == 1:
            while meeting._arrived < 2:
                pass
            raise ValueError("one")
        try:
            met(meeting, thread)
        except Stopped:
            stopped.append(thread)
            raise

    with pytest.raises(ValueError, match="one"):
        Crew(3).do(work, meeting.abort)
    assert sorted(stopped) == [0, 2]


def test_who_waits_for_a_table_ends_when_one_fails_in_filling_it() -> None:
    meeting = Meeting(heads(), 2)
    waiting = threading.Event()

    class Growing:
        def work(self, thread: int) -> None:
            if thread == 1:
                waiting.wait(SOON)
                while not meeting._grown.n_waiting:
                    pass
                raise ValueError("filling")
            waiting.set()

    meeting._make_room = lambda: _begin_growth(meeting, Growing())  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="filling"):
        Crew(2).do(meeting.meet, meeting.abort)
    assert meeting._grown.broken


def _begin_growth(meeting: Meeting, growing: Any) -> None:
    meeting._growing.append((next(iter(meeting._heads)), growing))
    meeting._arrived = 0
    meeting._held += 1
    meeting._changed.notify_all()
