"""Threads that insert into the same relations, and meet when one of them has no room.

They run by themselves until one of them finds no room in a relation. Then those that are not done meet: one makes room
for rows, all fill a wider set table if one is needed. Between meetings nothing is moved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from elastalog.backends.kernel.threads.crew import Stopped
from elastalog.backends.kernel.threads.growth import Growth
from elastalog.backends.kernel.threads.shared_head import SharedHead


class Meeting:
    """Of so many threads, each of which calls `leave` when it has nothing more to insert. `is_wanted`: whoever sees it
    comes (`meet`). `is_stopped`: one has failed, nothing is worth doing. `on_room` is told of relations that may have
    moved, by one thread while the others wait."""

    def __init__(
        self,
        heads: Collection[SharedHead],
        threads: int,
        on_room: Callable[[SharedHead], None] = lambda head: None,
    ) -> None:
        self.is_wanted = False
        self.is_stopped = False
        self._heads = heads
        self._threads = threads
        self._on_room = on_room
        self._changed = threading.Condition()
        self._running = threads
        self._arrived = 0
        self._held = 0
        self._growing: list[tuple[SharedHead, Growth]] = []
        self._grown = threading.Barrier(threads, self._finish_growth)

    def ask_for_room(self, head: SharedHead) -> None:
        """A thread has found none in a relation: it is to `meet` the others next."""
        head.is_full = self.is_wanted = True

    def meet(self, thread: int) -> None:
        """All threads come here that have not left; when they go on, there is room."""
        with self._changed:
            self._arrived += 1
            if self._arrived == self._running:
                self._make_room()
            else:
                held = self._held
                while held == self._held and not self.is_stopped:
                    self._changed.wait()
            if self.is_stopped:
                raise Stopped
        if self._growing:
            for _, growth in self._growing:
                growth.work(thread)
            self._grown.wait()

    def leave(self) -> None:
        """A thread is done: the others do not wait for it."""
        with self._changed:
            self._running -= 1
            if self._arrived and self._arrived == self._running:
                self._make_room()

    def close(self) -> None:
        """All threads are done: rows are made dense."""
        for head in self._heads:
            head.take_back()

    def _make_room(self) -> None:
        """Makes rows dense, and room for more."""
        self.is_wanted = False
        self._arrived = 0
        for head in self._heads:
            if not head.is_full:
                continue
            growth = head.make_room()
            if growth is not None and self._running == self._threads:
                self._growing.append((head, growth))
                continue
            if growth is not None:
                for thread in range(self._threads):
                    growth.work(thread)
                head.take_table(growth)
            self._on_room(head)
        self._held += 1
        self._changed.notify_all()

    def _finish_growth(self) -> None:
        for head, growth in self._growing:
            head.take_table(growth)
            self._on_room(head)
        self._growing.clear()

    def abort(self) -> None:
        """One has failed: those that wait wait no longer."""
        self.is_stopped = True
        self._grown.abort()
        with self._changed:
            self._changed.notify_all()
