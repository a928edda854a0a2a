"""Several sessions of the same program, so that readers and commits do not wait for each other.

The *first* session has the store, if there is one, and commits. Readers use the *second*; once an epoch is committed
they move to the first while the second catches up, and then return. So no commit waits for readers of the second, and
no reader waits for a commit. Questions that change facts and revert them (previews, trials of the debugger) run on
*replicas*, one question at a time each; replicas are made and brought up to date when needed.

A question that blocks a commit, on the first session or on a second that has to catch up, is stopped and started again
on a replica. A commit waits for questions 100 ms at most, in all: if one on the second session does not stop, readers
wait for that commit instead.

Earlier epochs are opened from the store on demand, a few at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import TIMEOUT_MAX

from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.interrupts import switching_sooner
from elastalog.diagnostics.quota import Quota, lifted, time_left, within
from elastalog.evaluation.changes import Changes, Update
from elastalog.evaluation.epochs import EpochRecord
from elastalog.session import Session
from elastalog.session import open as open_session
from elastalog.session.pending import PendingUpdate
from elastalog.session.settings import Store
from elastalog.storage import errors

log = logging.getLogger("elastalog.web")

PATIENCE, SECOND, FIRST = 0.01, 0.05, 0.1
"""Seconds since a commit was requested, or the one before it ended, until: questions that block it are stopped; it goes
ahead without the second session; it no longer waits for readers of the first."""

MOST_PENDING = 1_000
"""How many epochs a replica may be behind; then it is dropped, and made again when needed."""

Pending = deque[tuple[Update, EpochRecord]]


class Replica:
    """A session for one question at a time, and the epochs that it has yet to follow."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.pending: Pending | None = None

    def drop(self) -> None:
        """Releases its memory."""
        self.session = self.pending = None


