"""Earlier epochs of a store, opened when they are asked for, a few at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import TIMEOUT_MAX

import elastalog
from elastalog.diagnostics.quota import lifted, time_left, within
from elastalog.session import Session
from elastalog.storage import errors


class Earlier:
    """Sessions by epoch; each is read by one thread at a time, and beside whatever else goes on. `most` are kept."""

    def __init__(self, store: Path | None, most: int) -> None:
        self._store = store
        self._most = most
        self._kept: OrderedDict[int, Session] = OrderedDict()
        self._opening = threading.Lock()

    @contextmanager
    def at(self, epoch: int) -> Iterator[Session]:
        """A block in which an earlier epoch is read. Raises ElastalogError if it is not kept."""
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
            # Beside the writer, with a dictionary of its own: whoever commits does not wait for it.
            left = time_left(TIMEOUT_MAX)
            with lifted(), within(left):  # it is kept for others: only its time is the question's
                session = elastalog.open(store=elastalog.Store(self._store, read_only=True, at=epoch))
            self._kept[epoch] = session
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)  # closed when nobody reads it any more
            return session

    def close(self) -> None:
        """Lets them all go."""
        with self._opening:
            self._kept.clear()
