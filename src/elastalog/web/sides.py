"""Two sessions of the same epoch: while one is worked on, the other is read.

The first has the store, if there is one. Before it commits, readers go to the second; when the epoch is in force they
come back, and the second follows. What changes facts for a moment (previews, trials of the debugger) is done on the
second, while the first is read. So no reader ever waits for any of that, and each sees a committed epoch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord
from elastalog.evaluation.pending import PendingUpdate
from elastalog.evaluation.update import Update
from elastalog.session import Session

log = logging.getLogger("elastalog.web")


class Sides:
    """Readers come in any thread; `commit`, `follow` and `working` are for one thread alone."""

    def __init__(self, first: Session, *, is_twofold: bool = True) -> None:
        """Not `is_twofold`: without a second, in half the memory; readers wait for whatever is done."""
        first.engine.warm()  # otherwise the first update would make the indexes
        self._first = first
        self._second = first.engine.twin() if is_twofold else None
        self._front = first
        self._gate = threading.Condition()
        self._readers: Counter[int] = Counter()
        self._behind: deque[tuple[Update, EpochRecord]] = deque()
        self._begun = first.epoch
        self._changed: dict[str | None, list[int]] = {}
        self._last: EpochRecord | None = None

    @property
    def epoch(self) -> int:
        """The last committed epoch."""
        return self._front.epoch

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A block in which the session of the last committed epoch is only read, and stays as it is."""
        with self._gate:
            session = self._front
            self._readers[id(session)] += 1
        try:
            with session.engine.exclusively():
                yield session
        finally:
            with self._gate:
                self._readers[id(session)] -= 1
                self._gate.notify_all()

    @property
    def readers(self) -> int:
        """How many read at this moment."""
        return self._readers.total()

    def version(self, session: Session, relation: str | None = None) -> int:
        """The epoch in which a relation last changed, as a session that is being read sees it; None: any relation. For
        an earlier epoch: that one."""
        if relation is None or session.epoch < self.epoch - 1:
            return session.epoch
        epochs = [*self._changed.get(relation, ()), *self._changed.get(None, ())]
        return max((epoch for epoch in epochs if epoch <= session.epoch), default=self._begun)

    def record_of(self, epoch: int) -> EpochRecord | None:
        """What is known of an epoch, if it was the last that was made."""
        last = self._last
        return last if last is not None and last.epoch == epoch else None

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed."""
        return self._first.engine.changes_of(record)

    # --- for the one thread that works -----------------------------------------------------------------------------

    def update(self, source: str | None, batch: str | None) -> PendingUpdate:
        """An update to fill, for `commit`."""
        return self._first.update(source, batch)

    def commit(
        self, update: PendingUpdate, committed: Callable[[EpochRecord], None] = lambda record: None
    ) -> EpochRecord:
        """Makes the next epoch. `committed` is called when readers see it."""
        self.follow()
        first = self._first
        before = first.epoch
        if self._second is not None:
            self._read_from(self._second)
        try:
            with first.engine.exclusively():
                wanted = update.as_update()
                with nullcontext() if wanted.rules is None else wanted.rules.text.placing():
                    record = first.engine.commit(wanted)
            if record.epoch > before:
                self._note(record)
                if self._second is not None:
                    self._behind.append((wanted, record))
        finally:
            self._front = first
        if record.epoch > before:
            committed(record)
        return record

    def _note(self, record: EpochRecord) -> None:
        """Remembers what an epoch changed, before anybody sees it."""
        self._last = record
        for name in (None,) if record.rules else record.changes:
            self._changed[name] = [*self._changed.get(name, ())[-1:], record.epoch]

    def follow(self) -> None:
        """Brings the second to the epoch of the first, if it is behind."""
        if not self._behind:
            return
        self._read_from(self._first)
        second = self._second
        while self._behind and second is not None:
            update, record = self._behind.popleft()
            try:
                if not second.engine.follow(update, record):
                    second = self._anew()
            except ElastalogError as error:
                log.warning("the readers' side could not follow epoch %d, and is made anew: %s", record.epoch, error)
                second = self._anew()

    def _anew(self) -> Session | None:
        """Another second, of the epoch of the first; none if there is no room for it."""
        self._behind.clear()
        self._second = None  # its memory first
        try:
            self._second = self._first.engine.twin()
        except ElastalogError as error:
            log.warning("there is no second side: readers wait for commits from now on: %s", error)
        return self._second

    def prepare(self) -> None:
        """Makes the indexes of the second, too, that updates need."""
        with self.working() as session:
            session.engine.warm()

    @contextmanager
    def working(self, seconds: float | None = None) -> Iterator[Session]:
        """A block in which a session of the last epoch may be changed and changed back, for as long as is said, while
        nobody reads it."""
        began = time.monotonic()
        self.follow()
        session = self._second or self._first
        self._read_from(self._first)
        with session.engine.within(None if seconds is None else seconds - (time.monotonic() - began)):
            yield session

    def _read_from(self, session: Session) -> None:
        """Readers that come are sent to one side; waits until those of the other have gone."""
        other = self._second if session is self._first else self._first
        with self._gate:
            self._front = session
            if other is not None:
                self._gate.wait_for(lambda: not self._readers[id(other)])

    def close(self) -> None:
        """Ends both sessions."""
        self._first.close()
        if self._second is not None:
            self._second.close()
