"""How a session evaluates."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastalog.backends.watch import Watch
from elastalog.diagnostics.arguments import require_number, require_place
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.quota import most_of_memory
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import MOST_EXPANSION, Allowance

if TYPE_CHECKING:
    from collections.abc import Callable

    from elastalog.backends.engines import BackendMaker
    from elastalog.backends.watch import Progress
    from elastalog.evaluation.costs import Budget
    from elastalog.relations.functions import Functions


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a session: `memory` in bytes; `time` in seconds, of every evaluation and question; `device_memory`
    in bytes, of a GPU (by default half of what is free); `expansion`, how many times its size a file of facts may grow
    when unpacked. Beyond them a call raises an error, and the session is unchanged."""

    memory: int | None = None
    time: float | None = None
    device_memory: int | None = None
    expansion: int = MOST_EXPANSION

    def __post_init__(self) -> None:
        require_number("memory", self.memory, 0, whole=True)
        require_number("time", self.time, 0)
        require_number("device_memory", self.device_memory, 0, whole=True)
        require_number("expansion", self.expansion, 1, whole=True, or_none=False)


@dataclass(frozen=True, slots=True)
class Store:
    """Where a session keeps its epochs: a folder or a URL (`s3://bucket/folder`), and how.

    `retention`: how many epochs back one can go, by default 1000; for an existing store, from now on. `heartbeats`:
    whether updates that change neither explicit facts nor rules are epochs too. `read_only` opens a store beside its
    writer, and so does `at`, at an earlier epoch. Without a path nothing is kept on disk; then `retention` says how
    many epochs are remembered, and none older than a million changed facts ago is.
    """

    path: str | os.PathLike[str] | None = None
    retention: int | None = None
    heartbeats: bool = False
    read_only: bool = False
    at: int | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            require_place("a store is a folder", self.path, "give its path")
        require_number("retention", self.retention, 1, whole=True)
        require_number("at", self.at, 1, whole=True)
        if self.path is None and self.is_read:
            option = "read_only" if self.at is None else "at"
            raise ElastalogError([Diagnostic("E0612", f"`{option}` is for stores", help="give the path of one, too")])

    @property
    def is_read(self) -> bool:
        """Whether the store is only read."""
        return bool(self.read_only) or self.at is not None


_MOST_THREADS = 16
_GRANTED = Path("/sys/fs/cgroup/cpu.max")


def processors() -> int:
    """The default number of threads: the processors that this process may use and its control group is granted, 16 at
    most; 1 in a process of a pool, which has others beside it."""
    pools = sys.modules.get("multiprocessing.process")
    if (pools is not None and pools.parent_process() is not None) or "pyspark.worker" in sys.modules:
        return 1
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(number, _granted(), _MOST_THREADS)


@cache  # to look takes as long as a tenth of a small opening
def _granted() -> int:
    try:
        quota, period = _GRANTED.read_text(encoding="ascii").split()
        return max(int(quota) // int(period), 1)
    except (OSError, ValueError):  # there is no such group, or no limit ("max")
        return _MOST_THREADS


@dataclass(frozen=True, slots=True)
class Settings:
    """How a session evaluates: the checked options of `elastalog.open`, under the same names."""

    strategy: str
    levels: str
    metric: str
    jobs: int
    limits: Limits
    budget: Budget
    on_progress: Callable[[Progress], None] | None
    make_backend: BackendMaker | None = None
    functors: Functions | None = None
    libraries: tuple[str | os.PathLike[str], ...] = ()
    may_lack_functors: bool = False
    """Functors may be missing, because facts are only read."""
    on_cluster: bool = False
    spark: Any = None
    """The Spark session that reads sources of facts; the running one unless given."""
    equivalences: frozenset[str] | None = None
    """The equivalences that are kept as classes; unless given, all that can be."""

    def watch(self) -> Watch:
        """The limits of evaluation."""
        memory = most_of_memory() if self.limits.memory is None else self.limits.memory
        return Watch(memory=memory, on_progress=self.on_progress)

    def reading(self, watch: Watch) -> Allowance:
        """The limits of reading files, including those of a watch."""
        return Allowance(watch, self.limits.expansion, self.jobs)
