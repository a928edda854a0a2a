"""A session that many clients ask and one thread updates.

The HTTP interface and the pages know nothing else of the engine: `reading` answers questions and `writing` commits.
Their methods block and may be called from any thread; an event loop calls them with `await
service.call(service.reading.page, "path")`, which enforces the limits. Readers see the last committed epoch; they never
wait for a commit, nor a commit for questions (see `replicas`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from elastalog.evaluation.epochs import EpochRecord
from elastalog.session import Session
from elastalog.storage.lock import tell_address
from elastalog.storage.manifest import LOCK
from elastalog.web.calls import Asked, Calls, T, Worker
from elastalog.web.feed import Event, Feed
from elastalog.web.metrics import Metrics
from elastalog.web.reading import Reading
from elastalog.web.replicas import Earlier, Replicas
from elastalog.web.settings import Limits
from elastalog.web.writing import Writing

PATIENCE = 5
"""Seconds that the commit under way has when the service is told to end."""


class Service:
    """Owns a session from now on; it must not be updated in any other way."""

    def __init__(self, session: Session, limits: Limits | None = None, *, is_twofold: bool = True) -> None:
        """`is_twofold`: keep a second session for readers. Without it, half the memory; readers wait for commits."""
        self.limits = limits or Limits()
        self.metrics_kept = Metrics()
        session.engine.observe(self.metrics_kept)
        self._replicas = Replicas(session, is_twofold=is_twofold, replicas=self.limits.replicas)
        self._worker = Worker(self.limits.waiting)
        self._calls = Calls(self.limits)
        self._earlier = Earlier(session.engine.store, self.limits.earlier)
        self.reading = Reading(self._replicas, self._worker, self._earlier, self.limits)
        self.writing = Writing(self.reading, self._committed)
        self.feed = Feed(session.epoch, self.reading.changes_since)
        self.began = time.time()
        self._store = session.engine.store
        self._ending: threading.Timer | None = None
        self._worker.afterwards(self._replicas.prepare)

    def tell_address(self, address: str) -> None:
        """Records where the store is served, for others who try to open it."""
        if self._store is not None:
            tell_address(self._store / LOCK, address)

    def end(self) -> None:
        """Called from any thread: ends all event streams, which would keep their connections, and gives up the commit
        under way if it is not done in a few seconds, or at once when called again: who sent it is told so, and the
        epoch before it stays."""
        self.feed.close()
        if self._ending is None:
            self._ending = threading.Timer(PATIENCE, self._worker.stop)
            self._ending.daemon = True
            self._ending.start()
        else:
            self._worker.stop()

    def close(self) -> None:
        """Closes the session once the commit under way is done, and ends all event streams."""
        self.feed.close()
        with self._replicas.wanting():
            self._worker.close()
        if self._ending is not None:
            self._ending.cancel()
        self._calls.close()
        self._earlier.close()
        self._replicas.close()

    @property
    def epoch(self) -> int:
        """The last committed epoch."""
        return self._replicas.epoch

    async def call(self, function: Callable[Asked, T], *asked: Asked.args, **options: Asked.kwargs) -> T:
        """Calls a method in another thread, within the limits: raises LimitReached when too many calls wait, or when it
        takes too long."""
        return await self._calls.call(function, *asked, **options)

    def metrics(self) -> str:
        """The metrics in the text format of Prometheus. To be run by `call`; does not count itself."""
        with self.reading.at() as session:
            facts = {name: float(len(session[name])) for name in session}
            epoch = session.epoch
        return self.metrics_kept.text(
            {
                "elastalog_epoch": epoch,
                "elastalog_facts": facts,
                "elastalog_readers": self._replicas.readers,
                "elastalog_questions_waiting": self._calls.waiting - 1,
                "elastalog_writer_waiting": self._worker.waiting,
                "elastalog_listeners": self.feed.listeners,
                "elastalog_uptime_seconds": time.time() - self.began,
            }
        )

    def _committed(self, record: EpochRecord) -> None:
        self.feed.publish(
            Event(
                record.epoch - 1, record.epoch, self._replicas.changes_of(record), record.rules, record.time,
                record.source, record.batch,
            )
        )  # fmt: skip
