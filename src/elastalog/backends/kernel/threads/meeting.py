"""Threads that insert into the same relations, and meet when one of them has no room.

They run by themselves until one of them finds no room in a relation. Then all meet: one makes room for rows, all fill a
wider set table if one is needed. Between meetings nothing is moved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from elastalog.backends.kernel.threads.growth import Growth
from elastalog.backends.kernel.threads.shared_head import SharedHead


class Meeting:
    """Of so many threads. `is_wanted`: whoever sees it comes (`meet`). `is_stopped`: one has failed, nothing is worth
    doing. `on_room` is told of relations that may have moved, by one thread while the others wait."""

    def __init__(
        self,
        heads: Collection[SharedHead],
        threads: int,
        on_room: Callable[[SharedHead], None] = lambda head: None,
    ) -> None:
        self.is_wanted = False
        self.is_stopped = False
        self._heads = heads
        self._on_room = on_room
        self._growing: list[tuple[SharedHead, Growth]] = []
        self._come = threading.Barrier(threads, self._make_room)
        self._grown = threading.Barrier(threads, self._finish_growth)

    def ask_for_room(self, head: SharedHead) -> None:
        """A thread has found none in a relation: it is to `meet` the others next."""
        head.is_full = self.is_wanted = True

    def meet(self, thread: int) -> None:
        """All threads come here; when they go on, there is room. Raises BrokenBarrierError if one has failed."""
        self._come.wait()
        if self._growing:
            for _, growth in self._growing:
                growth.work(thread)
            self._grown.wait()

    def _make_room(self) -> None:
        """Makes rows dense, and room for more."""
        self.is_wanted = False
        for head in self._heads:
            if head.is_full:
                growth = head.make_room()
                if growth is None:
                    self._on_room(head)
                else:
                    self._growing.append((head, growth))

    def _finish_growth(self) -> None:
        for head, growth in self._growing:
            head.take_table(growth)
            self._on_room(head)
        self._growing.clear()

    def abort(self) -> None:
        """One has failed: those that wait wait no longer."""
        self.is_stopped = True
        self._come.abort()
        self._grown.abort()
