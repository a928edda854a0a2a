"""Work in threads, ahead of the use of its results: while one part of the facts is encoded, or the program is planned,
the parts behind it are read and parsed; files are written side by side.

Parts are used in their order whatever the number of threads, so that ids do not depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Generic, NamedTuple, TypeVar

from elastalog.diagnostics.diagnostic import Diagnostic, collecting_warnings, warn_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BYTES_AHEAD = 32 << 20
"""What is made, or being made, and not used yet may be this much, however many parts that is."""


class Part(NamedTuple, Generic[T_co]):
    """A function that makes a part, and how many bytes the part may have; None if that is unknown."""

    make: Callable[[], T_co]
    size: int | None = None


class Ahead(Generic[T]):
    """Parts, in order. Threads make them, one fewer than are allowed; a consumer whose next part is not there helps
    instead of waiting. What is made and not used yet is no more than `threads` parts, or few bytes. What making a part
    raises or warns of is raised or told to the consumer when it is the part's turn. Limits are those of the creator
    (see `allowance`), which must close this; `name` says what the threads do."""

    def __init__(self, parts: Iterable[Part[T]], threads: int, name: str) -> None:
        self._coming = iter(parts)
        self._next: Part[T] | None = next(self._coming, None)
        self._begun: deque[_Turn[T]] = deque()
        self._bytes_begun = 0
        self._most = threads
        self._waiting: SimpleQueue[_Turn[T] | None] = SimpleQueue()
        context = copy_context()
        self._threads = [
            Thread(target=context.copy().run, args=(self._work,), name=f"elastalog {name} {number}", daemon=True)
            for number in range(max(threads - 1, 1))
        ]

    def start(self) -> None:
        """Starts the threads. The caller must see to it that `close` is called, whatever happens."""
        self._begin()
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._begun:
            raise StopIteration
        first = self._begun[0]
        while not first.is_done.is_set():
            if not any(turn.is_done_here() for turn in self._begun):
                first.is_done.wait()
        self._begun.popleft()
        self._bytes_begun -= first.size
        self._begin()
        return first.result()

    def close(self) -> None:
        """Begins nothing more, and waits for the parts that are being made."""
        self._next = None
        for turn in self._begun:
            turn.free.acquire(blocking=False)
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            if thread.is_alive():  # one that Ctrl-C has kept from its first step finds nothing to do
                thread.join()

    def _begin(self) -> None:
        """Hands the threads as many parts as there is room for."""
        while (part := self._next) is not None:
            size = BYTES_AHEAD if part.size is None else part.size
            if len(self._begun) >= self._most and self._bytes_begun + size > BYTES_AHEAD:
                return
            turn = _Turn(part.make, size)
            self._begun.append(turn)
            self._bytes_begun += size
            self._waiting.put(turn)
            self._next = next(self._coming, None)

    def _work(self) -> None:
        while (turn := self._waiting.get()) is not None:
            turn.is_done_here()


class _Turn(Generic[T]):
    """A part. Its `free` lock is held by the thread, or the consumer, that makes it."""

    def __init__(self, make: Callable[[], T], size: int) -> None:
        self._make = make
        self.size = size
        self.free = Lock()
        self.is_done = Event()
        self._made: list[T] = []
        self._found: list[Diagnostic] = []
        self._fault: Exception | None = None

    def is_done_here(self) -> bool:
        """Makes the part, unless another does."""
        if not self.free.acquire(blocking=False):
            return False
        with collecting_warnings() as self._found:
            try:
                self._made.append(self._make())
            except Exception as fault:
                self._fault = fault
        self.is_done.set()
        return True

    def result(self) -> T:
        for found in self._found:
            warn_of(found)
        if self._fault is not None:
            raise self._fault
        return self._made.pop()
