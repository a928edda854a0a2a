"""Threads that work at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from operator import itemgetter
from typing import TypeAlias

from elastalog.settings import SETTINGS

_PATIENCE = 0.02
"""Seconds after which a thread that has nothing to do ends: to start one takes a fiftieth of that, and who leaves the
interpreter waits for it."""


Task: TypeAlias = tuple[int, Callable[[], object]]
"""Something to be done, and the number of rows that it looks at."""


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted."""


class Crew:
    """A pool of `number` threads, the caller's among them, that do one piece of work after another. The others live
    while there is work, and a moment longer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._busy = threading.Lock()
        self._helpers: list[_Helper] = []

    @property
    def is_free(self) -> bool:
        """Whether it is not at work."""
        return not self._busy.locked()

    def do_parts(self, work: Callable[[int], None]) -> None:
        """Calls work(0), work(1), …, each in a thread of its own; in this one where others are at work."""
        if self.number > 1 and self._busy.acquire(blocking=False):
            try:
                self._do(work, lambda: None)
            finally:
                self._busy.release()
        else:
            for part in range(self.number):
                work(part)

    def do_ranges(self, size: int, work: Callable[[int, int, int], None]) -> None:
        """Calls work(part, start, stop) for even ranges of `size` rows, each in a thread of its own; for one range of
        all if they are few."""
        number = self.number
        if number == 1 or size < SETTINGS.divide_table_from:
            work(0, 0, size)
        else:
            self.do_parts(lambda part: work(part, size * part // number, size * (part + 1) // number))

    def do_all(self, tasks: list[Task]) -> None:
        """Does what is to be done, several at a time, the largest first, and takes it off the list."""
        tasks.sort(key=itemgetter(0))
        is_much = len(tasks) > 1 and sum([rows for rows, _ in tasks]) >= SETTINGS.share_loading_from
        if self.number == 1 or not is_much:
            while tasks:
                tasks.pop()[1]()
            return

        def work(thread: int) -> None:
            while tasks:
                try:
                    _, task = tasks.pop()
                except IndexError:  # another thread was faster
                    return
                task()

        self.do(work, tasks.clear)

    def do(self, work: Callable[[int], None], abort: Callable[[], None]) -> None:
        """Calls work(0) in this thread and work(1), … in the others, and returns when all have. When one fails, `abort`
        must bring the others to an end soon; then its exception is raised. An interruption by the user is such a
        failure."""
        with self._busy:
            self._do(work, abort)

    def _do(self, work: Callable[[int], None], abort: Callable[[], None]) -> None:
        failures: list[BaseException] = []
        if not self._helpers:
            self._helpers = [_Helper() for _ in range(1, self.number)]

        def guarded(own: int) -> None:
            try:
                work(own)
            except Stopped:
                # Where this comes from has failed too, and says why.
                pass
            except BaseException as failure:
                failures.append(failure)
                abort()

        try:
            for own, helper in enumerate(self._helpers, 1):
                # Limits of memory and time are known by the context.
                helper.begin(partial(copy_context().run, guarded, own))
            guarded(0)
            for helper in self._helpers:
                helper.wait()
        except BaseException:
            abort()
            self._dismiss()
            raise
        if failures:
            raise next((failure for failure in failures if isinstance(failure, KeyboardInterrupt)), failures[0])

    def _dismiss(self) -> None:
        """Ends the other threads, when they have done what they are doing: it is unknown which have begun."""
        helpers, self._helpers = self._helpers, []
        for helper in helpers:
            helper.end()
        for helper in helpers:
            helper.join()


ALONE = Crew(1)
"""This thread and no other."""


class _Helper:
    """A thread that does one work after another."""

    def __init__(self) -> None:
        self._work: Callable[[], None] | None = None
        self._begin, self._ended = _held(), _held()
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._coming_and_going = threading.Lock()

    def begin(self, work: Callable[[], None]) -> None:
        """Has some work done, from now on."""
        self._work = work
        with self._coming_and_going:
            if self._thread is None or not self._thread.is_alive():  # in a process that was forked, none is
                # Not a daemon, although none is left over: should one be, after Ctrl-C upon Ctrl-C, the interpreter
                # waits for it before it takes away the arrays that it works on.
                self._thread = threading.Thread(target=self._serve, daemon=False)
                self._thread.start()
            self._begin.release()

    def wait(self) -> None:
        """Returns when the work is done."""
        self._ended.acquire()

    def end(self) -> None:
        """There is no further work."""
        self._is_over = True
        if self._begin.locked():
            self._begin.release()

    def join(self) -> None:
        """Returns when the thread has ended."""
        thread = self._thread
        if thread is not None and thread.ident is not None:
            thread.join()

    def _serve(self) -> None:
        while self._is_to_begin():
            assert self._work is not None
            self._work()
            self._work = None  # nor are the arrays kept that it worked on
            self._ended.release()

    def _is_to_begin(self) -> bool:
        """Waits for work; False if there is none for a while."""
        if not self._begin.acquire(timeout=_PATIENCE):
            with self._coming_and_going:
                if not self._begin.acquire(blocking=False):
                    self._thread = None
                    return False
        return not self._is_over


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
