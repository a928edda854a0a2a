"""Threads that meet to make room go on together, and whoever waits for others ends when one fails."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew
from elastalog.backends.kernel.threads.meeting import Meeting
from elastalog.backends.kernel.threads.shared_head import SharedHead

SOON = 30
"""Seconds after which a test that waits has failed."""


def heads() -> list[SharedHead]:
    relation = KernelRelation("r", 1, is_annotated=False)
    return [SharedHead(relation, 3, 100)]


def met(meeting: Meeting, thread: int) -> None:
    meeting.ask_for_room(next(iter(meeting._heads)))
    meeting.meet(thread)


def test_threads_that_have_met_have_room() -> None:
    shared = heads()
    meeting = Meeting(shared, 3)
    before = shared[0].relation.room
    Crew(3).do(lambda thread: met(meeting, thread), meeting.abort)
    assert not meeting.is_wanted
    assert not shared[0].is_full
    assert shared[0].relation.room > before


def test_who_waits_for_others_ends_when_one_fails() -> None:
    meeting = Meeting(heads(), 3)
    stopped: list[int] = []

    def work(thread: int) -> None:
        if thread == 1:
            while meeting._come.n_waiting < 2:
                pass
            raise ValueError("one")
        try:
            met(meeting, thread)
        except threading.BrokenBarrierError:
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

    growing: Any = meeting._heads[0], Growing()  # type: ignore[index]
    meeting._come = threading.Barrier(2, lambda: meeting._growing.append(growing))
    with pytest.raises(ValueError, match="filling"):
        Crew(2).do(meeting.meet, meeting.abort)
    assert meeting._grown.broken
