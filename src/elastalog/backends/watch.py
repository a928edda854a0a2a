"""Watching work in progress: limits of time and memory, budgets, interruption, and news for progress displays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached
from elastalog.diagnostics.quota import CURRENT, Quota, within
from elastalog.late import dataclass
from elastalog.settings import SETTINGS

ROWS_A_DERIVATION = 6
"""Rows that joins look at, or make, for what a derivation costs."""


WITH_REST = 3.0
"""What work may cost in all, in terms of what its first half did."""


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

    `quota`: what the work may take; `memory`: bytes that this process may have. `derivations` were enumerated;
    `effort`, which budgets bound, also counts what was looked at in vain, in derivations that cost as much. `rows` were
    looked up or made by joins; `rounds` counts those of evaluations from the start, where a run of rounds that compiled
    code makes without returning counts once. Of these rows, `spared` is what one thread did not have to do, since
    others helped; updates have `touched` facts, and of their derivations and rows `helped` is the like. All counts are
    the same whenever the same is done."""

    def __init__(
        self,
        quota: Quota | None = None,
        memory: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.quota = quota
        self.memory = memory
        self.on_progress = on_progress
        self.began = math.inf
        self.on_long: Callable[[], None] | None = None
        """When the work began that may take long, and who is told then."""
        self.derivations = 0
        self.effort = 0
        self.rows = 0
        self.spared = 0
        self.rounds = 0
        self.touched = 0
        self.helped = 0
        self._budget: int | None = None
        self._whole_budget: Callable[[], int | None] | None = None
        self._allowed = 0
        self._begun = 0
        self._is_extended = False
        self._unchecked = 0
        self._steps = 0
        self._look_from = 0.0

    @property
    def steps(self) -> int:
        """Derivations and rows, but for what was helped."""
        return self.derivations + self.rows - self.helped

    def within(
        self, seconds: float | None, memory: int | None = None, asked: object = None
    ) -> AbstractContextManager[None]:
        """A block that may take `seconds` from now on and allocate `memory` bytes (None: any), and no more than the
        blocks around it. What is large is held against the memory limits before it is made, and memory that the system
        refuses counts as beyond these limits too. `asked`: the question that the block answers."""
        return Within(self, seconds, memory, asked)

    def allow(
        self,
        derivations: int | None,
        whole: Callable[[], int | None] | None = None,
        *,
        is_extended: bool = False,
    ) -> None:
        """Sets the budget of the work that follows; None for none. `whole` says how large it is in all, None for
        without end: asked once, when the first `derivations` are spent, which is seldom. `is_extended`:
        it grows when the costlier half of the work is done (see `extend`)."""
        self._budget = None if derivations is None else self.effort + derivations
        self._whole_budget = whole
        self._allowed = derivations or 0
        self._begun = self.effort
        self._is_extended = is_extended

    def extend(self, derivations: int, rows: int) -> None:
        """What is left should cost no more than what was spent, these derivations and rows included, which are not
        counted yet: if the budget is one that grows then, it allows for that. Once; without effect while the budget in
        all has not been asked for (see `allow`)."""
        if self._is_extended and self._budget is not None and self._whole_budget is None:
            spent = self.effort - self._begun + max(derivations, rows // ROWS_A_DERIVATION)
            self._budget = max(self._budget, self._begun + int(WITH_REST * spent))
        self._is_extended = False

    def _whole(self) -> int | None:
        """The budget, from now on as large as it is in all."""
        whole, self._whole_budget = self._whole_budget, None
        if whole is not None and self._budget is not None:
            derivations = whole()
            self._budget = None if derivations is None else self._budget - self._allowed + derivations
        return self._budget

    @property
    def derivations_left(self) -> int | None:
        """What is left of the budget, None if there is none."""
        budget = self._whole()
        return None if budget is None else max(0, budget - self.effort)

    def count(self, derivations: int, rows: int = 0) -> int:
        """Counts `derivations`, for which `rows` rows were looked at. Returns the effort of both."""
        looked_up = rows // ROWS_A_DERIVATION
        effort = looked_up if looked_up > derivations else derivations  # quicker than `max`, for every stratum
        self.derivations += derivations
        self.rows += rows
        self.effort += effort
        return effort

    def derived(self, derivations: int, rows: int = 0, left: float = 1.0) -> None:
        """Counts derivations and rows, and checks what may have run out. `left`: the part of the effort that threads
        which shared it have left to one."""
        effort = self.count(derivations, rows)
        if left < 1.0:
            self.effort -= int(effort * (1 - left))
            self.helped += int((derivations + rows) * (1 - left))
        if self._budget is not None and self.effort > self._budget:
            budget = self._whole()
            if budget is not None and self.effort > budget:
                raise BudgetExceeded
        self._unchecked += _CALL + derivations + rows
        if self._unchecked >= _UNCHECKED:
            self._unchecked = 0
            self.check()

    def allowance(self, most: int) -> int:
        """How many derivations may be made, up to `most`, before `derived` has to be called."""
        return most if self._budget is None else min(most, self._budget - self.effort)

    def iteration(self, stratum: int, iteration: int, found: int) -> None:
        """One iteration of a stratum has ended."""
        self.rounds += 1
        self.check()
        if self.on_progress is not None:
            self.tell(stratum, iteration, found)

    def tell(self, stratum: int, iteration: int, found: int) -> None:
        """Reports progress to the callback, if there is one."""
        if self.on_progress is not None:
            self.on_progress(Progress(stratum, iteration, found))

    def step(self) -> None:
        """Asked at every step of a search that is not compiled, however short the step: looks at the clock, and at the
        memory now and then."""
        self._steps += 1
        if not self._steps & 255:
            self.check()
        elif self.quota is not None:
            self.quota.look()

    def check(self) -> None:
        """Raises if a limit has been reached."""
        if self.quota is not None:
            self.quota.look()
        now = time.perf_counter()
        if now >= self.began + SETTINGS.long_work and (tell := self.on_long) is not None:
            self.on_long = None
            tell()
        if now >= self._look_from:  # what is large is asked for before it is made
            self.require(0)
            self._look_from = now + _BETWEEN_LOOKS

    def require(self, size: int) -> None:
        """Raises LimitReached if `size` more bytes would exceed the memory limit."""
        quota.require(size, self.memory)


_LIMIT = quota.LIMIT

_UNCHECKED, _CALL = 1 << 17, 1 << 13
"""Derivations and rows after which limits are looked at again, and how many of them a call counts as beside its own: a
thread may make megabytes of facts in one."""

_BETWEEN_LOOKS = 0.001
"""Seconds between two looks at the memory of the process: each takes as long as a round of a small program."""


class Within:
    """See `Watch.within`; `on_long` is called once if the block takes long. It may be entered again, once it was
    left."""

    __slots__ = ("_on_long", "_own", "_process", "_quota", "_usual", "_watch")

    def __init__(
        self,
        watch: Watch,
        seconds: float | None,
        memory: int | None = None,
        asked: object = None,
        on_long: Callable[[], None] | None = None,
    ) -> None:
        self._watch = watch
        self._on_long = on_long
        self._own = None if seconds is memory is asked is None else (seconds, memory, asked)

    def __enter__(self) -> None:
        watch = self._watch
        self._usual = watch.quota, watch.began, watch.on_long
        if self._on_long is not None:
            watch.began, watch.on_long = time.perf_counter(), self._on_long
        if self._own is not None:
            self._quota = within(*self._own).__enter__()
        self._process = _LIMIT.set(watch.memory)
        if (quota := CURRENT.get()) is not None:
            watch.quota = quota

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watch.quota, self._watch.began, self._watch.on_long = self._usual
        _LIMIT.reset(self._process)
        if self._own is not None:
            self._quota.__exit__()
        if kind is not None and issubclass(kind, MemoryError):
            raise no_memory() from None


def no_memory() -> LimitReached:
    """What is raised where the system does not give memory."""
    advice = "set --max-memory to end sooner, or evaluate on Spark"
    return LimitReached([Diagnostic("E0604", "there is no more memory", help=advice)])
