"""How the sessions of a service are come by: to read an epoch, or to ask about it. All within a quota."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeAlias, TypeVar

from elastalog.diagnostics.quota import Quota, Stopped, time_left, within
from elastalog.session import Session
from elastalog.storage.errors import epoch_unknown
from elastalog.web import faults
from elastalog.web.earlier import Earlier
from elastalog.web.limits import Limits
from elastalog.web.sides import Sides
from elastalog.web.worker import Worker

T = TypeVar("T")
Moment: TypeAlias = int | datetime | None
"""An epoch by its number, or by a time at which it was in force; None: the last one."""


class Access:
    """A question whose time or memory is used up gets LimitReached, and its thread is free again."""

    def __init__(self, sides: Sides, worker: Worker, earlier: Earlier, limits: Limits) -> None:
        self.sides = sides
        self.worker = worker
        self._earlier = earlier
        self.limits = limits

    def question(self, seconds: float | None = None) -> Quota:
        """What a block that answers a question may take: so many seconds, if that is within the limits."""
        return within(self.time(seconds), self.limits.memory)

    @contextmanager
    def at(self, epoch: Moment = None) -> Iterator[Session]:
        """A block in which the session of an epoch is read: only read, and only briefly. Raises ElastalogError if the
        epoch is not kept."""
        with self.question():
            with self.sides.reading() as session:
                number = self._earlier_than(session, epoch)
                if number is None:
                    with session.engine.within():
                        yield session
                    return
            with self._earlier.at(number) as earlier, earlier.engine.within():
                yield earlier

    def ask(
        self,
        question: Callable[[Session], T],
        epoch: Moment = None,
        seconds: float | None = None,
        *,
        changes: bool = False,
    ) -> T:
        """Asks a session of an epoch. `changes`: the question changes facts, and changes them back. It may be asked a
        second time, if it was in the way of a commit."""
        with self.question(seconds):
            with self.sides.reading() as session:
                number = self._earlier_than(session, epoch)
            if number is not None:
                with self._earlier.at(number) as session, session.engine.within():
                    return question(session)
            if not (changes and self.sides.has_replicas):
                try:
                    with Quota() as own, self.sides.reading(own) as session, session.engine.within():
                        return question(session)
                except Stopped:
                    if not self.sides.has_replicas:
                        raise
            with self.sides.replica() as session, session.engine.within():
                return question(session)

    def _earlier_than(self, session: Session, epoch: Moment) -> int | None:
        """The number of an epoch, None if it is that of a session."""
        number = session.epoch if epoch is None else session.engine.epoch_at(epoch)
        if number < 1 and session.engine.store is not None:
            raise epoch_unknown(session.engine.store, number, session.log()[0].epoch, session.epoch)
        return None if number == session.epoch else number

    def time(self, seconds: float | None = None) -> float:
        """How long what is asked now may take, if it wants so many seconds. Raises LimitReached if the time of the
        question that it belongs to is over."""
        limit = self.limits.seconds
        left = time_left(limit if seconds is None else min(seconds, limit))
        if left <= 0:
            raise faults.too_slow(limit)
        return left
