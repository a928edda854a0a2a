"""Watching work in progress: limits of time and memory, budgets, interruption, and news for whoever shows progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.late import dataclass


class BudgetExceeded(Exception):
    """An update has cost more than it was allowed: the caller abandons it and evaluates anew."""


@dataclass(frozen=True, slots=True)
class Progress:
    """News of an evaluation: which stratum, which iteration (0: it has only begun, or its tasks do not say), how many
    facts were found since the last news of it."""

    stratum: int
    iteration: int
    found: int


class Watch:
    """Asked regularly by long work. Raises LimitReached beyond a limit of the user, BudgetExceeded beyond a budget.

    `deadline` is a time of `time.monotonic`, `memory` a number of bytes of this process."""

    def __init__(
        self,
        deadline: float | None = None,
        memory: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.deadline = deadline
        self.memory = memory
        self.on_progress = on_progress
        self.derivations = 0
        self._budget: int | None = None
        self._budget_deadline: float | None = None
        self._blocks = 0

    def allow(self, derivations: int | None, seconds: float | None = None) -> None:
        """Sets the budget of the work that follows; None for none."""
        self._budget = None if derivations is None else self.derivations + derivations
        self._budget_deadline = None if seconds is None else time.monotonic() + seconds

    @property
    def derivations_left(self) -> int | None:
        """What is left of the budget, None if there is none."""
        return None if self._budget is None else max(0, self._budget - self.derivations)

    def grant(self, seconds: float) -> None:
        """Adds time to the budget, for what comes before the work itself."""
        if self._budget_deadline is not None:
            self._budget_deadline += seconds

    def derived(self, derivations: int) -> None:
        """Counts derivations and checks what may have run out."""
        self.derivations += derivations
        if self._budget is not None and self.derivations > self._budget:
            raise BudgetExceeded
        self._blocks += 1
        if not self._blocks & 15:
            self.check()

    def allowance(self, most: int) -> int:
        """How many derivations may be made, up to `most`, before `derived` has to be called."""
        return most if self._budget is None else min(most, self._budget - self.derivations)

    def iteration(self, stratum: int, iteration: int, found: int) -> None:
        """One iteration of a stratum has ended."""
        self.check()
        self.tell(stratum, iteration, found)

    def tell(self, stratum: int, iteration: int, found: int) -> None:
        """Tells news to who wants them."""
        if self.on_progress is not None:
            self.on_progress(Progress(stratum, iteration, found))

    def check(self) -> None:
        """Raises if a limit has been reached."""
        if self.deadline is None and self._budget_deadline is None and self.memory is None:
            return
        now = time.monotonic()
        if self.deadline is not None and now > self.deadline:
            raise LimitReached([Diagnostic("E0603", "the time limit was reached", help="raise --timeout")])
        if self._budget_deadline is not None and now > self._budget_deadline:
            raise BudgetExceeded
        self.require(0)

    def require(self, size: int) -> None:
        """Raises if so many bytes more would go beyond the memory limit."""
        if self.memory is None:
            return
        needed = resident_bytes() + size
        if needed > self.memory:
            message = f"the memory limit was reached: {needed >> 20} MiB of {self.memory >> 20} MiB"
            advice = "raise --max-memory, or evaluate on Spark"
            raise LimitReached([Diagnostic("E0604", message, help=advice)])


@contextmanager
def memory_as_limit() -> Iterator[None]:
    """Memory that the system does not give during the block is a limit that was reached, as one that the user set."""
    try:
        yield
    except MemoryError:
        message = "there is no more memory"
        advice = "set --max-memory to end sooner, or evaluate on Spark"
        raise LimitReached([Diagnostic("E0604", message, help=advice)]) from None


def resident_bytes() -> int:
    """The memory of this process, 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def most_of_memory() -> int | None:
    """The limit where the user sets none: nine tenths of the machine's memory, so that a program that outgrows it ends
    with a diagnostic instead of being killed. None where the system does not say how much there is."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 10 * 9
    except (AttributeError, OSError, ValueError):
        return None
