"""How the sessions of a service are come by: to read an epoch, or to try something out on it. All within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeAlias, TypeVar

from elastalog.diagnostics.deadline import time_left
from elastalog.session import Session
from elastalog.storage.faults import epoch_unknown
from elastalog.web import faults
from elastalog.web.earlier import Earlier
from elastalog.web.limits import Limits
from elastalog.web.sides import Sides
from elastalog.web.worker import Worker

T = TypeVar("T")
Moment: TypeAlias = int | datetime | None
"""An epoch by its number, or by a time at which it was in force; None: the last one."""


class Access:
    """Whoever is still at work when its time is over gets LimitReached, and its thread is free again."""

    def __init__(self, sides: Sides, worker: Worker, earlier: Earlier, limits: Limits) -> None:
        self.sides = sides
        self.worker = worker
        self._earlier = earlier
        self.limits = limits

    @contextmanager
    def at(self, epoch: Moment = None, seconds: float | None = None) -> Iterator[Session]:
        """A block in which the session of an epoch is read: only read, and only briefly. Raises ElastalogError if the
        epoch is not kept."""
        end = time.monotonic() + self.time(seconds)
        with self.sides.reading() as session:
            number = session.epoch if epoch is None else session.engine.epoch_at(epoch)
            if number == session.epoch:
                with session.engine.within(end - time.monotonic()):
                    yield session
                return
            if number < 1 and session.engine.store is not None:
                raise epoch_unknown(session.engine.store, number, session.log()[0].epoch, session.epoch)
        with self._earlier.at(number) as earlier, earlier.engine.within(end - time.monotonic()):
            yield earlier

    def work(self, question: Callable[[Session, float], T], seconds: float | None, epoch: Moment = None) -> T:
        """Asks what changes facts for a moment, and changes them back. The question is told how long it may take. About
        the last epoch, in the one thread that works; about an earlier one, here."""
        allowed = self.time(seconds)
        with self.sides.reading() as session:
            is_present = epoch is None or session.engine.epoch_at(epoch) == session.epoch
        if not is_present:
            with self.at(epoch, allowed) as earlier:
                return question(earlier, self.time(allowed))

        def work(left: float | None) -> T:
            with self.sides.working(left) as session:
                return question(session, allowed if left is None else left)

        return self.worker.do(work, allowed)

    def time(self, seconds: float | None) -> float:
        """How long what is asked now may take, if it wants so many seconds. Raises LimitReached if the time of the
        question that it belongs to is over."""
        limit = self.limits.seconds
        left = time_left(limit if seconds is None else min(seconds, limit))
        if left <= 0:
            raise faults.too_slow(limit)
        return left