class Replicas:
    """Readers and questions may come from any thread; `commit` and `follow` belong to the committing thread."""

    def __init__(self, first: Session, *, is_twofold: bool = True, replicas: int = 1) -> None:
        """Not `is_twofold`: the first session alone, with less memory; readers wait for commits, and questions that
        block a commit are refused."""
        first.engine.warm()  # otherwise the first update would make the indexes
        self._first = first
        self.rule_costs = first.statistics().rules
        """The costs of the first bootstrap: a second session, restored from it, has evaluated nothing yet."""
        self._second = first.engine.twin() if is_twofold else None
        self._front = self._second or first
        self._gate = threading.Condition()
        self._readers: dict[Session, list[Quota | None]] = {first: []}
        self._behind: Pending = deque()
        self._free = [Replica() for _ in range(replicas if is_twofold else 0)]
        self._spare = tuple(self._free)
        self._wanted = 0
        self._since = 0.0
        self._begun = first.epoch
        self._changed: dict[str | None, list[int]] = {}
        self._last: EpochRecord | None = None

    @property
    def epoch(self) -> int:
        """The last committed epoch."""
        return self._front.epoch

    @contextmanager
    def reading(self, stoppable: Quota | None = None, wait: float = SECOND) -> Iterator[Session]:
        """A block that reads the session of the last committed epoch, which does not change meanwhile. It must be brief
        unless its quota is `stoppable`: then it reads the second session, if that catches up within `wait` seconds,
        because the next commit has to wait for readers of the first."""
        with self._gate:
            if stoppable is not None:
                self._gate.wait_for(lambda: self._second is None or self._front is self._second, wait)
                stoppable.look()
            session = self._front
            self._readers.setdefault(session, []).append(stoppable)
        try:
            with session.engine.exclusively():
                yield session
        finally:
            with self._gate:
                self._readers[session].remove(stoppable)
                if stoppable is not None:
                    stoppable.stop(False)  # what it goes on to do holds up no commit
                self._gate.notify_all()

    @property
    def readers(self) -> int:
        """The present number of readers."""
        return sum(map(len, tuple(self._readers.values())))

    @property
    def has_replicas(self) -> bool:
        """Whether there are sessions for questions alone."""
        return bool(self._spare)

    @contextmanager
    def replica(self) -> Iterator[Session]:
        """A block that may change facts of a session of the last epoch, if it reverts them, without blocking anyone."""
        with self._gate:
            if not self._gate.wait_for(lambda: self._free, quota.time_left(threading.TIMEOUT_MAX)):
                quota.look()  # the time is over
            taken = self._free.pop()
        try:
            yield self._up_to_date(taken)
        finally:
            with self._gate:
                if taken.session is None or (taken.pending is not None and len(taken.pending) > MOST_PENDING):
                    taken.drop()
                self._free.append(taken)
                self._gate.notify_all()

    def _up_to_date(self, replica: Replica) -> Session:
        """The session of a replica, at the last epoch. Catching up counts against the time of the question, not its
        memory."""
        asked = quota.CURRENT.get()
        assert asked is not None, "a replica answers a question"
        with quota.lifted():
            if replica.session is not None and replica.pending is not None:
                if _follow(replica.session, replica.pending, asked):
                    return replica.session
                replica.drop()  # its memory first
            with self.reading(asked, wait=(asked.end - time.monotonic()) / 2) as front:
                with self._gate:
                    replica.pending = deque(one for one in tuple(self._behind) if one[1].epoch > front.epoch)
                replica.session = front.engine.twin()
            return replica.session

    def version(self, session: Session, relation: str | None = None) -> int:
        """The epoch in which a relation (None: any) last changed, as seen by a session that is being read; an earlier
        epoch is its own version."""
        if relation is None or session.epoch < self.epoch - 1:
            return session.epoch
        epochs = [*self._changed.get(relation, ()), *self._changed.get(None, ())]
        return max((epoch for epoch in epochs if epoch <= session.epoch), default=self._begun)

    def record_of(self, epoch: int) -> EpochRecord | None:
        """The record of an epoch, if it is the last one made."""
        last = self._last
        return last if last is not None and last.epoch == epoch else None

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed."""
        return self._first.engine.changes_of(record)

    @contextmanager
    def wanting(self) -> Iterator[None]:
        """A block in which a commit waits for its turn: questions that block it are stopped, and threads switch more
        often."""
        with self._gate:
            self._wanted += 1
            if self._wanted == 1:
                self._since = time.monotonic()
            self._gate.notify_all()
        try:
            with switching_sooner():
                yield
        finally:
            with self._gate:
                self._wanted -= 1
                self._since = time.monotonic()

    # --- for the one thread that works -----------------------------------------------------------------------------

    @property
    def first(self) -> Session:
        """The session that is updated; its updates are committed by `commit`."""
        return self._first

    def commit(self, update: PendingUpdate, committed: Callable[[EpochRecord], None] = lambda record: None) -> None:
        """Commits an update as the next epoch. `committed` is called once readers see it."""
        self.follow()
        first = self._first
        before = first.epoch
        if self._second is not None and not self._behind:
            self._show(self._second)
        self._drain(first, FIRST)
        try:
            with first.engine.exclusively():
                update.commit_by(self._commit)
        finally:
            if self._behind:
                self._show(first)
        if update.stats.epoch > before:
            committed(update.stats)

    def _commit(self, update: Update, committed: Callable[[EpochRecord], None]) -> None:
        before = self._first.epoch

        def noted(record: EpochRecord) -> None:
            committed(record)
            if record.epoch > before:
                self._note(record, update)

        self._first.engine.commit(update, noted)

    def _note(self, record: EpochRecord, update: Update) -> None:
        """Notes what an epoch changed, before readers see it."""
        self._last = record
        for name in (None,) if record.rules else record.changes:
            self._changed[name] = [*self._changed.get(name, ())[-1:], record.epoch]
        with self._gate:
            if self._second is not None:
                self._behind.append((update, record))
            for replica in self._spare:
                if replica.pending is not None:
                    replica.pending.append((update, record))
                    if replica in self._free and len(replica.pending) > MOST_PENDING:
                        replica.drop()

    def follow(self) -> None:
        """Brings the second session to the epoch of the first, unless a question blocks it too long."""
        second = self._second
        if not self._behind or second is None:
            return
        self._show(self._first)
        if not self._drain(second, SECOND):
            return
        if not _follow(second, self._behind):
            self._second = None  # its memory first
            with self._gate:
                del self._readers[second]
            self._behind.clear()
            try:
                self._second = second = self._first.engine.twin()
            except ElastalogError as error:
                log.warning("there is no second replica: readers wait for commits from now on: %s", error)
                self._show(self._first)
                return
        self._show(second)

    def prepare(self) -> None:
        """Builds the indexes that updates need on the second session, too."""
        if self._second is not None:
            self._show(self._first)
            if self._drain(self._second, SECOND):
                self._second.engine.warm()
            self._show(self._second)

    def _show(self, session: Session) -> None:
        """Directs readers to a session."""
        with self._gate:
            self._front = session
            self._gate.notify_all()

    def _drain(self, session: Session, most: float) -> bool:
        """Waits until a session has no readers, as long as no commit is requested; from then on questions are stopped,
        and it waits for at most `most` seconds. Returns whether no reader is left."""
        reading = self._readers.setdefault(session, [])
        with self._gate:
            self._gate.wait_for(lambda: not reading or self._wanted)
            if not self._gate.wait_for(lambda: not reading, self._left(PATIENCE)):
                for stoppable in reading:
                    if stoppable is not None:
                        stoppable.stop()
                self._gate.wait_for(lambda: not reading, self._left(most))
            return not reading

    def _left(self, seconds: float) -> float:
        return max(self._since + seconds - time.monotonic(), 0.0)

    def close(self) -> None:
        """Ends all sessions."""
        self._first.close()
        if self._second is not None:
            self._second.close()


def _follow(session: Session, pending: Pending, asked: Quota | None = None) -> bool:
    """Replays pending updates, within the time of a question. Returns whether the results were the same, which numbers
    of `autoinc` may prevent."""
    while pending:
        if asked is not None:
            asked.look()
        update, record = pending[0]
        try:
            if not session.engine.follow(update, record):
                return False
        except ElastalogError as error:
            log.warning("a session could not follow epoch %d, and is opened again: %s", record.epoch, error)
            return False
        pending.popleft()
    return True


class Earlier:
    """Sessions of earlier epochs, the last `most` that were used. Each is read by one thread at a time, and blocks
    nothing else."""

    def __init__(self, store: Path | None, most: int) -> None:
        self._store = store
        self._most = most
        self._kept: OrderedDict[int, Session] = OrderedDict()
        self._opening = threading.Lock()

    @contextmanager
    def at(self, epoch: int) -> Iterator[Session]:
        """A block that reads an earlier epoch. Raises ElastalogError if it is not kept."""
        session = self._open(epoch)
        with session.engine.exclusively():
            yield session

    def _open(self, epoch: int) -> Session:
        with self._opening:
            known = self._kept.get(epoch)
            if known is not None:
                self._kept.move_to_end(epoch)
                return known
            if self._store is None:
                raise errors.no_history()
            # Beside the writer, with a dictionary of its own: commits do not wait for it.
            left = time_left(TIMEOUT_MAX)
            with lifted(), within(left):  # it is kept for others: only its time is the question's
                session = open_session(store=Store(self._store, read_only=True, at=epoch))
            self._kept[epoch] = session
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)  # closed when its last reader is done
            return session

    def close(self) -> None:
        """Releases all of them."""
        with self._opening:
            self._kept.clear()
