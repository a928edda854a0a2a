"""The change feed: every listener gets every change exactly once.

An event holds the changes from one epoch to a later one. A listener asks for what follows the epoch it knows and gets
the next event if that is still kept, otherwise one event with all changes since.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from elastalog.evaluation.changes import NO_RULES, Changes, RuleTexts
from elastalog.web.settings import Busy

MOST_FACTS, MOST_EVENTS, MOST_SUMS = 200_000, 10_000, 4
"""How many changed facts, events, and combined events are kept."""

AT_ONCE = 64
"""Events that a listener who is behind gets at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """What the epochs after `since` up to `epoch` changed together. `time`, `source`, `batch`: of the last of them."""

    since: int
    epoch: int
    changes: Changes
    rules: RuleTexts = NO_RULES
    time: float | None = None
    source: str | None = None
    batch: str | int | None = None


class Feed:
    """The latest events, and the listeners waiting for the next. `since` combines all changes after an epoch."""

    def __init__(self, epoch: int, since: Callable[[int], Event]) -> None:
        self._epoch = epoch
        self._since = since
        self._events: dict[int, Event] = {}
        self._sums: dict[int, Event] = {}
        self._summing = threading.Lock()
        self._facts = 0
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._is_closed = False
        self.listeners = 0

    def publish(self, event: Event) -> None:
        """Delivers an event to all listeners; may be called from any thread."""
        with self._lock:
            self._events[event.since] = event
            self._facts += event.changes.impact
            while len(self._events) > 1 and (self._facts > MOST_FACTS or len(self._events) > MOST_EVENTS):
                self._facts -= self._events.pop(next(iter(self._events))).changes.impact
            self._epoch = event.epoch
            self._wake()

    def close(self) -> None:
        """Ends the feed: waiting listeners get None."""
        with self._lock:
            self._is_closed = True
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    async def after(self, epoch: int, seconds: float | None = None) -> Event | None:
        """The next event after an epoch, waiting for it if necessary; None after `seconds` without one, or once the
        feed is closed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_closed:
                return None
            future: asyncio.Future[None] | None = None
            if epoch == self._epoch:
                future = loop.create_future()
                self._waiting.append((loop, future))
        if future is not None:
            try:
                await asyncio.wait_for(future, seconds)
            except TimeoutError:
                return None
            finally:
                with self._lock:
                    self._waiting = [one for one in self._waiting if one[1] is not future]
        with self._lock:
            found = self._events.get(epoch)
        if self.is_closed:
            return None
        return found if found is not None else await asyncio.to_thread(self.since, epoch)

    def since(self, epoch: int) -> Event:
        """All changes after an epoch as one event, up to the last epoch or to one whose next event is still kept.
        Computed once for all listeners. Raises ElastalogError if the epoch is not kept."""
        with self._summing:
            known = self._sums.get(epoch)
            if known is not None and (known.epoch == self._epoch or known.epoch in self._events):
                return known
            self._sums.pop(epoch, None)
            while len(self._sums) >= MOST_SUMS:
                self._sums.pop(next(iter(self._sums)))
            found = self._sums[epoch] = self._since(epoch)
            return found

    async def listen(self, epoch: int, seconds: float | None, most: int) -> AsyncIterator[list[Event]]:
        """Every event from an epoch on, without gaps: the `since` of an event is the `epoch` of the one before. Events
        already there are yielded together; after `seconds` without any, an empty list. Ends when the feed is closed."""
        if self.listeners >= most:
            raise Busy.of("E0922.too_many_listeners", number=self.listeners)
        self.listeners += 1
        try:
            while not self._is_closed:
                event = await self.after(epoch, seconds)
                events: list[Event] = []
                while event is not None and len(events) < AT_ONCE:
                    events.append(event)
                    epoch = event.epoch
                    event = self._events.get(epoch)
                if events or not self._is_closed:
                    yield events
        finally:
            self.listeners -= 1


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
