"""Work in threads, ahead of the use of its results: while one part of the facts is encoded, or the program is planned,
the parts behind it are read and parsed; files are written side by side.

Parts are used in their order whatever the number of threads, so that ids do not depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from threading import Condition, Thread
from typing import Generic, NamedTuple, TypeVar

from elastalog.diagnostics.diagnostic import Diagnostic, collecting_warnings, warn_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BYTES_AHEAD = 32 << 20
"""What is made, or being made, and not used yet may be this much, however many parts that is."""


class Part(NamedTuple, Generic[T_co]):
    """What makes a part, and how many bytes that may be; None: unknown."""

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
        self._changed = Condition()
        context = copy_context()
        self._threads = [
            Thread(target=context.copy().run, args=(self._work,), name=f"elastalog {name} {number}", daemon=True)
            for number in range(max(threads - 1, 1))
        ]

    def start(self) -> None:
        """Starts the threads. The caller must see to it that `close` is called, whatever happens."""
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            with self._changed:
                if self._begun and self._begun[0].is_done:
                    turn = self._begun.popleft()
                    self._bytes_begun -= turn.size
                    self._changed.notify_all()
                    return turn.result()
                turn_here = self._begin()
                if turn_here is None:
                    if not self._begun:
                        raise StopIteration
                    self._changed.wait()
                    continue
            self._do(turn_here)

    def close(self) -> None:
        """Nothing more is begun; what is being made comes to its end."""
        with self._changed:
            self._next, self._coming = None, iter(())
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():  # one that Ctrl-C has kept from its first step finds nothing to do
                thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (turn := self._begin()) is None and self._next is not None:
                    self._changed.wait()
            if turn is None:
                return
            self._do(turn)

    def _begin(self) -> _Turn[T] | None:
        """The next part, which the caller makes; None if there is none, or no room for it. Under the lock."""
        part = self._next
        if part is None:
            return None
        size = BYTES_AHEAD if part.size is None else part.size
        if len(self._begun) >= self._most and self._bytes_begun + size > BYTES_AHEAD:
            return None
        self._next = next(self._coming, None)
        turn = _Turn(part, size)
        self._begun.append(turn)
        self._bytes_begun += size
        return turn

    def _do(self, turn: _Turn[T]) -> None:
        turn.do()
        with self._changed:
            turn.is_done = True
            self._changed.notify_all()


class _Turn(Generic[T]):
    """A part that a thread has begun to make."""

    __slots__ = ("_fault", "_found", "_made", "_make", "is_done", "size")

    def __init__(self, part: Part[T], size: int) -> None:
        self._make = part.make
        self.size = size
        self.is_done = False
        self._made: list[T] = []
        self._found: list[Diagnostic] = []
        self._fault: Exception | None = None

    def do(self) -> None:
        with collecting_warnings() as self._found:
            try:
                self._made.append(self._make())
            except Exception as fault:
                self._fault = fault

    def result(self) -> T:
        for found in self._found:
            warn_of(found)
        if self._fault is not None:
            raise self._fault
        return self._made.pop()
